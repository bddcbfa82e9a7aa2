// Package health reads from an object whether its controllers have work to do, and what is wrong with it.
//
// It depends on the object alone: the same object always has the same health. Severities compare the health before and after
// a change, and stories follow it. The times are the object's own.
package health

import (
	"cmp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Health is the state of an object.
type Health struct {
	// Moving is set while the object's controllers have work to do: a rollout, a pod that is not ready yet, a Job that runs.
	Moving bool
	// Word is the state in a word, such as Ready, CrashLoopBackOff or a phase; empty if the kind has none.
	Word string
	// Since is when the object came into the state, as it says itself; zero if it does not say.
	Since time.Time
	// Signs are what is wrong, in the order in which the object has them.
	Signs []Sign
	// Pods counts the pods of a workload.
	Pods Pods
	// Restarts counts the restarts of a pod's containers.
	Restarts int
}

// Pods counts the pods of a workload, as its status has them.
type Pods struct{ Wanted, Ready, Updated int }

// Sign is something that is wrong with an object.
type Sign struct {
	// Key stays the same while the sign lasts: the two reasons of an image that cannot be pulled take turns, and have one.
	Key string
	// Severity is failure or warning.
	Severity event.Severity
	// Past signs stay in the object when what happened is over, such as how a container ended.
	Past bool
	// Reason and Message are the object's words; both may be empty.
	Reason, Message string
	// Container is the container of a pod.
	Container string
	// At is when it began, as the object says; zero if it does not say.
	At time.Time
}

// Failing returns the severity of what is wrong now; Normal if nothing is.
func (h *Health) Failing() event.Severity {
	if s := h.Worst(); s != nil {
		return s.Severity
	}
	return event.Normal
}

// Worst returns the worst sign that is not past, the first of equals; nil without one.
func (h *Health) Worst() (worst *Sign) {
	for i := range h.Signs {
		if s := &h.Signs[i]; !s.Past && (worst == nil || worst.Severity != event.Failure && s.Severity == event.Failure) {
			worst = s
		}
	}
	return worst
}

// Sign returns the sign with a key; nil if there is none.
func (h *Health) Sign(key string) *Sign {
	for i := range h.Signs {
		if h.Signs[i].Key == key {
			return &h.Signs[i]
		}
	}
	return nil
}

type object = map[string]any

// readers read the kinds with a state of their own.
var readers = map[string]func(h *Health, obj object){
	"Pod":                                 (*Health).pod,
	"Deployment.apps":                     (*Health).deployment,
	"StatefulSet.apps":                    (*Health).statefulSet,
	"DaemonSet.apps":                      (*Health).daemonSet,
	"ReplicaSet.apps":                     (*Health).replicaSet,
	"ReplicationController":               (*Health).replicaSet,
	"Job.batch":                           (*Health).job,
	"CronJob.batch":                       (*Health).cronJob,
	"Node":                                (*Health).node,
	"HorizontalPodAutoscaler.autoscaling": (*Health).autoscaler,
	"PersistentVolumeClaim":               (*Health).volume,
	"PersistentVolume":                    (*Health).volume,
	"Secret":                              (*Health).release,
	"ConfigMap":                           (*Health).release,
	"Event":                               (*Health).event,
	"Event.events.k8s.io":                 (*Health).event,
}

// Read returns the health of an object of a kind, such as Pod or Deployment.apps; the zero Health of nil.
func Read(kind string, obj map[string]any) Health {
	var h Health
	if obj == nil {
		return h
	}
	if read := readers[kind]; read != nil {
		read(&h, obj)
	} else {
		h.other(obj)
	}
	return h
}

// Terminating reports whether an object is being deleted.
func Terminating(obj map[string]any) bool {
	return jsonmap.Text(obj, "metadata", "deletionTimestamp") != ""
}

// Asked returns when the deletion of an object was asked for; zero if it was not. The timestamp in the object lies after the
// grace period.
func Asked(obj map[string]any) time.Time {
	at := jsonmap.Time(obj, "metadata", "deletionTimestamp")
	if at.IsZero() {
		return at
	}
	return at.Add(-time.Duration(count(obj, "metadata", "deletionGracePeriodSeconds")) * time.Second)
}

// Stale reports whether the controller has not yet seen an object's last change.
func Stale(obj map[string]any) bool {
	want, ok := jsonmap.Integer(obj, "metadata", "generation")
	seen, reports := jsonmap.Integer(obj, "status", "observedGeneration")
	return ok && reports && seen < want
}

// Condition is an entry of status.conditions, as most kinds have them.
type Condition struct {
	Type, Status, Reason, Message string
	// Since is when the status changed last; Updated is when a Deployment's controller wrote the condition last.
	Since, Updated time.Time
}

// Conditions returns an object's conditions, in its order.
func Conditions(obj map[string]any) []Condition {
	list := jsonmap.List(obj, "status", "conditions")
	out := make([]Condition, 0, len(list))
	for _, e := range list {
		m, _ := e.(object)
		out = append(out, conditionIn(m))
	}
	return out
}

func conditionIn(m object) Condition {
	return Condition{
		jsonmap.Text(m, "type"), jsonmap.Text(m, "status"), jsonmap.Text(m, "reason"), jsonmap.Text(m, "message"),
		jsonmap.Time(m, "lastTransitionTime"), jsonmap.Time(m, "lastUpdateTime"),
	}
}

// ConditionOf returns the condition of a type; the zero Condition if there is none.
func ConditionOf(obj map[string]any, kind string) Condition {
	for _, e := range jsonmap.List(obj, "status", "conditions") {
		if m, _ := e.(object); jsonmap.Text(m, "type") == kind {
			return conditionIn(m)
		}
	}
	return Condition{}
}

// condition adds a sign for a condition with a status.
func (h *Health) condition(obj object, kind, status string, as event.Severity) {
	if c := ConditionOf(obj, kind); c.Status == status {
		h.Signs = append(h.Signs, Sign{Key: kind, Severity: as, Reason: cmp.Or(c.Reason, kind), Message: c.Message, At: c.Since})
	}
}

// count reads an integer, and 0 if it is absent, as in the counters of a status.
func count(obj object, path ...string) int {
	n, _ := jsonmap.Integer(obj, path...)
	return int(n)
}

// release adds a sign for a failed Helm 3 release, by the name and the labels of the object that stores it.
func (h *Health) release(obj object) {
	labels := jsonmap.Object(obj, "metadata", "labels")
	if !strings.HasPrefix(jsonmap.Text(obj, "metadata", "name"), "sh.helm.release.v1.") || jsonmap.Text(labels, "owner") != "helm" {
		return
	}
	h.Word = jsonmap.Text(labels, "status")
	h.Moving = strings.HasPrefix(h.Word, "pending-") || h.Word == "uninstalling"
	if h.Word == "failed" {
		h.Signs = append(h.Signs, Sign{Key: "helm", Severity: event.Failure, Reason: h.Word})
	}
}

// failures lists the reasons of Kubernetes' warning events that report a failure (k8s.io/kubernetes: pkg/kubelet/events,
// pkg/scheduler, pkg/controller).
var failures = map[string]bool{
	"FailedScheduling": true, "Failed": true, "BackOff": true, "Evicted": true, "OOMKilling": true, "SystemOOM": true,
	"NodeNotReady": true, "FailedCreate": true, "FailedMount": true, "FailedAttachVolume": true, "FailedCreatePodSandBox": true,
	"BackoffLimitExceeded": true, "DeadlineExceeded": true, "ProvisioningFailed": true, "InspectFailed": true, "ErrImageNeverPull": true,
}

func (h *Health) event(obj object) {
	if jsonmap.Text(obj, "type") != "Warning" {
		return
	}
	s := Sign{Key: "event", Severity: event.Warning, Past: true, Reason: jsonmap.Text(obj, "reason"), Message: jsonmap.Text(obj, "message") + jsonmap.Text(obj, "note")}
	if failures[s.Reason] {
		s.Severity = event.Failure
	}
	h.Signs = append(h.Signs, s)
}

// fresh is how long a new object may take to become ready before that is worth a warning.
const fresh = time.Minute

// other reads the conventions that many kinds share.
func (h *Health) other(obj object) {
	h.Moving = Stale(obj)
	switch h.Word = jsonmap.Text(obj, "status", "phase"); h.Word {
	case "Failed", "Error":
		h.Signs = append(h.Signs, Sign{Key: "phase", Severity: event.Failure, Reason: h.Word, Message: jsonmap.Text(obj, "status", "message")})
	}
	for _, kind := range []string{"Failed", "Stalled"} {
		h.condition(obj, kind, "True", event.Failure)
	}
	h.condition(obj, "Degraded", "True", event.Warning)
	for _, kind := range []string{"Ready", "Available", "Healthy", "Established"} {
		c := ConditionOf(obj, kind)
		if c.Status == "" {
			continue
		}
		if h.Word == "" {
			if h.Since = c.Since; c.Status == "True" {
				h.Word = kind
			} else {
				h.Word = kind + ": " + c.Status
			}
		}
		// An object that has just been created is not ready yet.
		if kind != "Established" && c.Status == "False" && c.Since.After(jsonmap.Time(obj, "metadata", "creationTimestamp").Add(fresh)) {
			h.Signs = append(h.Signs, Sign{Key: kind, Severity: event.Warning, Reason: c.Reason, Message: c.Message, At: c.Since})
		}
	}
}

// Failing returns the severity of what is wrong with an object now; Normal if nothing is.
func Failing(kind string, obj map[string]any) event.Severity {
	h := Read(kind, obj)
	return h.Failing()
}
