package severity

import (
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Stuck lists the reasons of waiting containers that do not resolve by themselves (k8s.io/kubernetes:
// pkg/kubelet/container, pkg/kubelet/images).
var Stuck = map[string]bool{
	"CrashLoopBackOff": true, "ImagePullBackOff": true, "ErrImagePull": true, "InvalidImageName": true,
	"ErrImageNeverPull": true, "RegistryUnavailable": true, "CreateContainerConfigError": true,
	"CreateContainerError": true, "RunContainerError": true,
}

// containers returns the statuses of a pod's containers, init containers first.
func containers(pod object) []object {
	var out []object
	for _, key := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, e := range jsonmap.List(pod, "status", key) {
			if m, ok := e.(object); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

func (s signs) pod(obj object) {
	phase := jsonmap.Text(obj, "status", "phase")
	ready, scheduled := conditionOf(obj, "Ready"), conditionOf(obj, "PodScheduled")
	switch {
	case phase == "Failed":
		s["phase"] = event.Failure
	case scheduled.status == "False" && scheduled.reason == "Unschedulable":
		s["scheduled"] = event.Failure
	case ready.status == "False" && phase == "Running" && lostReadiness(obj):
		s["ready"] = event.Warning
	}
	for _, c := range containers(obj) {
		name := jsonmap.Text(c, "name")
		if Stuck[jsonmap.Text(c, "state", "waiting", "reason")] {
			s["waiting "+name] = event.Failure
		}
		for _, state := range []string{"state", "lastState"} {
			s.ended(name, jsonmap.Object(c, state, "terminated"))
		}
	}
}

// ended adds a sign for a container's end. The same end moves from state to lastState.
func (s signs) ended(name string, end object) {
	key := past + name + " " + jsonmap.Text(end, "finishedAt")
	switch {
	case jsonmap.Text(end, "reason") == "OOMKilled":
		s[key] = event.Failure
	case number(end, "exitCode") != 0:
		s[key] = event.Warning
	}
}

// lostReadiness reports whether an unready pod was ready before: a container has run since before the condition changed.
func lostReadiness(pod object) bool {
	since := conditionOf(pod, "Ready").since
	if conditionOf(pod, "ContainersReady").status == "True" {
		return true // set by the node controller, not by the kubelet
	}
	for _, c := range jsonmap.List(pod, "status", "containerStatuses") {
		c, _ := c.(object)
		if began := jsonmap.Time(c, "state", "running", "startedAt"); !began.IsZero() && began.Before(since) {
			return true
		}
	}
	return false
}

// podRecovered reports whether a pod is ready again, as opposed to ready for the first time.
func podRecovered(before, after object) bool {
	if before == nil || conditionOf(before, "Ready").status == "True" || conditionOf(after, "Ready").status != "True" {
		return false
	}
	if len(read("Pod", before)) > 0 || lostReadiness(before) {
		return true
	}
	for _, c := range containers(before) {
		if number(c, "restartCount") > 0 {
			return true
		}
	}
	return false
}
