package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// containers returns the statuses of a pod's containers, init containers first.
func containers(pod map[string]any) []map[string]any {
	var out []map[string]any
	for _, key := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, e := range jsonmap.List(pod, "status", key) {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// crashLoop is the reason of a container that waits for its restart.
const crashLoop = "CrashLoopBackOff"

// containerSuffix names a container if its pod has several.
func containerSuffix(pod, container map[string]any) string {
	if len(containers(pod)) < 2 {
		return ""
	}
	name := jsonmap.Text(container, "name")
	for _, e := range jsonmap.List(pod, "status", "initContainerStatuses") {
		if m, _ := e.(map[string]any); jsonmap.Text(m, "name") == name {
			return " in init container " + name
		}
	}
	return " in container " + name
}

// podTrouble returns the reason why a container does not run, and details.
func podTrouble(pod map[string]any) (reason, detail string) {
	reason, detail, _ = trouble(pod)
	return reason, detail
}

// trouble is like podTrouble, and also returns the container; nil if all run.
func trouble(pod map[string]any) (reason, detail string, container map[string]any) {
	for _, c := range containers(pod) {
		reason := jsonmap.Text(c, "state", "waiting", "reason")
		switch {
		case !health.Stuck[reason]:
		case reason == "ErrImagePull", reason == "ImagePullBackOff":
			// The two alternate while nothing changes.
			return "ImagePullBackOff", jsonmap.Text(c, "image"), c
		case reason == crashLoop:
			return reason, lastExit(c), c
		default:
			return reason, jsonmap.Text(c, "state", "waiting", "message"), c
		}
	}
	return "", "", nil
}

// lastExit describes how a container ended before its restart.
func lastExit(c map[string]any) string {
	ended := jsonmap.Object(c, "lastState", "terminated")
	if ended == nil {
		return ""
	}
	if reason := jsonmap.Text(ended, "reason"); reason != "" && reason != "Error" && reason != "Completed" {
		return reason
	}
	return fmt.Sprintf("exit code %d", count(ended, "exitCode"))
}

// lastExitOf describes how the last restarted container of a pod ended.
func lastExitOf(pod map[string]any) string {
	var last string
	var at time.Time
	for _, c := range containers(pod) {
		if end := jsonmap.Time(c, "lastState", "terminated", "finishedAt"); last == "" || end.After(at) {
			if how := lastExit(c); how != "" {
				last, at = "last "+how, end
			}
		}
	}
	return last
}

func restarts(pod map[string]any) int {
	n := int64(0)
	for _, c := range containers(pod) {
		n += count(c, "restartCount")
	}
	return int(n)
}

func podReady(pod map[string]any) bool { return conditionOf(pod, "Ready").status == "True" }

func podEnded(pod map[string]any) bool {
	phase := jsonmap.Text(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// podMoving reports whether a pod has not become ready yet, or fails. A pod that ceases to be ready gets a line at once.
func podMoving(from, to map[string]any) bool {
	if reason, _ := podTrouble(to); reason != "" {
		return true
	}
	return !podEnded(to) && !podReady(to) && !podReady(from)
}

// podWord returns a pod's state in a word, as in the STATUS column of kubectl.
func podWord(pod map[string]any) string {
	phase := jsonmap.Text(pod, "status", "phase")
	reason, _ := podTrouble(pod)
	switch {
	case terminating(pod):
		return "terminating"
	case podEnded(pod):
		return phase
	case reason != "":
		return reason
	case podReady(pod):
		return "Ready"
	case phase == "":
		return "Pending"
	}
	return phase
}

// podState returns podWord and its explanation.
func podState(pod map[string]any) string {
	word := podWord(pod)
	switch word {
	case "terminating", "Ready", "Succeeded":
		return word
	case "Failed":
		return joined(word, ": ", failure(pod))
	case "Running":
		ready := 0
		all := jsonmap.List(pod, "status", "containerStatuses")
		for _, e := range all {
			if m, _ := e.(map[string]any); m["ready"] == true {
				ready++
			}
		}
		return fmt.Sprintf("Running, %d/%d ready", ready, len(all))
	case "Pending":
		return joined(word, ": ", waitingReason(pod))
	}
	_, detail, container := trouble(pod)
	switch word {
	case crashLoop:
		word = joined(word+containerSuffix(pod, container), ", ", detail)
		if n := restarts(pod); n > 0 {
			word += ", " + plural(n, "restart")
		}
		return word
	case "ImagePullBackOff":
		return joined(word, " ", detail)
	}
	return joined(word+containerSuffix(pod, container), ": ", detail)
}

func joined(a, sep, b string) string {
	if b == "" {
		return a
	}
	return a + sep + b
}

// waitingReason returns why a pod is pending.
func waitingReason(pod map[string]any) string {
	if c := conditionOf(pod, "PodScheduled"); c.status == "False" {
		return joined(c.reason, ": ", c.message)
	}
	for _, c := range containers(pod) {
		if reason := jsonmap.Text(c, "state", "waiting", "reason"); reason != "" {
			return reason
		}
	}
	return ""
}

// failure returns why a pod failed: evicted, or how its container ended.
func failure(pod map[string]any) string {
	if reason := jsonmap.Text(pod, "status", "reason"); reason != "" {
		return joined(reason, ": ", jsonmap.Text(pod, "status", "message"))
	}
	for _, c := range containers(pod) {
		if code := count(c, "state", "terminated", "exitCode"); code != 0 {
			return joined(jsonmap.Text(c, "state", "terminated", "reason"), ", ", fmt.Sprintf("exit code %d", code)) + containerSuffix(pod, c)
		}
	}
	return ""
}

func podSummary(v view) string {
	if v.created {
		return newPodSummary(v)
	}
	from, to := podWord(v.from), podWord(v.to)
	if v.lastState == crashLoop && to != crashLoop {
		from = crashLoop // between its crashes it runs
	}
	more := restarts(v.to) - restarts(v.from)
	if to == "terminating" {
		return podTerminating(v)
	}
	var s string
	switch {
	case to == "Running" && heldBack(v.to):
		s = "not ready"
		if node := jsonmap.Text(v.to, "spec", "nodeName"); v.down[node] {
			s += ": " + node + " NotReady"
		} else {
			s += ", though its containers are"
		}
	case from != to:
		s = from + " → " + podState(v.to)
		if to == "Ready" {
			s += ready(from, v)
		}
	case to != "Ready" && !podEnded(v.to):
		s = podState(v.to)
		if v.lastState == to {
			s = "still " + s
		}
	case more == 0:
		return "" // the change is not about its state
	default:
		return restarted(to, v)
	}
	if more > 0 && to != crashLoop {
		s += fmt.Sprintf(", %s (%d in all%s)", plural(more, "restart"), restarts(v.to), joined("", ", ", lastExitOf(v.to)))
	}
	return s
}

// restarted describes a pod in an unchanged state of which a container ended in between. How it ended comes first.
func restarted(word string, v view) string {
	n, how := restarts(v.to)-restarts(v.from), lastExitOf(v.to)
	if n == 1 {
		how = strings.TrimPrefix(how, "last ")
	}
	s := fmt.Sprintf("%s (%d in all)", plural(n, "restart"), restarts(v.to))
	if how == "" {
		return word + ", " + s
	}
	return how + ", " + s + ", now " + word
}

// ready describes how long it took a pod to become ready, if it was not ready in between, and how long it has run after a
// crash loop.
func ready(from string, v view) string {
	took := joined("", " ", took(unready(v.from), readySince(v.to)))
	if from != crashLoop {
		return took
	}
	if restarts(v.to)-restarts(v.from) > 1 {
		took = ""
	}
	if up := v.now.Sub(v.end.seen); !v.end.seen.IsZero() && up >= time.Second {
		took += ", up for " + Duration(up)
	}
	return took
}

// heldBack reports whether a pod is not ready although its containers are, because of the node's controller or a
// readiness gate.
func heldBack(pod map[string]any) bool {
	return conditionOf(pod, "Ready").status == "False" && conditionOf(pod, "ContainersReady").status == "True"
}

// newPodSummary describes the life of a new pod so far.
func newPodSummary(v view) string {
	s := "new"
	if node := jsonmap.Text(v.to, "spec", "nodeName"); node != "" {
		s += " on " + node
	}
	created := moment{server: createdAt(v.to), seen: v.since.seen}
	switch {
	case podReady(v.to):
		s += joined(", Pending → Ready", " ", took(created, readySince(v.to)))
	case podEnded(v.to):
		s += joined(", Pending → "+podState(v.to), " ", took(created, finished(v.to)))
	case health.Failing("Pod", v.to) == event.Failure:
		s = podState(v.to) + ", " + s
		switch reason, _ := podTrouble(v.to); {
		case reason != "":
			s = joined(s, ", ", after(created, v.end))
		case !created.seen.IsZero() && v.now.After(created.seen):
			s += ", after " + Duration(v.now.Sub(created.seen))
		}
	case !created.seen.IsZero() && v.now.After(created.seen):
		s += ", after " + Duration(v.now.Sub(created.seen)) + ": " + podState(v.to)
	default:
		s += ", " + podState(v.to)
	}
	if n := restarts(v.to); n > 0 && podWord(v.to) != crashLoop {
		s += ", " + plural(n, "restart")
	}
	return s
}

// readySince returns when a pod became ready, or ceased to be.
func readySince(pod map[string]any) moment { return moment{server: conditionOf(pod, "Ready").since} }

// unready returns since when a pod has not been ready. A pod that never ran counts from its creation.
func unready(pod map[string]any) moment {
	if since := readySince(pod); jsonmap.Text(pod, "status", "phase") != "Pending" && since != (moment{}) {
		return since
	}
	return moment{server: createdAt(pod)}
}

// finished returns when the last container of a pod ended.
func finished(pod map[string]any) moment {
	var m moment
	for _, c := range containers(pod) {
		if at := jsonmap.Time(c, "state", "terminated", "finishedAt"); at.After(m.server) {
			m.server = at
		}
	}
	return m
}

// podTerminating describes a pod that outlives its grace period.
func podTerminating(v view) string {
	at := jsonmap.Time(v.to, "metadata", "deletionTimestamp") // includes the grace period
	grace := time.Duration(count(v.to, "metadata", "deletionGracePeriodSeconds")) * time.Second
	s := "terminating"
	if late := v.now.Sub(at); !at.IsZero() && late >= time.Second {
		s += fmt.Sprintf(" since %s, its grace period was %s", Duration(late+grace), Duration(grace))
	}
	return s + strings.TrimPrefix(waitsForFinalizers(v.to), "terminating")
}

// podGone describes a deleted pod; f has its pending changes, or is nil.
func podGone(c change.Change, f *fold) string {
	age := ""
	if lasted, known := lifetime(c); known {
		age = " after " + Duration(lasted)
	}
	var s string
	switch {
	case f != nil && f.created && podEnded(c.Before):
		s = "new, " + jsonmap.Text(c.Before, "status", "phase") + " and gone" + age
	case f != nil && f.created && !podReady(c.Before):
		s = "new and gone" + age + ", was never ready"
	case f != nil && f.created:
		s = "new and gone" + age
	default:
		s = "gone" + age
	}
	if why := failure(c.Before); why != "" && jsonmap.Text(c.Before, "status", "phase") == "Failed" {
		s += ", Failed: " + why
	}
	return s
}
