package relations

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// pods reads a pod, or the template of a workload's pods. Any kind may have one: only its place matters.
func (r *reader) pods() {
	o := r.object
	switch {
	case r.facts.Self.Group == "" && r.facts.Self.Kind == "Pod":
		r.facts.PodLabels = podLabels(o)
		r.podSpec(jsonmap.Object(o, "spec"))
	case jsonmap.List(o, "spec", "template", "spec", "containers") != nil:
		r.facts.PodLabels = podLabels(jsonmap.Object(o, "spec", "template"))
		r.podSpec(jsonmap.Object(o, "spec", "template", "spec"))
	case jsonmap.List(o, "spec", "jobTemplate", "spec", "template", "spec", "containers") != nil:
		r.facts.PodLabels = podLabels(jsonmap.Object(o, "spec", "jobTemplate", "spec", "template"))
		r.podSpec(jsonmap.Object(o, "spec", "jobTemplate", "spec", "template", "spec"))
	}
}

// podLabels is not nil, so that selectors for all pods match.
func podLabels(pod map[string]any) labels.Set {
	return stringsOf(jsonmap.Object(pod, "metadata", "labels"))
}

func (r *reader) podSpec(spec map[string]any) {
	r.names("ServiceAccount", jsonmap.Text(spec, "serviceAccountName"))
	each(spec, func(m map[string]any) { r.names("Secret", jsonmap.Text(m, "name")) }, "imagePullSecrets")
	r.add(Names, "scheduling.k8s.io", "PriorityClass", "", jsonmap.Text(spec, "priorityClassName"), "")
	r.add(Names, "node.k8s.io", "RuntimeClass", "", jsonmap.Text(spec, "runtimeClassName"), "")
	r.add(RunsOn, "", "Node", "", jsonmap.Text(spec, "nodeName"), "")
	each(spec, r.volume, "volumes")
	for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
		each(spec, r.container, containers)
	}
}

func (r *reader) volume(v map[string]any) {
	r.names("ConfigMap", jsonmap.Text(v, "configMap", "name"))
	r.names("Secret", jsonmap.Text(v, "secret", "secretName"))
	r.names("PersistentVolumeClaim", jsonmap.Text(v, "persistentVolumeClaim", "claimName"))
	if jsonmap.Object(v, "ephemeral") != nil && r.facts.Self.Kind == "Pod" { // the claim is named after the pod
		r.names("PersistentVolumeClaim", r.facts.Self.Name+"-"+jsonmap.Text(v, "name"))
	}
	each(v, func(source map[string]any) {
		r.names("ConfigMap", jsonmap.Text(source, "configMap", "name"))
		r.names("Secret", jsonmap.Text(source, "secret", "name"))
	}, "projected", "sources")
	for _, kind := range []string{"csi", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos", "cephfs"} {
		for _, field := range []string{"nodePublishSecretRef", "secretRef"} {
			r.names("Secret", jsonmap.Text(v, kind, field, "name"))
		}
	}
}

func (r *reader) container(c map[string]any) {
	each(c, func(e map[string]any) {
		r.names("ConfigMap", jsonmap.Text(e, "valueFrom", "configMapKeyRef", "name"))
		r.names("Secret", jsonmap.Text(e, "valueFrom", "secretKeyRef", "name"))
	}, "env")
	each(c, func(e map[string]any) {
		r.names("ConfigMap", jsonmap.Text(e, "configMapRef", "name"))
		r.names("Secret", jsonmap.Text(e, "secretRef", "name"))
	}, "envFrom")
}

// selector reads a LabelSelector. An empty one selects everything, an absent or invalid one nothing.
func selector(m map[string]any) labels.Selector {
	if m == nil {
		return nil
	}
	s := metav1.LabelSelector{MatchLabels: stringsOf(jsonmap.Object(m, "matchLabels"))}
	each(m, func(e map[string]any) {
		req := metav1.LabelSelectorRequirement{Key: jsonmap.Text(e, "key"), Operator: metav1.LabelSelectorOperator(jsonmap.Text(e, "operator"))}
		for _, v := range jsonmap.List(e, "values") {
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

// each calls f with the objects of a list.
func each(obj map[string]any, f func(map[string]any), path ...string) {
	for _, e := range jsonmap.List(obj, path...) {
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
