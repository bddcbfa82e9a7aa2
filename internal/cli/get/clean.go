package get

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// serverFields are the paths that the API server or its controllers set, by kind; those of "" are of every kind.
//
// Source: k8s.io/kubernetes 1.36: the strategies of pkg/registry, which set or reset them on creation.
var serverFields = map[string][]string{
	"": {
		"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields",
		"metadata.selfLink", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds",
		`metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`,
		`metadata.annotations["deployment.kubernetes.io/revision"]`,
	},
	"Service":        {"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"},
	"Namespace":      {"spec.finalizers"},
	"ServiceAccount": {"secrets"},
	"Pod":            {"spec.nodeName"},
	"PersistentVolumeClaim": {
		"spec.volumeName", `metadata.annotations["pv.kubernetes.io/bind-completed"]`, `metadata.annotations["pv.kubernetes.io/bound-by-controller"]`,
		`metadata.annotations["volume.kubernetes.io/selected-node"]`,
	},
	"PersistentVolume": {"spec.claimRef.uid", "spec.claimRef.resourceVersion"},
	"Job": {
		"spec.selector", `spec.template.metadata.labels["controller-uid"]`, `spec.template.metadata.labels["batch.kubernetes.io/controller-uid"]`,
		`spec.template.metadata.labels["job-name"]`, `spec.template.metadata.labels["batch.kubernetes.io/job-name"]`,
		`metadata.labels["controller-uid"]`, `metadata.labels["batch.kubernetes.io/controller-uid"]`,
		`metadata.labels["job-name"]`, `metadata.labels["batch.kubernetes.io/job-name"]`,
	},
}

// clean removes from objects what the server sets. Objects with hidden values are an error, unless they are kept.
func clean(all []found, keepHidden bool) error {
	for i := range all {
		object := all[i].object
		kind, _ := object["kind"].(string)
		kinds := []string{"", kind}
		if spec, _ := object["spec"].(map[string]any); kind == "Job" && spec["manualSelector"] == true {
			kinds = kinds[:1]
		}
		for _, k := range kinds {
			for _, text := range serverFields[k] {
				path, err := diff.ParsePath(text)
				if err != nil {
					return fmt.Errorf("clean %s: %w", subject(&all[i].State), err)
				}
				remove(object, path)
			}
		}
		if kind == "Pod" {
			removeTokens(object)
		}
		removeOwners(object)
		if secrets := hidden(object); len(secrets) > 0 && !keepHidden {
			return fmt.Errorf("%s has hidden values, which cannot be applied: %s; --keep-hidden writes them as they are shown",
				subject(&all[i].State), strings.Join(secrets, ", "))
		}
	}
	return nil
}

// remove removes a field, and the maps that it leaves empty.
func remove(object map[string]any, path diff.Path) {
	name := path[0].Name
	if len(path) == 1 {
		delete(object, name)
		return
	}
	if inner, ok := object[name].(map[string]any); ok {
		if remove(inner, path[1:]); len(inner) == 0 {
			delete(object, name)
		}
	}
}

// removeOwners removes the owner references: they name their owners by UIDs, and an object whose owner is gone would
// be deleted at once.
func removeOwners(object map[string]any) {
	remove(object, diff.Path{{Name: "metadata"}, {Name: "ownerReferences"}})
}

// removeTokens removes a pod's volume with a token for the API server, which admission adds, and where it is mounted.
//
// Source: k8s.io/kubernetes, plugin/pkg/admission/serviceaccount: names that begin with kube-api-access-.
func removeTokens(pod map[string]any) {
	const prefix = "kube-api-access-"
	without := func(in map[string]any, field string) {
		list, _ := in[field].([]any)
		var kept []any
		for _, e := range list {
			m, _ := e.(map[string]any)
			if name, _ := m["name"].(string); !strings.HasPrefix(name, prefix) {
				kept = append(kept, e)
			}
		}
		switch {
		case len(kept) == len(list):
		case len(kept) == 0:
			delete(in, field)
		default:
			in[field] = kept
		}
	}
	spec, _ := pod["spec"].(map[string]any)
	without(spec, "volumes")
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		list, _ := spec[field].([]any)
		for _, e := range list {
			if c, ok := e.(map[string]any); ok {
				without(c, "volumeMounts")
			}
		}
	}
}

// hidden returns the paths of the hidden values of an object.
func hidden(object map[string]any) (paths []string) {
	var path diff.Path
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range sortedKeys(v) {
				path = append(path, diff.Elem{Name: k})
				walk(v[k])
				path = path[:len(path)-1]
			}
		case []any:
			for i, e := range v {
				path = append(path, diff.Elem{Kind: diff.Index, Index: i})
				walk(e)
				path = path[:len(path)-1]
			}
		case string:
			if strings.Contains(v, diff.HiddenPrefix) {
				paths = append(paths, path.String())
			}
		}
	}
	walk(object)
	return paths
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
