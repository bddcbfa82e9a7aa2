// Package severity classifies changes: failure, warning, recovery or normal.
//
// It depends on the object before and after a change only, so the same change always has the same severity. A condition
// that the object already had is not news: a pod waiting in CrashLoopBackOff is a failure once, not with each write of its
// status. For the same reason a recovery is only what the two objects show: a container that runs again has recovered,
// even if it crashes a minute later.
package severity

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

type object = map[string]any

// signs are the things that are wrong with an object, by keys that stay the same while they last.
type signs map[string]event.Severity

// past is the prefix of signs that stay in the object after the event, such as how a container ended.
const past = "past/"

// Of returns the severity of a change of a kind, such as Pod or Deployment.apps. A new object is judged by its state. Top-level
// fields but metadata may be missing from both objects if they are equal (jsonmap.DecodeChanged).
func Of(op event.Op, kind string, before, after map[string]any) event.Severity {
	switch op {
	case event.Gap:
		return event.Warning
	case event.Deleted, event.Left, event.Converted:
		return event.Normal
	}
	if after == nil || op == event.Updated && before == nil {
		return event.Normal
	}
	was, is := read(kind, before), read(kind, after)
	news := event.Normal
	for key, s := range is {
		if s == was[key] || was[key] == event.Failure {
			continue
		}
		if news = s; s == event.Failure {
			break
		}
	}
	if news == event.Normal && recovered(kind, before, after, was, is) {
		return event.Recovery
	}
	return news
}

// Failing returns the severity of what is wrong with an object now; Normal if nothing is.
func Failing(kind string, obj map[string]any) event.Severity {
	worst := event.Normal
	for key, s := range read(kind, obj) {
		if strings.HasPrefix(key, past) {
			continue
		}
		if worst = s; s == event.Failure {
			break
		}
	}
	return worst
}

// read returns the signs of an object.
func read(kind string, obj object) signs {
	s := signs{}
	if obj == nil {
		return s
	}
	switch kind {
	case "Pod":
		s.pod(obj)
	case "Node":
		s.node(obj)
	case "Event", "Event.events.k8s.io":
		s.event(obj)
	case "Deployment.apps":
		s.deployment(obj)
	case "ReplicaSet.apps", "ReplicationController":
		s.condition(obj, "ReplicaFailure", "True", event.Failure)
	case "Job.batch":
		s.condition(obj, "Failed", "True", event.Failure)
		if n := number(obj, "status", "failed"); n > 0 {
			s[fmt.Sprintf("%sfailed %d", past, n)] = event.Warning
		}
	case "HorizontalPodAutoscaler.autoscaling":
		s.condition(obj, "ScalingActive", "False", event.Warning)
		s.condition(obj, "AbleToScale", "False", event.Warning)
	case "Secret", "ConfigMap":
		s.helm(obj)
	case "PersistentVolumeClaim", "PersistentVolume":
		if phase := jsonmap.Text(obj, "status", "phase"); phase == "Lost" || phase == "Failed" {
			s["phase"] = event.Failure
		}
	default:
		s.other(obj)
	}
	return s
}

// recovered reports whether a change ended everything that was wrong.
func recovered(kind string, before, after object, was, is signs) bool {
	if jsonmap.Text(after, "metadata", "deletionTimestamp") != "" {
		return false
	}
	if kind == "Pod" {
		return podRecovered(before, after)
	}
	ended := false
	for key := range was {
		if strings.HasPrefix(key, past) {
			continue
		}
		if _, still := is[key]; still {
			return false
		}
		ended = true
	}
	return ended
}

// condition adds a sign for a condition with a status.
func (s signs) condition(obj object, kind, status string, as event.Severity) {
	if conditionOf(obj, kind).status == status {
		s[kind] = as
	}
}

// deployment adds signs for a stuck rollout, and for pods lost outside a rollout.
func (s signs) deployment(obj object) {
	s.condition(obj, "ReplicaFailure", "True", event.Failure)
	progress := conditionOf(obj, "Progressing")
	if progress.reason == "ProgressDeadlineExceeded" {
		s["Progressing"] = event.Failure
	}
	if progress.reason == "NewReplicaSetAvailable" || progress.reason == "ProgressDeadlineExceeded" {
		s.condition(obj, "Available", "False", event.Warning)
	}
}

// helm adds a sign for a failed Helm 3 release, by the name and the labels of the object that stores it.
func (s signs) helm(obj object) {
	ours := strings.HasPrefix(jsonmap.Text(obj, "metadata", "name"), "sh.helm.release.v1.")
	labels := jsonmap.Object(obj, "metadata", "labels")
	if ours && jsonmap.Text(labels, "owner") == "helm" && jsonmap.Text(labels, "status") == "failed" {
		s["helm"] = event.Failure
	}
}

// newNode is how long a new node may take to become ready.
const newNode = time.Minute

func (s signs) node(obj object) {
	ready := conditionOf(obj, "Ready")
	fresh := ready.status == "False" && ready.since.Sub(jsonmap.Time(obj, "metadata", "creationTimestamp")) < newNode
	if ready.status != "" && ready.status != "True" && !fresh {
		s["Ready"] = event.Failure
	}
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		s.condition(obj, kind, "True", event.Warning)
	}
}

// failures lists the reasons of Kubernetes' warning events that report a failure (k8s.io/kubernetes: pkg/kubelet/events,
// pkg/scheduler, pkg/controller).
var failures = map[string]bool{
	"FailedScheduling": true, "Failed": true, "BackOff": true, "Evicted": true, "OOMKilling": true, "SystemOOM": true,
	"NodeNotReady": true, "FailedCreate": true, "FailedMount": true, "FailedAttachVolume": true, "FailedCreatePodSandBox": true,
	"BackoffLimitExceeded": true, "DeadlineExceeded": true, "ProvisioningFailed": true, "InspectFailed": true, "ErrImageNeverPull": true,
}

func (s signs) event(obj object) {
	if jsonmap.Text(obj, "type") != "Warning" {
		return
	}
	s[past+"event"] = event.Warning
	if failures[jsonmap.Text(obj, "reason")] {
		s[past+"event"] = event.Failure
	}
}

// other adds signs from conventions that many kinds share.
func (s signs) other(obj object) {
	switch jsonmap.Text(obj, "status", "phase") {
	case "Failed", "Error":
		s["phase"] = event.Failure
	}
	for _, kind := range []string{"Failed", "Stalled"} {
		s.condition(obj, kind, "True", event.Failure)
	}
	s.condition(obj, "Degraded", "True", event.Warning)
	for _, kind := range []string{"Ready", "Available", "Healthy"} {
		c := conditionOf(obj, kind)
		// An object that has just been created is not ready yet.
		if c.status == "False" && c.since.After(jsonmap.Time(obj, "metadata", "creationTimestamp").Add(newNode)) {
			s[kind] = event.Warning
		}
	}
}
