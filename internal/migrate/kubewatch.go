package migrate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// names maps kubewatch's names of kinds: the names of its fields, which its YAML uses, and of its JSON tags, flags and
// charts.
var names = map[string]string{
	"deployment": "deployments.apps", "rc": "replicationcontrollers", "replicationcontroller": "replicationcontrollers",
	"rs": "replicasets.apps", "replicaset": "replicasets.apps", "ds": "daemonsets.apps", "daemonset": "daemonsets.apps",
	"statefulset": "statefulsets.apps", "svc": "services", "service": "services", "services": "services",
	"po": "pods", "pod": "pods", "job": "jobs.batch", "node": "nodes",
	"clusterrole": "clusterroles.rbac.authorization.k8s.io", "clusterrolebinding": "clusterrolebindings.rbac.authorization.k8s.io",
	"sa": "serviceaccounts", "serviceaccount": "serviceaccounts", "pv": "persistentvolumes", "persistentvolume": "persistentvolumes",
	"ns": "namespaces", "namespace": "namespaces", "secret": "secrets", "configmap": "configmaps", "cm": "configmaps",
	"ing": "ingresses.networking.k8s.io", "ingress": "ingresses.networking.k8s.io", "hpa": "horizontalpodautoscalers.autoscaling",
	"event": "events.events.k8s.io", "coreevent": "events",
}

// kubewatch reads a .kubewatch.yaml: handler, resource, namespace and customresources (github.com/robusta-dev/kubewatch,
// config/config.go).
func kubewatch(root *yaml.Node) (draft, error) {
	var d draft
	if root.Kind != yaml.MappingNode {
		return d, fmt.Errorf("line %d: want keys such as handler and resource", root.Line)
	}
	for name, value := range pairs(root) {
		var err error
		switch strings.ToLower(name.Value) {
		case "handler":
			d.handlers(value)
		case "resource":
			err = d.resources(value)
		case "customresources":
			d.customResources(value)
		case "namespace":
			if value.Value != "" {
				d.namespaces = []string{value.Value}
			}
		case "message": // a title; tattler's messages name the cluster and the object
		default:
			d.note("kubewatch has no key %s that is known (line %d); it was left out.", name.Value, name.Line)
		}
		if err != nil {
			return d, err
		}
	}
	if len(d.include) == 0 {
		return d, errors.New("resource: no kind is true, so kubewatch watches nothing")
	}
	if slices.Contains(d.include, "events") && slices.Contains(d.include, "events.events.k8s.io") {
		d.include = slices.DeleteFunc(d.include, func(s string) bool { return s == "events.events.k8s.io" })
		d.note("event and coreevent are two names of the same objects: tattler reports each once.")
	}
	if len(d.sinks) == 0 {
		d.sinks = []sink{{name: "stdout", typ: "log"}}
		d.note("No handler is set, so kubewatch prints; a log sink does the same.")
	}
	return d, nil
}

func (d *draft) resources(n *yaml.Node) error {
	for name, value := range pairs(n) {
		kind, ok := names[strings.ToLower(name.Value)]
		on, err := strconv.ParseBool(value.Value)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: resource.%s: want true or false", value.Line, name.Value)
		case !ok && on:
			d.note("kubewatch has no resource.%s that is known (line %d); it was left out.", name.Value, name.Line)
		case on && !slices.Contains(d.include, kind):
			d.include = append(d.include, kind)
		}
	}
	return nil
}

func (d *draft) customResources(n *yaml.Node) {
	for _, e := range n.Content {
		if plural := get(e, "resource"); plural != nil && plural.Value != "" {
			name := plural.Value
			if group := get(e, "group"); group != nil && group.Value != "" {
				name += "." + group.Value
			}
			d.include = append(d.include, name)
		}
	}
}

// handlers adds a sink for each handler. If several are set, kubewatch uses the last only.
func (d *draft) handlers(n *yaml.Node) {
	for name, h := range pairs(n) {
		handler := strings.ToLower(name.Value)
		set := func(key string) string {
			if v := get(h, key); v != nil {
				return strings.TrimSpace(v.Value)
			}
			return ""
		}
		switch handler {
		case "slack":
			if channel := set("channel"); channel != "" || set("token") != "" {
				d.slack(or(strings.TrimPrefix(channel, "#"), "CHANNEL"))
			}
		case "slackwebhook":
			if set("slackwebhookurl") != "" {
				d.chat("slack", "SLACKWEBHOOK_URL", "slackwebhookurl, unchanged")
				d.note("channel, username and emoji of slackwebhook are left out: Slack takes them from the webhook's settings.")
			}
		case "mattermost":
			if set("url") != "" {
				d.chat("mattermost", "MATTERMOST_URL", "url, unchanged; room and username come from the webhook's settings", "mattermost")
			}
		case "msteams":
			if set("webhookurl") != "" {
				d.chat("teams", "TEAMS_URL", "webhookurl, unchanged; URLs at webhook.office.com no longer work: create one with a workflow in Teams", "teams")
			}
		case "lark":
			if set("webhookurl") != "" {
				d.chat("lark", "LARK_URL", "lark://HOST/TOKEN, from webhookurl")
			}
		case "smtp":
			if set("to") != "" {
				d.chat("mail", "MAIL_URL", fmt.Sprintf("smtp://USER:PASSWORD@%s/?from=%s&to=%s, with user and password escaped as in URLs",
					or(set("smarthost"), "HOST:PORT"), addresses(set("from")), addresses(set("to"))))
			}
		case "webhook":
			if set("url") != "" {
				keys := [][2]string{}
				if cert := set("cert"); cert != "" {
					keys = append(keys, [2]string{"tls", fmt.Sprintf("{ca: %s}", quote(cert))})
					if set("tlsskip") == "true" {
						d.note("tlsskip of the handler webhook is left out: its cert identifies the server.")
					}
				} else if set("tlsskip") == "true" {
					keys = append(keys, [2]string{"tls", "{insecure: true}"})
				}
				d.post("webhook", "WEBHOOK_URL", keys...)
			}
		case "cloudevent":
			if set("url") != "" {
				d.post("cloudevent", "CLOUDEVENT_URL")
			}
		case "hipchat", "flock":
			if set("url") != "" || set("token") != "" {
				d.note("The handler %s was left out: tattler has no sink for it; a webhook sink with a template can replace it.", handler)
			}
		default:
			d.note("kubewatch has no handler %s that is known (line %d); it was left out.", name.Value, name.Line)
		}
	}
}

// slack adds a sink for a bot's token.
func (d *draft) slack(channel string) {
	d.chat("slack", "SLACK_URL", fmt.Sprintf("the https URL of an incoming webhook of %s, or to slack://TOKEN@%[1]s, with a token xoxb-1-2 written as xoxb:1-2", channel))
}

// chat adds a sink with its URL in an environment variable, and its service if the URL does not imply it.
func (d *draft) chat(name, variable, value string, service ...string) {
	keys := [][2]string{{"url", fmt.Sprintf(`"${env:%s}"`, variable)}}
	for _, s := range service {
		keys = append(keys, [2]string{"service", s})
	}
	d.add(sink{name: name, typ: "notify", keys: keys})
	d.note("Set %s to %s.", variable, value)
}

func (d *draft) post(name, variable string, keys ...[2]string) {
	d.add(sink{
		name: name, typ: "webhook", keys: append([][2]string{{"url", fmt.Sprintf(`"${env:%s}"`, variable)}}, keys...),
		comment: "The body differs: it is an event, see event/schema.json; template can change it.",
	})
	d.note("Set %s to the url of the handler %s.", variable, name)
}

// addresses escapes addresses for a URL's query.
func addresses(list string) string {
	return strings.NewReplacer("%40", "@", "%2C", ",").Replace(url.QueryEscape(list))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
