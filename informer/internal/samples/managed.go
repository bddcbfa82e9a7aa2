package samples

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managed is the part of metadata.managedFields by the controller manager and the kubelet.
func managed(a *App, p *corev1.Pod, ip string) []metav1.ManagedFieldsEntry {
	if a.fields[0] == "" {
		a.fields = fieldsOf(a, p)
	}
	entry := func(manager, sub string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: sub}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", p.CreationTimestamp, a.fields[0]),
		entry("kubelet", "status", p.Status.ContainerStatuses[0].State.Running.StartedAt, strings.ReplaceAll(a.fields[1], noIP, ip)),
	}
}

const noIP = "0.0.0.0"

func fieldsOf(a *App, p *corev1.Pod) [2]string {
	leaf := map[string]any{}
	node := func(names ...string) map[string]any {
		m := map[string]any{".": leaf}
		for _, n := range names {
			m["f:"+n] = leaf
		}
		return m
	}
	meta := map[string]any{"f:generateName": leaf, "f:ownerReferences": map[string]any{".": leaf, fmt.Sprintf(`k:{"uid":%q}`, a.owner.UID): leaf}}
	l, n := node(), node()
	for k := range p.Labels {
		l["f:"+k] = leaf
	}
	for k := range p.Annotations {
		n["f:"+k] = leaf
	}
	meta["f:labels"], meta["f:annotations"] = l, n
	containers := map[string]any{}
	for _, c := range p.Spec.Containers {
		m := node("image", "imagePullPolicy", "name", "resources", "terminationMessagePath", "terminationMessagePolicy")
		env := node()
		for _, e := range c.Env {
			env[fmt.Sprintf(`k:{"name":%q}`, e.Name)] = node("name", "value")
		}
		m["f:env"] = env
		m["f:resources"] = map[string]any{".": leaf, "f:limits": node("memory"), "f:requests": node("cpu", "memory")}
		m["f:ports"] = map[string]any{".": leaf, fmt.Sprintf(`k:{"containerPort":%d,"protocol":"TCP"}`, c.Ports[0].ContainerPort): node("containerPort", "name", "protocol")}
		if c.LivenessProbe != nil {
			probe := node("failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds")
			probe["f:httpGet"] = node("path", "port", "scheme")
			m["f:livenessProbe"], m["f:readinessProbe"] = probe, probe
		}
		containers[fmt.Sprintf(`k:{"name":%q}`, c.Name)] = m
	}
	spec := map[string]any{"f:containers": containers}
	for _, f := range []string{"dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds"} {
		spec["f:"+f] = leaf
	}
	conditions := map[string]any{}
	for _, c := range p.Status.Conditions {
		conditions[fmt.Sprintf(`k:{"type":%q}`, c.Type)] = node("lastProbeTime", "lastTransitionTime", "observedGeneration", "status", "type")
	}
	status := map[string]any{"f:conditions": conditions, "f:podIPs": map[string]any{".": leaf, fmt.Sprintf(`k:{"ip":%q}`, noIP): node("ip")}}
	for _, f := range []string{"containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime"} {
		status["f:"+f] = leaf
	}
	return [2]string{asJSON(map[string]any{"f:metadata": meta, "f:spec": spec}), asJSON(map[string]any{"f:status": status})}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
