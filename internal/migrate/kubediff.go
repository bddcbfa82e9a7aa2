package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubediff reads a file of github.com/arriqaaq/kubediff: mode, resources as group/version/resource, namespaces and
// notifier (its config/config.go).
func kubediff(root *yaml.Node) (draft, error) {
	d := draft{sinks: []sink{{name: "stdout", typ: "log", keys: [][2]string{{"format", "json"}}, comment: "kubediff logs each change."}}}
	if root.Kind != yaml.MappingNode {
		return d, fmt.Errorf("line %d: want keys such as resources and namespaces", root.Line)
	}
	for name, value := range pairs(root) {
		switch strings.ToLower(name.Value) {
		case "mode":
			if value.Value == "diff" {
				d.note("mode: diff has no counterpart: tattler shows the diff of each change.")
			}
		case "resources":
			for _, e := range value.Content {
				kind := get(e, "kind")
				if kind == nil || kind.Value == "" {
					return d, fmt.Errorf("line %d: a resource without a kind", e.Line)
				}
				d.include = append(d.include, resource(kind.Value))
			}
		case "namespaces":
			for _, e := range value.Content {
				d.namespaces = append(d.namespaces, e.Value)
			}
		case "notifier":
			d.notifiers(value)
		default:
			d.note("kubediff has no key %s (line %d); it was left out.", name.Value, name.Line)
		}
	}
	if slices.Contains(d.namespaces, "all") {
		if len(d.namespaces) > 1 {
			return d, errors.New("namespaces: all cannot be combined with others: kubediff refuses that")
		}
		d.namespaces = nil
	}
	if len(d.include) == 0 {
		return d, errors.New("resources is empty, so kubediff watches nothing")
	}
	return d, nil
}

func (d *draft) notifiers(n *yaml.Node) {
	for name, value := range pairs(n) {
		if on := get(value, "enabled"); on == nil || on.Value != "true" {
			continue
		}
		switch strings.ToLower(name.Value) {
		case "slack":
			channel := "CHANNEL"
			if c := get(value, "channel"); c != nil {
				channel = or(c.Value, channel)
			}
			d.slack(channel)
		case "webhook":
			d.post("webhook", "WEBHOOK_URL")
		case "noop":
		default:
			d.note("kubediff has no notifier %s (line %d); it was left out.", name.Value, name.Line)
		}
	}
}

// resource returns the name, such as ingresses.networking.k8s.io, of a group/version/resource. Tattler watches the server's
// preferred version.
func resource(gvr string) string {
	parts := strings.Split(gvr, "/")
	name := parts[len(parts)-1]
	if len(parts) == 3 {
		return name + "." + parts[0]
	}
	return name
}
