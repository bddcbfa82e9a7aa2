package health

import (
	"cmp"
	"strconv"
	"time"

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

// Containers returns the statuses of a pod's containers, init containers first.
func Containers(pod map[string]any) []map[string]any {
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

func (h *Health) pod(obj object) {
	phase := jsonmap.Text(obj, "status", "phase")
	ready, scheduled := ConditionOf(obj, "Ready"), ConditionOf(obj, "PodScheduled")
	ended := phase == "Succeeded" || phase == "Failed"
	switch {
	case phase == "Failed":
		h.sign("phase", event.Failure, cmp.Or(jsonmap.Text(obj, "status", "reason"), phase), jsonmap.Text(obj, "status", "message"), lastEnd(obj))
	case scheduled.Status == "False" && scheduled.Reason == "Unschedulable":
		h.sign("scheduled", event.Failure, scheduled.Reason, scheduled.Message, scheduled.Since)
	case ready.Status == "False" && phase == "Running" && lostReadiness(obj):
		message := ready.Message
		if message == "" && ConditionOf(obj, "ContainersReady").Status == "True" { // set by the node controller
			message = "although its containers are ready"
		}
		h.sign("ready", event.Warning, cmp.Or(ready.Reason, "NotReady"), message, ready.Since)
	}
	stuck := ""
	for _, c := range Containers(obj) {
		name, waiting := jsonmap.Text(c, "name"), jsonmap.Object(c, "state", "waiting")
		h.Restarts += count(c, "restartCount")
		if reason := jsonmap.Text(waiting, "reason"); Stuck[reason] {
			h.waits(c, name, reason, waiting)
			if stuck == "" {
				stuck = reason
			}
		}
		for _, state := range []string{"state", "lastState"} {
			h.ended(name, jsonmap.Object(c, state, "terminated"))
		}
	}
	h.Word, h.Since = phase, ready.Since
	switch {
	case ended:
		h.Since = lastEnd(obj)
	case stuck == "ErrImagePull": // the two take turns while nothing changes
		h.Word, h.Since = "ImagePullBackOff", time.Time{}
	case stuck != "":
		h.Word, h.Since = stuck, time.Time{}
	case ready.Status == "True":
		h.Word = "Ready"
	case phase == "":
		h.Word = "Pending"
	}
	h.Moving = !ended && ready.Status != "True"
}

func (h *Health) sign(key string, s event.Severity, reason, message string, at time.Time) {
	h.Signs = append(h.Signs, Sign{Key: key, Severity: s, Reason: reason, Message: message, At: at})
}

// waits adds a sign for a container that waits for something that does not come by itself. One that crashes has waited since
// its last end.
func (h *Health) waits(c object, name, reason string, waiting object) {
	s := Sign{Key: "waiting " + name, Severity: event.Failure, Reason: reason, Message: jsonmap.Text(waiting, "message"), Container: name}
	if reason == "CrashLoopBackOff" {
		end := jsonmap.Object(c, "lastState", "terminated")
		s.At, s.Message = jsonmap.Time(end, "finishedAt"), how(end)
	}
	h.Signs = append(h.Signs, s)
}

// ended adds a sign for a container's end. The same end moves from state to lastState.
func (h *Health) ended(name string, end object) {
	severity := event.Warning
	switch {
	case end == nil:
		return
	case jsonmap.Text(end, "reason") == "OOMKilled":
		severity = event.Failure
	case count(end, "exitCode") == 0:
		return
	}
	h.Signs = append(h.Signs, Sign{
		Key: "ended " + name + " " + jsonmap.Text(end, "finishedAt"), Severity: severity, Past: true,
		Reason: how(end), Container: name, At: jsonmap.Time(end, "finishedAt"),
	})
}

// how says how a container ended.
func how(end object) string {
	if end == nil {
		return ""
	}
	if reason := jsonmap.Text(end, "reason"); reason != "" && reason != "Error" && reason != "Completed" {
		return reason
	}
	return "exit code " + strconv.Itoa(count(end, "exitCode"))
}

// lastEnd returns when the last container of a pod ended; zero if none has.
func lastEnd(pod object) (last time.Time) {
	for _, c := range Containers(pod) {
		if at := jsonmap.Time(c, "state", "terminated", "finishedAt"); at.After(last) {
			last = at
		}
	}
	return last
}

// lostReadiness reports whether an unready pod was ready before: a container has run since before the condition changed.
func lostReadiness(pod object) bool {
	since := ConditionOf(pod, "Ready").Since
	if ConditionOf(pod, "ContainersReady").Status == "True" {
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

// PodRecovered reports whether a pod is ready again, as opposed to ready for the first time.
func PodRecovered(before, after map[string]any) bool {
	if before == nil || ConditionOf(before, "Ready").Status == "True" || ConditionOf(after, "Ready").Status != "True" {
		return false
	}
	h := Read("Pod", before)
	return len(h.Signs) > 0 || h.Restarts > 0 || lostReadiness(before)
}
