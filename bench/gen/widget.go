package gen

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Owners is the number of teams with Widgets, each with a different shape.
const Owners = 50

// Widgets is the resource of the custom resources.
var Widgets = schema.GroupVersionResource{Group: "bench.tattler.dev", Version: "v1", Resource: "widgets"}

// object is a JSON object.
type object = map[string]any

// WidgetDefinition returns the CustomResourceDefinition of Widgets: a schema with lists that have
// merge keys, maps, and a part without a schema.
func WidgetDefinition() *unstructured.Unstructured {
	text, number := object{"type": "string"}, object{"type": "integer"}
	list := func(key string, item object) object {
		item["required"] = []any{key}
		return object{"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{key}}
	}
	fields := func(of object) object { return object{"type": "object", "properties": of} }
	texts := object{"type": "object", "additionalProperties": text}
	free := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	stage := fields(object{"name": text, "image": text, "args": object{"type": "array", "items": text}, "timeoutSeconds": number,
		"limits": texts, "env": list("name", fields(object{"name": text, "value": text})), "options": free})
	condition := fields(object{"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text, "observedGeneration": number})
	spec := fields(object{"owner": text, "description": text, "replicas": number, "paused": object{"type": "boolean"}, "schedule": text,
		"selector": texts, "stages": list("name", stage), "settings": free})
	status := fields(object{"observedGeneration": number, "phase": text, "digest": text, "replicas": number,
		"conditions": list("type", condition), "results": object{"type": "array", "items": free}})
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "widgets." + Widgets.Group},
		"spec": object{
			"group": Widgets.Group, "scope": "Namespaced",
			"names": object{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{object{
				"name": Widgets.Version, "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": fields(object{"spec": spec, "status": status})},
			}},
		},
	}}
}

// Widget returns custom resource i as its owner applies it, with the status that its controller
// writes. The API server adds the rest of the metadata.
func (g *Generator) Widget(i int) *unstructured.Unstructured {
	r := newRandom(g.seed, saltWidget+uint64(i))
	n := r.IntN(Owners)
	o := newRandom(g.seed, saltOwner+uint64(n)) // for the common parts of the owner's objects
	owner := areas[n%len(areas)] + []string{"", "-next"}[n/len(areas)]
	name := fmt.Sprintf("%s-%s-%s", owner, pick(o, "pipeline", "report", "bucket", "topic", "tenant"), suffix(i))
	labels := object{"owner": owner}
	for range o.IntN(4) {
		labels[owner+".example.com/"+pick(o, "tier", "stage", "zone", "class")] = pick(o, teams...)
	}
	labels["app.kubernetes.io/name"] = name[:len(name)-6]
	spec := object{
		"owner": owner, "replicas": int64(r.IntN(9)), "paused": r.chance(10), "selector": object{"widget": name, "owner": owner},
		"settings": tree(o, r, 2, o.between(2, 4)), "stages": stages(o, r, owner),
	}
	if o.chance(40) {
		spec["schedule"] = fmt.Sprintf("%d %d * * %d", r.IntN(60), r.IntN(24), r.IntN(7))
	}
	if o.chance(50) {
		spec["description"] = sentence(r, o.between(5, 25))
	}
	return &unstructured.Unstructured{Object: object{
		"apiVersion": Widgets.GroupVersion().String(), "kind": "Widget",
		"metadata": object{"name": name, "namespace": namespaceName(o.IntN(Namespaces)), "labels": labels},
		"spec":     spec, "status": widgetStatus(o, r, spec),
	}}
}

func stages(o, r random, owner string) []any {
	var list []any
	for s := range o.between(1, 3) {
		var args, env []any
		for range o.IntN(4) {
			args = append(args, "--"+key(o)+"="+fmt.Sprint(value(o, r)))
		}
		for e := range o.IntN(4) {
			env = append(env, object{"name": fmt.Sprintf("%s_%d", strings.ToUpper(key(o)), e), "value": fmt.Sprint(value(o, r))})
		}
		stage := object{"name": fmt.Sprintf("%s-%d", pick(o, "fetch", "build", "verify", "publish", "clean"), s),
			"image": fmt.Sprintf("%s/%s:%s", pick(o, registries...), owner, imageTag(r)), "timeoutSeconds": int64(30 * r.between(1, 20))}
		if args != nil {
			stage["args"] = args
		}
		if env != nil {
			stage["env"] = env
		}
		if o.chance(50) {
			stage["limits"] = object{"cpu": pick(r, "100m", "500m", "1"), "memory": pick(r, "64Mi", "1Gi")}
		}
		if o.chance(40) {
			stage["options"] = tree(o, r, 1, 3)
		}
		list = append(list, stage)
	}
	return list
}

func widgetStatus(o, r random, spec object) object {
	at := func() string {
		return time.Unix(Epoch+int64(r.IntN(40*24*3600)), 0).UTC().Format(time.RFC3339)
	}
	var conditions, results []any
	for _, t := range []string{"Ready", "Synced", "Valid", "Healthy", "Reconciling"}[:o.between(1, 5)] {
		conditions = append(conditions, object{"type": t, "status": pick(r, "True", "True", "False", "Unknown"), "reason": pick(r, "Succeeded", "InProgress", "Backoff"),
			"message": sentence(r, r.between(3, 12)), "lastTransitionTime": at(), "observedGeneration": int64(1)})
	}
	for range min(o.IntN(4), 1+r.IntN(3)) {
		results = append(results, object{"id": r.uid(), "startedAt": at(), "finishedAt": at(), "bytes": int64(r.IntN(1 << 30)), "digest": "sha256:" + r.hex(64)})
	}
	status := object{"observedGeneration": int64(1), "phase": pick(r, "Ready", "Pending", "Failed"), "digest": r.hex(40), "replicas": spec["replicas"], "conditions": conditions}
	if results != nil {
		status["results"] = results
	}
	return status
}

// tree draws nested maps and lists. The owner determines the keys, the object the values.
func tree(o, r random, depth, width int) object {
	t := object{}
	for range width {
		k := key(o)
		switch kind := o.IntN(10); {
		case kind < 3 && depth > 0:
			t[k] = tree(o, r, depth-1, width)
		case kind < 5:
			var list []any
			for range o.between(1, 3) {
				list = append(list, value(o, r))
			}
			t[k] = list
		default:
			t[k] = value(o, r)
		}
	}
	return t
}

func key(o random) string {
	return pick(o, "source", "target", "mode", "limit", "window", "policy", "retry", "backoff", "format", "region", "zone", "bucket", "topic", "codec", "quota", "threshold") +
		pick(o, "", "", "Ref", "Name", "Seconds", "Count", "Class")
}

// value draws a value of a type that the owner determines.
func value(o, r random) any {
	switch o.IntN(6) {
	case 0:
		return int64(r.IntN(100_000))
	case 1:
		return r.chance(50)
	case 2:
		return float64(r.IntN(1000)) / 8
	case 3:
		return pick(r, areas...) + "." + pick(o, roles...) + ".example.com"
	case 4:
		return r.hex(o.between(6, 24))
	default:
		return sentence(r, o.between(1, 6))
	}
}

func sentence(r random, words int) string {
	list := make([]string, words)
	for i := range list {
		list[i] = pick(r, pick(r, areas...), pick(r, roles...), pick(r, "waits", "for", "the", "next", "of", "and", "was", "has", "not", "by"))
	}
	return strings.Join(list, " ")
}
