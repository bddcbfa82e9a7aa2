package main

import (
	"embed"

	"github.com/tattler-dev/tattler/integration/bus"
)

// namespace is the namespace of the demo.
const namespace = "shop"

//go:embed manifests
var manifests embed.FS

// rolledOut waits until the Deployment matches its spec.
var rolledOut = []string{"rollout", "status", "deployment/web", "--timeout=5m"}

// preparation creates the objects that exist before tattler starts.
var preparation = [][]string{
	{"config", "set-context", "--current", "--namespace=" + namespace},
	{"apply", "-f", "shop.yaml"},
	rolledOut,
}

// step is one step of the demo.
type step struct {
	say  string
	do   [][]string // kubectl commands, displayed
	wait [][]string // kubectl commands that wait for the cluster, not displayed
	// crash kills the daemon after the commands, and restarts it once wait has returned.
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
		say: "a new password, which is never shown",
		do:  [][]string{{"apply", "-f", "web-db.yaml"}},
	},
	{
		say: "a label is removed; the API server does not record the manager",
		do:  [][]string{{"label", "deployment/web", "tier-"}},
	},
	{
		say: "a new kind, and two objects of it",
		do: [][]string{
			{"apply", "-f", "widgets-crd.yaml"},
			{"wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=5m"},
			{"apply", "-f", "widgets.yaml"},
		},
	},
	{
		say: "a change in a list, whose elements are matched by the CRD's merge keys",
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
		say:  "and the shop is deleted",
		do:   [][]string{{"delete", "deployment/web", "service/web"}},
		wait: [][]string{{"wait", "--for=delete", "pod", "--selector=app=web", "--timeout=5m"}},
	},
}

// eventsFile is the daemon's file sink.
const eventsFile = "changes.jsonl"

// busStream describes the stream to which it delivers with -nats.
const busStream = "the stream " + bus.Stream

// question is a question that a user would ask afterwards.
type question struct {
	say  string
	args []string
}

var questions = []question{
	{"who changed the image of deployment web, and when?", []string{"log", "deploy/web", "-n", namespace, "--path", "spec.**.image"}},
	{"what is the state of the daemon?", []string{"status"}},
}
