package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// wanted returns the number of pods that a workload should have; the default is one.
func wanted(obj map[string]any) int64 {
	if n, ok := jsonmap.Integer(obj, "status", "desiredNumberScheduled"); ok { // DaemonSet
		return n
	}
	if n, ok := jsonmap.Integer(obj, "spec", "replicas"); ok {
		return n
	}
	return 1
}

// isReady returns the number of a workload's ready pods. The server leaves out counters that are 0.
func isReady(obj map[string]any) int64 {
	return count(obj, "status", "readyReplicas") + count(obj, "status", "numberReady")
}

func isUpdated(obj map[string]any) int64 {
	return count(obj, "status", "updatedReplicas") + count(obj, "status", "updatedNumberScheduled")
}

// unobserved reports whether an object's controller has not seen it yet.
func unobserved(obj map[string]any) bool {
	_, seen := jsonmap.Integer(obj, "status", "observedGeneration")
	return !seen
}

// deploymentMoving follows "kubectl rollout status" (k8s.io/kubectl: pkg/polymorphichelpers).
func deploymentMoving(_, to map[string]any) bool {
	if conditionOf(to, "Progressing").reason == "ProgressDeadlineExceeded" && !stale(to) || jsonmap.Get(to, "spec", "paused") == true {
		return false
	}
	want := wanted(to)
	return unobserved(to) || stale(to) || isUpdated(to) != want || count(to, "status", "replicas") != want ||
		count(to, "status", "availableReplicas") != want
}

func statefulSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	partition := count(to, "spec", "updateStrategy", "rollingUpdate", "partition")
	onDelete := jsonmap.Text(to, "spec", "updateStrategy", "type") == "OnDelete"
	if unobserved(to) || stale(to) || count(to, "status", "replicas") != want || isReady(to) != want {
		return true
	}
	return !onDelete && jsonmap.Text(to, "status", "updateRevision") != jsonmap.Text(to, "status", "currentRevision") &&
		isUpdated(to) < want-partition
}

func daemonSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	onDelete := jsonmap.Text(to, "spec", "updateStrategy", "type") == "OnDelete"
	return unobserved(to) || stale(to) || isReady(to) != want || !onDelete && isUpdated(to) != want
}

// replicaSetMoving is also true during a rollout, while a ReplicaSet has some of its Deployment's pods, but not all.
func replicaSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	desired := jsonmap.Text(to, "metadata", "annotations", "deployment.kubernetes.io/desired-replicas")
	return unobserved(to) || stale(to) || count(to, "status", "replicas") != want || isReady(to) != want ||
		desired != "" && want != 0 && fmt.Sprint(want) != desired
}

// readyState returns "3/3 ready", after the problem if there is one.
func readyState(obj map[string]any) string { return stuck(obj) + readyPods(obj) }

// readyPods returns "3/3 ready".
func readyPods(obj map[string]any) string {
	s := fmt.Sprintf("%d/%d ready", isReady(obj), wanted(obj))
	if jsonmap.Get(obj, "spec", "paused") == true {
		s += ", paused"
	}
	return s
}

// stuck returns the beginning of a line about a Deployment beyond its deadline.
func stuck(obj map[string]any) string {
	if c := conditionOf(obj, "Progressing"); c.reason == "ProgressDeadlineExceeded" {
		return "stuck: " + c.reason + ", "
	}
	return ""
}

// rolloutSummary describes a rollout, a scaling, or a change of ready pods.
func rolloutSummary(v view) string {
	from, to := wanted(v.origin), wanted(v.to)
	onWay := workloadMoving(v)
	switch {
	case rolls(v.origin, v.to):
		if onWay || conditionOf(v.to, "Progressing").reason == "ProgressDeadlineExceeded" {
			return stuck(v.to) + failuresFirst(v.failures) + joined(fmt.Sprintf("rolling out: %d/%d updated, %s", isUpdated(v.to), to, readyPods(v.to)), ", ", v.pods)
		}
		return joined(joined("rolled out", " ", took(v.since, rolledOut(v)))+": "+readyState(v.to), ", ", v.pods)
	case from != to:
		s := fmt.Sprintf("scaled %d → %d", from, to)
		if !onWay {
			s = joined(s, " ", took(v.since, v.end))
		}
		return failuresFirst(v.failures) + joined(s+": "+readyState(v.to), ", ", v.pods)
	case !onWay && isUpdated(v.from) < to && isUpdated(v.to) == to:
		return "rolled out: " + readyState(v.to) // its beginning is unknown
	case onWay && isUpdated(v.from) != isUpdated(v.to):
		return failuresFirst(v.failures) + joined(fmt.Sprintf("%d/%d updated, %s", isUpdated(v.to), to, readyState(v.to)), ", ", v.pods)
	}
	if said := readiness(v); said != "" {
		return failuresFirst(v.failures) + joined(said, ", ", v.pods)
	}
	return ""
}

// rolls reports whether a transition is a rollout: its pod template is new.
func rolls(origin, to map[string]any) bool {
	return unobserved(origin) || !diff.Equal(jsonmap.Get(origin, "spec", "template"), jsonmap.Get(to, "spec", "template"))
}

// failuresFirst returns the beginning of a line with failures.
func failuresFirst(failures string) string {
	if failures == "" {
		return ""
	}
	return failures + ", "
}

// readiness describes a change of the number of ready pods; empty if it did not change.
func readiness(v view) string {
	now := readyState(v.to)
	switch {
	case isReady(v.from) != isReady(v.to) || wanted(v.from) != wanted(v.to):
		return fmt.Sprintf("%s%d/%d → %s", stuck(v.to), isReady(v.from), wanted(v.from), readyPods(v.to))
	case readyState(v.from) != now:
		return now
	case !v.net.touched("status.readyReplicas") && !v.net.touched("status.numberReady"):
		return ""
	}
	if v.drops > 1 {
		return fmt.Sprintf("%s again, not ready %d times", now, v.drops)
	}
	return joined(now+" again", ", ", after(v.dropped, v.end))
}

// rolledOut returns when a rollout was complete. A Deployment has a time for it.
func rolledOut(v view) moment {
	c := conditionOf(v.to, "Progressing")
	if c.reason == "NewReplicaSetAvailable" && !c.updated.Before(v.since.server) && !c.updated.IsZero() {
		return moment{server: c.updated, seen: v.end.seen}
	}
	return v.end
}

// workloadMoving reports whether a Deployment, StatefulSet or DaemonSet is in transition.
func workloadMoving(v view) bool {
	switch jsonmap.Text(v.to, "kind") {
	case "StatefulSet":
		return statefulSetMoving(v.from, v.to)
	case "DaemonSet":
		return daemonSetMoving(v.from, v.to)
	}
	return deploymentMoving(v.from, v.to)
}

func replicaSetSummary(v view) string {
	from, to := wanted(v.origin), wanted(v.to)
	ready := ""
	if to > 0 {
		ready = ", " + readyState(v.to)
	}
	switch {
	case unobserved(v.origin):
		if isReady(v.to) == to {
			return joined(readyState(v.to), " ", took(v.since, v.end))
		}
		return failuresFirst(v.failures) + readyState(v.to)
	case from != to:
		return failuresFirst(v.failures) + fmt.Sprintf("scaled %d → %d%s", from, to, ready)
	}
	if said := readiness(v); said != "" {
		return failuresFirst(v.failures) + said
	}
	return ""
}

func jobEnd(obj map[string]any) condition {
	for _, kind := range []string{"Complete", "Failed"} {
		if c := conditionOf(obj, kind); c.status == "True" {
			return c
		}
	}
	return condition{}
}

func jobMoving(_, to map[string]any) bool {
	return jobEnd(to).kind == "" && jsonmap.Get(to, "spec", "suspend") != true
}

// jobEnded describes how a Job ended; why is the failure of its last pod, if known.
func jobEnded(obj map[string]any, why string) string {
	end := jobEnd(obj)
	if end.kind != "Failed" {
		return jobState(obj)
	}
	return joined("failed", ": ", joined(end.reason, ": ", cmp.Or(why, end.message)))
}

func jobState(obj map[string]any) string {
	end := jobEnd(obj)
	switch end.kind {
	case "Complete":
		began, ended := moment{server: jsonmap.Time(obj, "status", "startTime")}, moment{server: jsonmap.Time(obj, "status", "completionTime")}
		return joined("complete", " ", took(began, ended))
	case "Failed":
		return jobEnded(obj, "")
	}
	if jsonmap.Get(obj, "spec", "suspend") == true {
		return "suspended"
	}
	s := fmt.Sprintf("%d active", count(obj, "status", "active"))
	if n := count(obj, "spec", "completions"); n > 1 {
		s += fmt.Sprintf(", %d/%d succeeded", count(obj, "status", "succeeded"), n)
	}
	if n := count(obj, "status", "failed"); n > 0 {
		s += fmt.Sprintf(", %d failed", n)
	}
	return s
}

func jobSummary(v view) string {
	s := jobState(v.to)
	switch {
	case v.created && jobEnd(v.to).kind == "":
		return failuresFirst(v.failures) + "new, " + s
	case v.created || s != jobState(v.from):
		if jobEnd(v.to).kind != "" {
			s = jobEnded(v.to, v.why)
		}
		return failuresFirst(v.failures) + s
	}
	return v.failures
}

// cronMoving reports whether a job runs, so that its start and its end are one line.
func cronMoving(_, to map[string]any) bool { return len(activeJobs(to)) > 0 }

// cronSummary names the jobs that a schedule started, and describes how jobs ended.
func cronSummary(v view) string {
	before, after := activeJobs(v.from), activeJobs(v.to)
	var parts []string
	ended := map[string]bool{}
	for _, r := range v.runs {
		ended[r.name] = true
		parts = append(parts, r.name+" "+r.text)
	}
	for _, name := range after {
		if !slices.Contains(before, name) && !ended[name] {
			parts = append(parts, "started "+name)
		}
	}
	for _, name := range before {
		if !slices.Contains(after, name) && !ended[name] {
			parts = append(parts, name+" ended")
		}
	}
	if len(parts) == 0 && v.net.touched("status.lastScheduleTime") {
		parts = append(parts, "started a job")
	}
	return failuresFirst(v.failures) + strings.Join(parts, ", ")
}

func activeJobs(obj map[string]any) []string {
	var names []string
	for _, e := range jsonmap.List(obj, "status", "active") {
		m, _ := e.(map[string]any)
		names = append(names, jsonmap.Text(m, "name"))
	}
	return names
}

func nodeState(obj map[string]any) string {
	c := conditionOf(obj, "Ready")
	if c.status == "" {
		return ""
	}
	return nodeReady(c) + because(condition{kind: c.kind, status: c.status, message: c.message})
}

// nodeReady returns a node's readiness as kubectl prints it. The controller manager sets the condition to Unknown when the
// kubelet is silent.
func nodeReady(c condition) string {
	switch c.status {
	case "True":
		return "Ready"
	case "":
		return ""
	}
	return "NotReady"
}

func claimSummary(v view) string {
	from, to := jsonmap.Text(v.from, "status", "phase"), jsonmap.Text(v.to, "status", "phase")
	if from == to || to != "Bound" {
		return ""
	}
	return joined(arrow(from, to), " to ", jsonmap.Text(v.to, "spec", "volumeName"))
}

func autoscalerSummary(v view) string {
	from, to := count(v.from, "status", "desiredReplicas"), count(v.to, "status", "desiredReplicas")
	if from == to {
		return ""
	}
	return fmt.Sprintf("wants %d replicas, had %d", to, count(v.to, "status", "currentReplicas"))
}
