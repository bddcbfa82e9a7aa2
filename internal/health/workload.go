package health

import (
	"cmp"
	"strconv"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// pods reads the counters of a workload. The server leaves out those that are 0; the number of wanted pods is 1 by default.
func (h *Health) pods(obj object) {
	h.Pods = Pods{
		Wanted:  1,
		Ready:   count(obj, "status", "readyReplicas") + count(obj, "status", "numberReady"),
		Updated: count(obj, "status", "updatedReplicas") + count(obj, "status", "updatedNumberScheduled"),
	}
	if n, ok := jsonmap.Integer(obj, "status", "desiredNumberScheduled"); ok { // DaemonSet
		h.Pods.Wanted = int(n)
	} else if n, ok := jsonmap.Integer(obj, "spec", "replicas"); ok {
		h.Pods.Wanted = int(n)
	}
}

// Unobserved reports whether an object's controller has not seen it yet.
func Unobserved(obj map[string]any) bool {
	_, seen := jsonmap.Integer(obj, "status", "observedGeneration")
	return !seen
}

// deployment follows "kubectl rollout status" (k8s.io/kubectl: pkg/polymorphichelpers).
func (h *Health) deployment(obj object) {
	h.pods(obj)
	h.condition(obj, "ReplicaFailure", "True", event.Failure)
	progress := ConditionOf(obj, "Progressing")
	late := progress.Reason == "ProgressDeadlineExceeded" && !Stale(obj)
	if progress.Reason == "ProgressDeadlineExceeded" {
		h.sign("Progressing", event.Failure, progress.Reason, progress.Message, progress.Since)
	}
	if progress.Reason == "NewReplicaSetAvailable" || progress.Reason == "ProgressDeadlineExceeded" {
		h.condition(obj, "Available", "False", event.Warning)
	}
	want := h.Pods.Wanted
	complete := !Unobserved(obj) && !Stale(obj) && h.Pods.Updated == want && count(obj, "status", "replicas") == want &&
		count(obj, "status", "availableReplicas") == want
	h.Moving = !complete && !late && jsonmap.Get(obj, "spec", "paused") != true
	if complete && progress.Reason == "NewReplicaSetAvailable" {
		h.Since = progress.Updated
	}
}

func (h *Health) statefulSet(obj object) {
	h.pods(obj)
	want := h.Pods.Wanted
	if h.Moving = Unobserved(obj) || Stale(obj) || count(obj, "status", "replicas") != want || h.Pods.Ready != want; h.Moving {
		return
	}
	partition := count(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
	onDelete := jsonmap.Text(obj, "spec", "updateStrategy", "type") == "OnDelete"
	h.Moving = !onDelete && jsonmap.Text(obj, "status", "updateRevision") != jsonmap.Text(obj, "status", "currentRevision") &&
		h.Pods.Updated < want-partition
}

func (h *Health) daemonSet(obj object) {
	h.pods(obj)
	onDelete := jsonmap.Text(obj, "spec", "updateStrategy", "type") == "OnDelete"
	h.Moving = Unobserved(obj) || Stale(obj) || h.Pods.Ready != h.Pods.Wanted || !onDelete && h.Pods.Updated != h.Pods.Wanted
}

// replicaSet is also moving during a rollout, while it has some of its Deployment's pods, but not all.
func (h *Health) replicaSet(obj object) {
	h.pods(obj)
	h.condition(obj, "ReplicaFailure", "True", event.Failure)
	want := h.Pods.Wanted
	desired := jsonmap.Text(obj, "metadata", "annotations", "deployment.kubernetes.io/desired-replicas")
	h.Moving = Unobserved(obj) || Stale(obj) || count(obj, "status", "replicas") != want || h.Pods.Ready != want ||
		desired != "" && want != 0 && strconv.Itoa(want) != desired
}

func (h *Health) job(obj object) {
	h.condition(obj, "Failed", "True", event.Failure)
	if n := count(obj, "status", "failed"); n > 0 {
		h.Signs = append(h.Signs, Sign{Key: "failed " + strconv.Itoa(n), Severity: event.Warning, Past: true})
	}
	complete, failed := ConditionOf(obj, "Complete"), ConditionOf(obj, "Failed")
	switch {
	case complete.Status == "True":
		h.Word, h.Since = "Complete", jsonmap.Time(obj, "status", "completionTime")
	case failed.Status == "True":
		h.Word, h.Since = "Failed", failed.Since
	case jsonmap.Get(obj, "spec", "suspend") == true:
		h.Word, h.Since = "Suspended", ConditionOf(obj, "Suspended").Since
	default:
		h.Word, h.Since, h.Moving = "Running", jsonmap.Time(obj, "status", "startTime"), true
	}
}

// cronJob is moving while a job of its runs.
func (h *Health) cronJob(obj object) { h.Moving = len(jsonmap.List(obj, "status", "active")) > 0 }

func (h *Health) node(obj object) {
	ready := ConditionOf(obj, "Ready")
	isNew := ready.Status == "False" && ready.Since.Sub(jsonmap.Time(obj, "metadata", "creationTimestamp")) < fresh
	switch ready.Status {
	case "":
	case "True":
		h.Word, h.Since = "Ready", ready.Since
	default: // the controller manager sets Unknown when the kubelet is silent
		h.Word, h.Since = "NotReady", ready.Since
		if !isNew {
			h.sign("Ready", event.Failure, cmp.Or(ready.Reason, "NotReady"), ready.Message, ready.Since)
		}
	}
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		h.condition(obj, kind, "True", event.Warning)
	}
}

func (h *Health) autoscaler(obj object) {
	h.condition(obj, "ScalingActive", "False", event.Warning)
	h.condition(obj, "AbleToScale", "False", event.Warning)
}

func (h *Health) volume(obj object) {
	h.Word = jsonmap.Text(obj, "status", "phase")
	h.Moving = h.Word == "Pending"
	if h.Word == "Lost" || h.Word == "Failed" {
		h.sign("phase", event.Failure, h.Word, jsonmap.Text(obj, "status", "message"), jsonmap.Time(obj, "status", "lastPhaseTransitionTime"))
	}
}
