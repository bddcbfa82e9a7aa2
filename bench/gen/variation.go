package gen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// variation makes the application's pod in a state from the recorded one: with its name, other values, and without some
// optional parts.
type variation struct {
	mutator
	name string
	pod  object
	gone *fieldpath.Set // the fields that were left out
}

func (a *app) variation(s state) *corev1.Pod {
	v := &variation{mutator: mutator(a.seed), name: a.name, gone: fieldpath.NewSet()}
	recorded, err := json.Marshal(a.base.Pods[s].Object)
	if err == nil {
		err = json.Unmarshal([]byte(rename(string(recorded), a.baseName, a.name)), &v.pod)
	}
	if err != nil {
		panic(fmt.Sprintf("gen: copy a pod: %v", err))
	}
	v.metadata()
	v.spec()
	v.scale(v.pod)
	pod := &corev1.Pod{}
	text, err := json.Marshal(v.pod)
	if err == nil {
		err = json.Unmarshal(text, pod)
	}
	if err != nil {
		panic(fmt.Sprintf("gen: decode a pod: %v", err))
	}
	v.fields(pod)
	pod.APIVersion, pod.Kind = "", ""
	return pod
}

// rename renames an application in JSON, and its first word where that begins a text.
func rename(text, from, to string) string {
	first, _, _ := strings.Cut(from, "-")
	now, _, _ := strings.Cut(to, "-")
	under := func(s string) string { return strings.ReplaceAll(s, "-", "_") }
	text = strings.NewReplacer(from, to, under(from), under(to)).Replace(text)
	return strings.NewReplacer(`"`+first+`"`, `"`+now+`"`, `"`+first+`-`, `"`+now+`-`).Replace(text)
}

// remove notes that the field at the path was left out.
func (v *variation) remove(path ...any) {
	v.gone.Insert(fieldpath.MakePathOrDie(path...))
}

// kept are labels that controllers need.
var kept = map[string]bool{
	"app": true, "k8s-app": true, "app.kubernetes.io/name": true, "topology.kubernetes.io/zone": true, "topology.kubernetes.io/region": true,
	"pod-template-hash": true, "pod-template-generation": true, "controller-revision-hash": true,
	"statefulset.kubernetes.io/pod-name": true, "apps.kubernetes.io/pod-index": true,
	"job-name": true, "controller-uid": true, "batch.kubernetes.io/job-name": true, "batch.kubernetes.io/controller-uid": true,
	"batch.kubernetes.io/job-completion-index": true,
}

func (v *variation) metadata() {
	meta := v.pod["metadata"].(object)
	labels := meta["labels"].(object)
	for key := range labels {
		if kept[key] {
			continue
		}
		if v.drops(25, "label", key) {
			delete(labels, key)
			v.remove("metadata", "labels", key)
		} else {
			v.text(labels, key)
		}
	}
	annotations, _ := meta["annotations"].(object)
	for key := range annotations {
		if v.drops(35, "annotation", key) {
			delete(annotations, key)
			v.remove("metadata", "annotations", key)
		} else {
			v.text(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
		v.remove("metadata", "annotations")
	}
}

func (v *variation) spec() {
	spec, status := v.pod["spec"].(object), v.pod["status"].(object)
	for key, p := range map[string]int{"affinity": 50, "topologySpreadConstraints": 50, "imagePullSecrets": 50, "nodeSelector": 50} {
		v.optional(spec, p, key, "spec")
	}
	if v.optional(spec, 50, "initContainers", "spec") {
		delete(status, "initContainerStatuses")
		v.remove("status", "initContainerStatuses")
	}
	security := spec["securityContext"].(object)
	for key := range security {
		v.optional(security, 30, key, "spec", "securityContext")
	}
	v.sidecars(spec, status)
	v.volumes(spec, status)
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range elements(spec, list) {
			v.container(c, list)
		}
		for _, c := range elements(status, strings.TrimSuffix(list, "s")+"Statuses") {
			if strings.Contains(c["image"].(string), v.name) {
				v.text(c, "image")
				v.text(c, "imageID")
			}
			if v.drops(50, "user") {
				delete(c, "user")
			}
		}
	}
}

// optional leaves out o[key] in p of 100 variations, and reports whether it did so. path is the path of o.
func (v *variation) optional(o object, p int, key string, path ...any) bool {
	if _, ok := o[key]; !ok || !v.drops(p, fmt.Sprint(path...), key) {
		return false
	}
	delete(o, key)
	v.remove(append(path[:len(path):len(path)], key)...)
	return true
}

// elements are the objects of the list at a key of o.
func elements(o object, key string) []object {
	list, _ := o[key].([]any)
	all := make([]object, len(list))
	for i := range list {
		all[i] = list[i].(object)
	}
	return all
}

// filter keeps the objects of the list at a key of o for which keep returns true.
func filter(o object, key string, keep func(i int, e object) bool) {
	list, ok := o[key].([]any)
	if !ok {
		return
	}
	var left []any
	for i, e := range list {
		if keep(i, e.(object)) {
			left = append(left, e)
		}
	}
	o[key] = left
	if left == nil {
		delete(o, key)
	}
}

func named(name any) *fieldpath.PathElement {
	k := fieldpath.KeyByFields("name", name)
	return &fieldpath.PathElement{Key: k}
}

// sidecars leaves out containers other than the first.
func (v *variation) sidecars(spec, status object) {
	gone := map[any]bool{}
	filter(spec, "containers", func(i int, c object) bool {
		name := c["name"]
		if i == 0 || !v.drops(50, "container", name.(string)) {
			return true
		}
		gone[name] = true
		v.remove("spec", "containers", *named(name))
		return false
	})
	filter(status, "containerStatuses", func(_ int, c object) bool { return !gone[c["name"]] })
}

// volumes leaves out volumes other than the first, the claims and the token.
func (v *variation) volumes(spec, status object) {
	gone := map[any]bool{}
	filter(spec, "volumes", func(i int, vol object) bool {
		name := vol["name"].(string)
		if i == 0 || vol["persistentVolumeClaim"] != nil || strings.HasPrefix(name, tokenPrefix) || !v.drops(25, "volume", name) {
			return true
		}
		gone[name] = true
		v.remove("spec", "volumes", *named(name))
		return false
	})
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range elements(spec, list) {
			left := 0
			filter(c, "volumeMounts", func(_ int, m object) bool {
				if gone[m["name"]] {
					path := fieldpath.KeyByFields("mountPath", m["mountPath"])
					v.remove("spec", list, *named(c["name"]), "volumeMounts", path)
					return false
				}
				if !strings.HasPrefix(m["name"].(string), tokenPrefix) {
					left++
				}
				return true
			})
			if left == 0 {
				v.remove("spec", list, *named(c["name"]), "volumeMounts")
			}
		}
		for _, c := range elements(status, strings.TrimSuffix(list, "s")+"Statuses") {
			filter(c, "volumeMounts", func(_ int, m object) bool { return !gone[m["name"]] })
		}
	}
}

// container varies a container and leaves out its optional parts.
func (v *variation) container(c object, list string) {
	name := c["name"].(string)
	path := []any{"spec", list, *named(name)}
	for key, p := range map[string]int{"startupProbe": 60, "livenessProbe": 25, "readinessProbe": 15, "lifecycle": 60, "securityContext": 30, "envFrom": 30} {
		v.optional(c, p, key, path...)
	}
	filter(c, "env", func(i int, e object) bool {
		if i > 0 && v.drops(15, "env", name, e["name"].(string)) {
			v.remove(append(path[:3:3], "env", *named(e["name"]))...)
			return false
		}
		v.text(e, "value")
		return true
	})
	v.texts(c["args"])
	if strings.Contains(c["image"].(string), v.name) {
		v.text(c, "image")
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if p, ok := c[probe].(object); ok {
			for key, choices := range map[string][]int{"periodSeconds": {5, 10, 10, 15, 30}, "timeoutSeconds": {1, 1, 2, 3, 5}, "failureThreshold": {3, 3, 5, 10, 30}} {
				p[key] = pick(v.draw(name+probe+key), choices...)
			}
		}
	}
}

// fields removes the fields that were left out from the managed fields, and the entry of a
// scheduler that had to wait for a volume, which package fill does not imitate.
func (v *variation) fields(pod *corev1.Pod) {
	pod.ManagedFields = slices.DeleteFunc(pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kube-scheduler" })
	for i := range pod.ManagedFields {
		e := &pod.ManagedFields[i]
		var set fieldpath.Set
		err := set.FromJSON(strings.NewReader(e.FieldsV1.GetRawString()))
		var text []byte
		if err == nil {
			text, err = set.RecursiveDifference(v.gone).ToJSON()
		}
		if err != nil {
			panic(fmt.Sprintf("gen: vary managed fields: %v", err))
		}
		e.FieldsV1.SetRawBytes(text)
	}
}
