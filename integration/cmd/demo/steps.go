package main

import (
	"embed"

	"github.com/tattler-dev/tattler/integration/bus"
)

// namespace is where things happen.
const namespace = "shop"

//go:embed manifests
var manifests embed.FS

// rolledOut waits until the Deployment is what its spec says.
var rolledOut = []string{"rollout", "status", "deployment/web", "--timeout=90s"}

// preparation makes what is there before tattler looks.
var preparation = [][]string{
	{"config", "set-context", "--current", "--namespace=" + namespace},
	{"apply", "-f", "shop.yaml"},
	rolledOut,
}

// step is one thing that happens.
type step struct {
	say  string
	do   [][]string // kubectl commands, shown
	wait [][]string // kubectl commands that return when the cluster has done its part, not shown
	// crash kills the daemon after the commands, and starts it again when the cluster has done its part.
	crash bool
}

var steps = []step{
	{
		say:  "a rollout",
		do:   [][]string{{"set", "image", "deployment/web", "app=shop/web:1.5"}},
		wait: [][]string{rolledOut}, crash: true,
	},
	{
		say:  "a scale",
		do:   [][]string{{"scale", "deployment/web", "--replicas=5"}},
		wait: [][]string{rolledOut},
	},
	{
		say: "an edited ConfigMap",
		do:  [][]string{{"apply", "-f", "web-config.yaml"}},
	},
	{
		say: "a new password, which nobody gets to see",
		do:  [][]string{{"apply", "-f", "web-db.yaml"}},
	},
	{
		say: "a label is taken away; the API server does not record by whom",
		do:  [][]string{{"label", "deployment/web", "tier-"}},
	},
	{
		say: "a kind that did not exist, and two objects of it",
		do: [][]string{
			{"apply", "-f", "widgets-crd.yaml"},
			{"wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s"},
			{"apply", "-f", "widgets.yaml"},
		},
	},
	{
		say: "a change in a list, matched by the keys that the CRD declares",
		do: [][]string{{
			"patch", "widget", "blue", "--type=merge",
			"--patch", `{"spec":{"parts":[{"name":"bolt","count":12},{"name":"wheel","count":6}]}}`,
		}},
	},
	{
		say: "deletions",
		do:  [][]string{{"delete", "widget/red", "configmap/web-config"}},
	},
	{
		say:  "and the end of the shop",
		do:   [][]string{{"delete", "deployment/web", "service/web"}},
		wait: [][]string{{"wait", "--for=delete", "pod", "--selector=app=web", "--timeout=60s"}},
	},
}

// eventsFile is what the daemon delivers to.
const eventsFile = "changes.jsonl"

// busStream is what it delivers to with -nats, as one would name it.
const busStream = "the stream " + bus.Stream

// question is what one would ask afterwards.
type question struct {
	say  string
	args []string
}

var questions = []question{
	{"who changed the image of deployment web, and when?", []string{"log", "deploy/web", "-n", namespace, "--path", "spec.**.image"}},
	{"how is the daemon?", []string{"status"}},
}
