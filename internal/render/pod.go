package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/severity"
)

// containers are the statuses of a pod's containers, those that run before the others first.
func containers(pod map[string]any) []map[string]any {
	var out []map[string]any
	for _, key := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, e := range list(pod, "status", key) {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// crashLoop is the reason of a container that waits to be started again.
const crashLoop = "CrashLoopBackOff"

// whose names a container, where its pod has several.
func whose(pod, container map[string]any) string {
	if len(containers(pod)) < 2 {
		return ""
	}
	name := text(container, "name")
	for _, e := range list(pod, "status", "initContainerStatuses") {
		if m, _ := e.(map[string]any); text(m, "name") == name {
			return " in init container " + name
		}
	}
	return " in container " + name
}

// podTrouble is why a container does not run, and more about it.
func podTrouble(pod map[string]any) (reason, detail string) {
	reason, detail, _ = trouble(pod)
	return reason, detail
}

// trouble is podTrouble, and the container that it is about; nil: none.
func trouble(pod map[string]any) (reason, detail string, container map[string]any) {
	for _, c := range containers(pod) {
		reason := text(c, "state", "waiting", "reason")
		switch {
		case !severity.Stuck[reason]:
		case reason == "ErrImagePull", reason == "ImagePullBackOff":
			// The two take turns while nothing changes.
			return "ImagePullBackOff", text(c, "image"), c
		case reason == crashLoop:
			return reason, lastExit(c), c
		default:
			return reason, text(c, "state", "waiting", "message"), c
		}
	}
	return "", "", nil
}

// lastExit says how a container ended before it was started again.
func lastExit(c map[string]any) string {
	ended := fields(c, "lastState", "terminated")
	if ended == nil {
		return ""
	}
	if reason := text(ended, "reason"); reason != "" && reason != "Error" && reason != "Completed" {
		return reason
	}
	return fmt.Sprintf("exit code %d", count(ended, "exitCode"))
}

// lastExitOf is how the last container of a pod ended that was started again.
func lastExitOf(pod map[string]any) string {
	var last string
	var at time.Time
	for _, c := range containers(pod) {
		if end := when(c, "lastState", "terminated", "finishedAt"); last == "" || end.After(at) {
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
	phase := text(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// podMoving is true for a pod that has not become ready yet, or that is in trouble. One that was ready
// and is not any more is told at once.
func podMoving(from, to map[string]any) bool {
	if reason, _ := podTrouble(to); reason != "" {
		return true
	}
	return !podEnded(to) && !podReady(to) && !podReady(from)
}

// podWord is a pod's state in a word, as in the STATUS column of kubectl.
func podWord(pod map[string]any) string {
	phase := text(pod, "status", "phase")
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

// podState is the word and what explains it.
func podState(pod map[string]any) string {
	word := podWord(pod)
	switch word {
	case "terminating", "Ready", "Succeeded":
		return word
	case "Failed":
		return joined(word, ": ", failure(pod))
	case "Running":
		ready := 0
		all := list(pod, "status", "containerStatuses")
		for _, e := range all {
			if m, _ := e.(map[string]any); m["ready"] == true {
				ready++
			}
		}
		return fmt.Sprintf("Running, %d/%d ready", ready, len(all))
	case "Pending":
		return joined(word, ": ", podWaits(pod))
	}
	_, detail, container := trouble(pod)
	switch word {
	case crashLoop:
		word = joined(word+whose(pod, container), ", ", detail)
		if n := restarts(pod); n > 0 {
			word += ", " + plural(n, "restart")
		}
		return word
	case "ImagePullBackOff":
		return joined(word, " ", detail)
	}
	return joined(word+whose(pod, container), ": ", detail)
}

func joined(a, sep, b string) string {
	if b == "" {
		return a
	}
	return a + sep + b
}

// podWaits is what a pod waits for.
func podWaits(pod map[string]any) string {
	if c := conditionOf(pod, "PodScheduled"); c.status == "False" {
		return joined(c.reason, ": ", c.message)
	}
	for _, c := range containers(pod) {
		if reason := text(c, "state", "waiting", "reason"); reason != "" {
			return reason
		}
	}
	return ""
}

// failure is why a pod failed: evicted, or how its container ended.
func failure(pod map[string]any) string {
	if reason := text(pod, "status", "reason"); reason != "" {
		return joined(reason, ": ", text(pod, "status", "message"))
	}
	for _, c := range containers(pod) {
		if code := count(c, "state", "terminated", "exitCode"); code != 0 {
			return joined(text(c, "state", "terminated", "reason"), ", ", fmt.Sprintf("exit code %d", code)) + whose(pod, c)
		}
	}
	return ""
}

func podSummary(v view) string {
	if v.born {
		return podBorn(v)
	}
	from, to := podWord(v.from), podWord(v.to)
	if v.told == crashLoop && to != crashLoop {
		from = crashLoop // it runs now and then
	}
	more := restarts(v.to) - restarts(v.from)
	if to == "terminating" {
		return podTerminating(v)
	}
	var s string
	switch {
	case to == "Running" && heldBack(v.to):
		s = "not ready"
		if node := text(v.to, "spec", "nodeName"); v.down[node] {
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
		if v.told == to {
			s = "still " + s
		}
	case more == 0:
		return "" // something else than its state
	default:
		return restarted(to, v)
	}
	if more > 0 && to != crashLoop {
		s += fmt.Sprintf(", %s (%d in all%s)", plural(more, "restart"), restarts(v.to), joined("", ", ", lastExitOf(v.to)))
	}
	return s
}

// restarted describes a pod whose state is as before, though a container ended in between. How it ended comes first.
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

// ready says how long it took a pod to become ready, if it was not ready in between, and for how long one has run that
// crashed again and again.
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

// heldBack reports whether a pod is not ready although its containers are: the node's controller, or a readiness
// gate, says so.
func heldBack(pod map[string]any) bool {
	return conditionOf(pod, "Ready").status == "False" && conditionOf(pod, "ContainersReady").status == "True"
}

// podBorn tells the life of a new pod so far.
func podBorn(v view) string {
	s := "new"
	if node := text(v.to, "spec", "nodeName"); node != "" {
		s += " on " + node
	}
	born := moment{server: createdAt(v.to), seen: v.since.seen}
	switch {
	case podReady(v.to):
		s += joined(", Pending → Ready", " ", took(born, readySince(v.to)))
	case podEnded(v.to):
		s += joined(", Pending → "+podState(v.to), " ", took(born, finished(v.to)))
	case severity.Failing("Pod", v.to) == event.Failure:
		s = podState(v.to) + ", " + s
		switch reason, _ := podTrouble(v.to); {
		case reason != "":
			s = joined(s, ", ", after(born, v.end))
		case !born.seen.IsZero() && v.now.After(born.seen):
			s += ", after " + Duration(v.now.Sub(born.seen))
		}
	case !born.seen.IsZero() && v.now.After(born.seen):
		s += ", after " + Duration(v.now.Sub(born.seen)) + ": " + podState(v.to)
	default:
		s += ", " + podState(v.to)
	}
	if n := restarts(v.to); n > 0 && podWord(v.to) != crashLoop {
		s += ", " + plural(n, "restart")
	}
	return s
}

// readySince is when a pod became ready, or ceased to be.
func readySince(pod map[string]any) moment { return moment{server: conditionOf(pod, "Ready").since} }

// unready is since when a pod has not been ready: one that never ran, since it exists.
func unready(pod map[string]any) moment {
	if since := readySince(pod); text(pod, "status", "phase") != "Pending" && since != (moment{}) {
		return since
	}
	return moment{server: createdAt(pod)}
}

// finished is when the last container of a pod ended.
func finished(pod map[string]any) moment {
	var m moment
	for _, c := range containers(pod) {
		if at := when(c, "state", "terminated", "finishedAt"); at.After(m.server) {
			m.server = at
		}
	}
	return m
}

// podTerminating is said of a pod that outlives its grace period.
func podTerminating(v view) string {
	at := when(v.to, "metadata", "deletionTimestamp") // includes the grace period
	grace := time.Duration(count(v.to, "metadata", "deletionGracePeriodSeconds")) * time.Second
	s := "terminating"
	if late := v.now.Sub(at); !at.IsZero() && late >= time.Second {
		s += fmt.Sprintf(" since %s, its grace period was %s", Duration(late+grace), Duration(grace))
	}
	return s + strings.TrimPrefix(waitsFor(v.to), "terminating")
}

// podGone is the line of a pod that was deleted; f is what of it was not told, or nil.
func podGone(c change.Change, f *fold) string {
	age := ""
	if lasted, known := lived(c); known {
		age = " after " + Duration(lasted)
	}
	var s string
	switch {
	case f != nil && f.born && podEnded(c.Before):
		s = "new, " + text(c.Before, "status", "phase") + " and gone" + age
	case f != nil && f.born && !podReady(c.Before):
		s = "new and gone" + age + ", was never ready"
	case f != nil && f.born:
		s = "new and gone" + age
	default:
		s = "gone" + age
	}
	if why := failure(c.Before); why != "" && text(c.Before, "status", "phase") == "Failed" {
		s += ", Failed: " + why
	}
	return s
}
