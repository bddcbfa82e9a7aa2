package relations

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// pods reads a pod, or the template of a workload's pods. Any kind may have one: only its place matters.
func (r *reader) pods() {
	o := r.object
	switch {
	case r.facts.Self.Group == "" && r.facts.Self.Kind == "Pod":
		r.facts.PodLabels = podLabels(o)
		r.podSpec(fields(o, "spec"))
	case list(o, "spec", "template", "spec", "containers") != nil:
		r.facts.PodLabels = podLabels(fields(o, "spec", "template"))
		r.podSpec(fields(o, "spec", "template", "spec"))
	case list(o, "spec", "jobTemplate", "spec", "template", "spec", "containers") != nil:
		r.facts.PodLabels = podLabels(fields(o, "spec", "jobTemplate", "spec", "template"))
		r.podSpec(fields(o, "spec", "jobTemplate", "spec", "template", "spec"))
	}
}

// podLabels is not nil, so that selectors for all pods match.
func podLabels(pod map[string]any) labels.Set {
	return stringsOf(fields(pod, "metadata", "labels"))
}

func (r *reader) podSpec(spec map[string]any) {
	r.names("ServiceAccount", text(spec, "serviceAccountName"))
	each(spec, func(m map[string]any) { r.names("Secret", text(m, "name")) }, "imagePullSecrets")
	r.add(Names, "scheduling.k8s.io", "PriorityClass", "", text(spec, "priorityClassName"), "")
	r.add(Names, "node.k8s.io", "RuntimeClass", "", text(spec, "runtimeClassName"), "")
	r.add(RunsOn, "", "Node", "", text(spec, "nodeName"), "")
	each(spec, r.volume, "volumes")
	for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
		each(spec, r.container, containers)
	}
}

func (r *reader) volume(v map[string]any) {
	r.names("ConfigMap", text(v, "configMap", "name"))
	r.names("Secret", text(v, "secret", "secretName"))
	r.names("PersistentVolumeClaim", text(v, "persistentVolumeClaim", "claimName"))
	if fields(v, "ephemeral") != nil && r.facts.Self.Kind == "Pod" { // the claim is named after the pod
		r.names("PersistentVolumeClaim", r.facts.Self.Name+"-"+text(v, "name"))
	}
	each(v, func(source map[string]any) {
		r.names("ConfigMap", text(source, "configMap", "name"))
		r.names("Secret", text(source, "secret", "name"))
	}, "projected", "sources")
	for _, kind := range []string{"csi", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos", "cephfs"} {
		for _, field := range []string{"nodePublishSecretRef", "secretRef"} {
			r.names("Secret", text(v, kind, field, "name"))
		}
	}
}

func (r *reader) container(c map[string]any) {
	each(c, func(e map[string]any) {
		r.names("ConfigMap", text(e, "valueFrom", "configMapKeyRef", "name"))
		r.names("Secret", text(e, "valueFrom", "secretKeyRef", "name"))
	}, "env")
	each(c, func(e map[string]any) {
		r.names("ConfigMap", text(e, "configMapRef", "name"))
		r.names("Secret", text(e, "secretRef", "name"))
	}, "envFrom")
}

// selector reads a LabelSelector. An empty one selects everything, an absent or invalid one nothing.
func selector(m map[string]any) labels.Selector {
	if m == nil {
		return nil
	}
	s := metav1.LabelSelector{MatchLabels: stringsOf(fields(m, "matchLabels"))}
	each(m, func(e map[string]any) {
		req := metav1.LabelSelectorRequirement{Key: text(e, "key"), Operator: metav1.LabelSelectorOperator(text(e, "operator"))}
		for _, v := range list(e, "values") {
			if v, ok := v.(string); ok {
				req.Values = append(req.Values, v)
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, req)
	}, "matchExpressions")
	out, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil
	}
	return out
}

// get returns the value at a path of map keys, or nil.
func get(obj map[string]any, path ...string) any {
	var v any = obj
	for _, p := range path {
		m, _ := v.(map[string]any)
		if m == nil {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(obj map[string]any, path ...string) string {
	s, _ := get(obj, path...).(string)
	return s
}

func list(obj map[string]any, path ...string) []any {
	l, _ := get(obj, path...).([]any)
	return l
}

func fields(obj map[string]any, path ...string) map[string]any {
	m, _ := get(obj, path...).(map[string]any)
	return m
}

// each calls f with the objects of a list.
func each(obj map[string]any, f func(map[string]any), path ...string) {
	for _, e := range list(obj, path...) {
		if m, ok := e.(map[string]any); ok {
			f(m)
		}
	}
}

// stringsOf returns the strings of an object; never nil.
func stringsOf(m map[string]any) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}
