package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// isState reports whether a field describes an object's state rather than its spec: its status, the steps of its deletion,
// and fields that the controllers of Kubernetes write elsewhere.
func isState(c change.Change, f change.FieldChange) bool {
	first, second, key := field(f.Path, 0), field(f.Path, 1), field(f.Path, 2)
	switch {
	case first == "status":
		return true
	case first == "metadata":
		switch second {
		case "resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds":
			return true
		case "finalizers": // a Job's controller removes its finalizer from counted pods
			return terminating(c.After) || isPod(c.Kind)
		case "annotations":
			return controllersAnnotation(key)
		}
		return false
	}
	switch c.Kind.GroupKind() {
	case "Pod": // the scheduler's binding
		return first == "spec" && second == "nodeName"
	case "PersistentVolumeClaim":
		return first == "spec" && second == "volumeName"
	case "ReplicaSet.apps": // a rollout's steps, but not a person's kubectl scale
		return first == "spec" && second == "replicas" && c.Owner != nil &&
			(f.Manager == "kube-controller-manager" || f.Manager == unknown)
	}
	return false
}

// controllersAnnotation reports whether the controllers of kube-controller-manager use an annotation for themselves
// (k8s.io/kubernetes: pkg/controller/deployment/util, pkg/controller/volume).
func controllersAnnotation(key string) bool {
	return strings.HasPrefix(key, "deployment.kubernetes.io/") || strings.HasPrefix(key, "pv.kubernetes.io/") ||
		strings.HasPrefix(key, "volume.kubernetes.io/")
}

// field returns the name of a path's step; empty if it does not exist or is not a field.
func field(p diff.Path, i int) string {
	if i >= len(p) || p[i].Kind != diff.Field {
		return ""
	}
	return p[i].Name
}

func isPod(r change.Kind) bool { return r.GroupKind() == "Pod" }

// view is the input of a summary.
type view struct {
	created   bool   // created by the summarized changes
	lastState string // the state in the last line
	// origin is the object before its transition; from and to are the object before and after the summarized changes.
	origin, from, to map[string]any
	since, end       moment // the write that began the transition, and the change that ended it or the last one
	dropped          moment // when pods last ceased to be ready
	drops            int    // how often they did
	now              time.Time
	down             map[string]bool // nodes that are not ready
	net              *netChanges
	idle             bool     // only owned objects changed
	failures         string   // what keeps its pods from running
	pods             string   // how many of its pods were created and deleted
	why              string   // how the last pod of a Job failed
	runs             []jobRun // its jobs that ended
}

// lifecycle describes how a kind changes its state. Every function may be nil.
type lifecycle struct {
	// moving reports whether the object is in transition.
	moving func(from, to map[string]any) bool
	// state describes an object in a few words.
	state func(obj map[string]any) string
	// summary describes the net effect of a view; empty if it has no words for it.
	summary func(v view) string
}

// lifecycles are the kinds with a known lifecycle; all others have conditions, a phase or just fields.
var lifecycles = map[string]lifecycle{
	"Pod":                                 {podMoving, podState, podSummary},
	"Deployment.apps":                     {deploymentMoving, readyState, rolloutSummary},
	"StatefulSet.apps":                    {statefulSetMoving, readyState, rolloutSummary},
	"DaemonSet.apps":                      {daemonSetMoving, readyState, rolloutSummary},
	"ReplicaSet.apps":                     {replicaSetMoving, readyState, replicaSetSummary},
	"ReplicationController":               {replicaSetMoving, readyState, replicaSetSummary},
	"Job.batch":                           {jobMoving, jobState, jobSummary},
	"CronJob.batch":                       {cronMoving, nil, cronSummary},
	"Node":                                {nil, nodeState, nil},
	"PersistentVolumeClaim":               {pending, nil, claimSummary},
	"HorizontalPodAutoscaler.autoscaling": {nil, nil, autoscalerSummary},
}

// moving reports whether an object is in transition, so that its line can wait for the end.
func moving(r change.Kind, from, to map[string]any) bool {
	if terminating(to) {
		return true
	}
	if m := lifecycles[r.GroupKind()].moving; m != nil {
		return m(from, to)
	}
	return stale(to)
}

func pending(_, to map[string]any) bool { return jsonmap.Text(to, "status", "phase") == "Pending" }

// How long an object in transition may not change before its line is printed. Pods show why a rollout waits, so workloads
// wait longer.
const (
	defaultReportDelay = 10 * time.Second
	rolloutReportDelay = 30 * time.Second
)

func reportDelay(r change.Kind, owned bool, origin, to map[string]any) time.Duration {
	if terminating(to) {
		if !owned {
			return idleDelay // a user deleted it, and may wonder why it still exists
		}
		grace := time.Duration(count(to, "metadata", "deletionGracePeriodSeconds")) * time.Second
		return grace + defaultReportDelay
	}
	switch r.GroupKind() {
	case "Pod":
		if reason, _ := podTrouble(to); reason != "" {
			return idleDelay
		}
		return defaultReportDelay
	case "CronJob.batch":
		return rolloutReportDelay
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController", "Job.batch":
		if unobserved(origin) || !diff.Equal(jsonmap.Get(origin, "metadata", "generation"), jsonmap.Get(to, "metadata", "generation")) {
			return rolloutReportDelay
		}
	}
	return defaultReportDelay
}

// stateOf describes an object in a few words, if there are any.
func stateOf(r change.Kind, obj map[string]any) string {
	if terminating(obj) {
		return "terminating"
	}
	if s := lifecycles[r.GroupKind()].state; s != nil {
		return s(obj)
	}
	if phase := jsonmap.Text(obj, "status", "phase"); phase != "" {
		return phase
	}
	for _, kind := range []string{"Ready", "Available", "Established"} {
		switch c := conditionOf(obj, kind); {
		case c.status == "True":
			return kind
		case c.status != "":
			return kind + ": " + c.status + because(c)
		}
	}
	return ""
}

// gist is the part of a state that a line repeats only after a while: the state without counts.
func gist(r change.Kind, obj map[string]any) string {
	if isPod(r) && health.Failing("Pod", obj) == event.Failure {
		return podWord(obj)
	}
	return stateOf(r, obj)
}

// stateWhenCreated describes a created object that has an owner.
func stateWhenCreated(r change.Kind, obj map[string]any) string {
	switch r.GroupKind() {
	case "ReplicaSet.apps":
		if revision := jsonmap.Text(obj, "metadata", "annotations", "deployment.kubernetes.io/revision"); revision != "" {
			return "revision " + revision
		}
	case "ControllerRevision.apps":
		return fmt.Sprintf("revision %d", count(obj, "revision"))
	}
	if jsonmap.Text(obj, "status", "phase") == "" && len(conditions(obj)) == 0 {
		return ""
	}
	return stateOf(r, obj)
}

// summarize describes the net effect of a view.
func summarize(r change.Kind, v view) string {
	said := describeView(r, v)
	switch {
	case said != "":
	case v.idle:
		said = "owned objects changed"
	default:
		said = v.net.String()
	}
	if v.created && !isPod(r) && r.GroupKind() != "Job.batch" {
		return joined(joined("new", ", ", stateWhenCreated(r, v.to)), ": ", said)
	}
	return said
}

// describeView describes the net effect of a view in words, if there are any.
func describeView(r change.Kind, v view) string {
	if terminating(v.to) && !isPod(r) {
		return waitsForFinalizers(v.to)
	}
	if s := lifecycles[r.GroupKind()].summary; s != nil {
		if said := s(v); said != "" {
			return said
		}
	}
	return strings.Join(transitions(r, v), ", ")
}

// waitsForFinalizers describes why a terminating object still exists.
func waitsForFinalizers(obj map[string]any) string {
	var names []string
	for _, f := range append(jsonmap.List(obj, "spec", "finalizers"), jsonmap.List(obj, "metadata", "finalizers")...) {
		names = append(names, fmt.Sprint(f))
	}
	if len(names) == 0 {
		return "terminating"
	}
	return "terminating, waits for finalizers: " + strings.Join(names, ", ")
}

// maxTransitions bounds the transitions in a line.
const maxTransitions = 3

// transitions describes the changes of the phase, the addresses and the conditions, which many kinds have in their status.
func transitions(r change.Kind, v view) []string {
	var parts []string
	for _, key := range []string{"phase", "state"} {
		if from, to := jsonmap.Text(v.from, "status", key), jsonmap.Text(v.to, "status", key); from != to && to != "" {
			parts = append(parts, arrow(from, to))
		}
	}
	if from, to := addresses(v.from), addresses(v.to); from != to {
		parts = append(parts, "load balancer "+arrow(from, to))
	}
	before := map[string]condition{}
	for _, c := range conditions(v.from) {
		before[c.kind] = c
	}
	for _, c := range conditions(v.to) {
		from := before[c.kind]
		switch {
		case from.status == c.status:
		case r.GroupKind() == "Node" && c.kind == "Ready":
			parts = append(parts, arrow(nodeReady(from), nodeReady(c))+because(c))
		default:
			parts = append(parts, c.kind+": "+arrow(from.status, c.status)+because(c))
		}
	}
	// A node's readiness explains its other conditions.
	slices.SortStableFunc(parts, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if more := len(parts) - maxTransitions; more > 0 {
		parts = append(parts[:maxTransitions], fmt.Sprintf("%d more", more))
	}
	return parts
}

// rank puts a node's readiness first.
func rank(transition string) int {
	if strings.HasPrefix(transition, "Ready → NotReady") || strings.HasPrefix(transition, "NotReady → Ready") {
		return 0
	}
	return 1
}

func arrow(from, to string) string {
	switch {
	case from == "":
		return to
	case to == "":
		return from + " → none"
	}
	return from + " → " + to
}

// because returns a condition's reason, and the message of a failing one.
func because(c condition) string {
	why := c.reason
	if c.kind == "Ready" && c.status != "True" && c.message != "" {
		why = strings.TrimPrefix(why+": "+c.message, ": ")
	}
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// addresses returns the addresses of a Service's or Ingress's load balancer.
func addresses(obj map[string]any) string {
	var out []string
	for _, e := range jsonmap.List(obj, "status", "loadBalancer", "ingress") {
		m, _ := e.(map[string]any)
		if a := jsonmap.Text(m, "ip") + jsonmap.Text(m, "hostname"); a != "" {
			out = append(out, a)
		}
	}
	return strings.Join(out, ", ")
}
