package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// wanted is how many pods a workload should have; one that does not say wants one.
func wanted(obj map[string]any) int64 {
	if n, ok := number(obj, "status", "desiredNumberScheduled"); ok { // DaemonSet
		return n
	}
	if n, ok := number(obj, "spec", "replicas"); ok {
		return n
	}
	return 1
}

// isReady is how many pods of a workload are ready. The server leaves out counters that are 0.
func isReady(obj map[string]any) int64 {
	return count(obj, "status", "readyReplicas") + count(obj, "status", "numberReady")
}

func isUpdated(obj map[string]any) int64 {
	return count(obj, "status", "updatedReplicas") + count(obj, "status", "updatedNumberScheduled")
}

// fresh tells an object that its controller has not seen yet.
func fresh(obj map[string]any) bool {
	_, seen := number(obj, "status", "observedGeneration")
	return !seen
}

// deploymentMoving follows "kubectl rollout status" (k8s.io/kubectl: pkg/polymorphichelpers).
func deploymentMoving(_, to map[string]any) bool {
	if conditionOf(to, "Progressing").reason == "ProgressDeadlineExceeded" && !stale(to) || get(to, "spec", "paused") == true {
		return false
	}
	want := wanted(to)
	return fresh(to) || stale(to) || isUpdated(to) != want || count(to, "status", "replicas") != want ||
		count(to, "status", "availableReplicas") != want
}

func statefulSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	partition := count(to, "spec", "updateStrategy", "rollingUpdate", "partition")
	onDelete := text(to, "spec", "updateStrategy", "type") == "OnDelete"
	if fresh(to) || stale(to) || count(to, "status", "replicas") != want || isReady(to) != want {
		return true
	}
	return !onDelete && text(to, "status", "updateRevision") != text(to, "status", "currentRevision") &&
		isUpdated(to) < want-partition
}

func daemonSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	onDelete := text(to, "spec", "updateStrategy", "type") == "OnDelete"
	return fresh(to) || stale(to) || isReady(to) != want || !onDelete && isUpdated(to) != want
}

// replicaSetMoving is also true in the midst of a rollout, when a ReplicaSet has neither all of its
// Deployment's pods nor none.
func replicaSetMoving(_, to map[string]any) bool {
	want := wanted(to)
	desired := text(to, "metadata", "annotations", "deployment.kubernetes.io/desired-replicas")
	return fresh(to) || stale(to) || count(to, "status", "replicas") != want || isReady(to) != want ||
		desired != "" && want != 0 && fmt.Sprint(want) != desired
}

// readyState is "3/3 ready", behind what is wrong.
func readyState(obj map[string]any) string { return stuck(obj) + readyPods(obj) }

// readyPods is "3/3 ready".
func readyPods(obj map[string]any) string {
	s := fmt.Sprintf("%d/%d ready", isReady(obj), wanted(obj))
	if get(obj, "spec", "paused") == true {
		s += ", paused"
	}
	return s
}

// stuck begins a line about a Deployment that is beyond its deadline.
func stuck(obj map[string]any) string {
	if c := conditionOf(obj, "Progressing"); c.reason == "ProgressDeadlineExceeded" {
		return "stuck: " + c.reason + ", "
	}
	return ""
}

// rolloutSummary tells a rollout from a scaling and from pods that come and go.
func rolloutSummary(v view) string {
	from, to := wanted(v.origin), wanted(v.to)
	onWay := onItsWay(v)
	switch {
	case rolls(v.origin, v.to):
		if onWay || conditionOf(v.to, "Progressing").reason == "ProgressDeadlineExceeded" {
			return stuck(v.to) + ahead(v.failures) + joined(fmt.Sprintf("rolling out: %d/%d updated, %s", isUpdated(v.to), to, readyPods(v.to)), ", ", v.pods)
		}
		return joined(joined("rolled out", " ", took(v.since, rolledOut(v)))+": "+readyState(v.to), ", ", v.pods)
	case from != to:
		s := fmt.Sprintf("scaled %d → %d", from, to)
		if !onWay {
			s = joined(s, " ", took(v.since, v.end))
		}
		return ahead(v.failures) + joined(s+": "+readyState(v.to), ", ", v.pods)
	case !onWay && isUpdated(v.from) < to && isUpdated(v.to) == to:
		return "rolled out: " + readyState(v.to) // nobody knows since when
	case onWay && isUpdated(v.from) != isUpdated(v.to):
		return ahead(v.failures) + joined(fmt.Sprintf("%d/%d updated, %s", isUpdated(v.to), to, readyState(v.to)), ", ", v.pods)
	}
	if said := readiness(v); said != "" {
		return ahead(v.failures) + joined(said, ", ", v.pods)
	}
	return ""
}

// rolls tells a rollout from other transitions: the template of its pods is new.
func rolls(origin, to map[string]any) bool {
	return fresh(origin) || !diff.Equal(get(origin, "spec", "template"), get(to, "spec", "template"))
}

// ahead puts bad news before the rest.
func ahead(failures string) string {
	if failures == "" {
		return ""
	}
	return failures + ", "
}

// readiness tells of pods that are ready or not any more; empty where nothing of it changed.
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
		return fmt.Sprintf("%s again, %d times not", now, v.drops)
	}
	return joined(now+" again", ", ", after(v.dropped, v.end))
}

// rolledOut is when a rollout was complete: a Deployment says so.
func rolledOut(v view) moment {
	c := conditionOf(v.to, "Progressing")
	if c.reason == "NewReplicaSetAvailable" && !c.updated.Before(v.since.server) && !c.updated.IsZero() {
		return moment{server: c.updated, seen: v.end.seen}
	}
	return v.end
}

// onItsWay tells whether a Deployment, StatefulSet or DaemonSet is on its way.
func onItsWay(v view) bool {
	switch text(v.to, "kind") {
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
	case fresh(v.origin):
		if isReady(v.to) == to {
			return joined(readyState(v.to), " ", took(v.since, v.end))
		}
		return ahead(v.failures) + readyState(v.to)
	case from != to:
		return ahead(v.failures) + fmt.Sprintf("scaled %d → %d%s", from, to, ready)
	}
	if said := readiness(v); said != "" {
		return ahead(v.failures) + said
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
	return jobEnd(to).kind == "" && get(to, "spec", "suspend") != true
}

// jobEnded is how a Job ended; why is how its last pod failed, if that is known.
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
		began, ended := moment{server: when(obj, "status", "startTime")}, moment{server: when(obj, "status", "completionTime")}
		return joined("complete", " ", took(began, ended))
	case "Failed":
		return jobEnded(obj, "")
	}
	if get(obj, "spec", "suspend") == true {
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
	case v.born && jobEnd(v.to).kind == "":
		return ahead(v.failures) + "new, " + s
	case v.born || s != jobState(v.from):
		if jobEnd(v.to).kind != "" {
			s = jobEnded(v.to, v.why)
		}
		return ahead(v.failures) + s
	}
	return v.failures
}

// cronMoving is true while a job runs: its end belongs to its beginning.
func cronMoving(_, to map[string]any) bool { return len(activeJobs(to)) > 0 }

// cronSummary names the jobs that a schedule started, and how those ended that did.
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
	return ahead(v.failures) + strings.Join(parts, ", ")
}

func activeJobs(obj map[string]any) []string {
	var names []string
	for _, e := range list(obj, "status", "active") {
		m, _ := e.(map[string]any)
		names = append(names, text(m, "name"))
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

// nodeReady says a node's condition as kubectl does. Unknown is what the controller manager sets
// where the kubelet is silent.
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
	from, to := text(v.from, "status", "phase"), text(v.to, "status", "phase")
	if from == to || to != "Bound" {
		return ""
	}
	return joined(arrow(from, to), " to ", text(v.to, "spec", "volumeName"))
}

func autoscalerSummary(v view) string {
	from, to := count(v.from, "status", "desiredReplicas"), count(v.to, "status", "desiredReplicas")
	if from == to {
		return ""
	}
	return fmt.Sprintf("wants %d replicas, had %d", to, count(v.to, "status", "currentReplicas"))
}
