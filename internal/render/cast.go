package render

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/severity"
)

// A cast is what the objects that a workload owns do while the workload changes its state, as in a rollout. It is
// part of the workload's line: they have no lines of their own, except for what fails.
type cast struct {
	count   int       // changes that no line stands for yet
	last    time.Time // of these
	partial bool      // it began before what is known of it
	// born are the new pods since the transition began, gone those that were deleted or are about to be.
	born, gone map[objectKey]bool
	shown      map[string]bool      // failures that have had a line
	failing    map[objectKey]string // why pods do not run
	why        string               // how the last pod of a job failed
	runs       []jobRun             // jobs that ended since the last line
}

// jobRun is how a job ended.
type jobRun struct {
	name, text string
	failed     bool
}

// workloads are the kinds that have stories, and their ranks. An object is only in the story of one of a higher rank:
// anybody may write owners that own each other.
var workloads = map[string]int{
	"Deployment.apps": 2, "StatefulSet.apps": 2, "DaemonSet.apps": 2, "CronJob.batch": 2,
	"ReplicaSet.apps": 1, "ReplicationController": 1, "Job.batch": 1,
}

func rankOf(o *object) int { return workloads[kindOf(o.resource)] }

// workloadKinds are the same without their groups, as owners are named.
var workloadKinds = func() map[string]bool {
	all := map[string]bool{}
	for kind := range workloads {
		name, _, _ := strings.Cut(kind, ".")
		all[name] = true
	}
	return all
}()

// castKinds are the kinds that are part of a workload's story. What else a workload owns has lines of its own.
var castKinds = map[string]bool{"Pod": true, "ReplicaSet.apps": true, "Job.batch": true, "ControllerRevision.apps": true}

// teller returns the workload in whose story an object is now; nil: in none.
func (t *Text) teller(o *object) *object {
	if t.o.Flat || o.owner == nil || !castKinds[kindOf(o.resource)] {
		return nil
	}
	above := cmp.Or(t.family.owners[o.owner.UID], t.family.older[o.owner.UID])
	for _, uid := range []string{above, o.owner.UID} {
		if w := t.family.workloads[uid]; w != nil && rankOf(w) > rankOf(o) && w.fold != nil {
			return w
		}
	}
	return nil
}

// note keeps in mind whether a pod of a story runs.
func (t *Text) note(o *object, pod map[string]any) {
	if w := t.teller(o); w != nil && isPod(o.resource) {
		w.fold.cast.note(o, t.standing(o, pod))
	}
}

func (s *cast) note(o *object, reason string) {
	if reason == "" {
		delete(s.failing, o.key)
		return
	}
	if s.failing == nil {
		s.failing = map[objectKey]string{}
	}
	s.failing[o.key] = reason
}

// standing says what keeps a pod from running; empty if nothing does.
func (t *Text) standing(o *object, pod map[string]any) string {
	switch node := text(pod, "spec", "nodeName"); {
	case pod == nil || o.gone || terminating(pod) || podEnded(pod):
		return ""
	case heldBack(pod) && t.down[node]:
		return "on " + node + " NotReady"
	case heldBack(pod):
		return "not ready on " + node + ", though the containers are"
	case severity.Failing("Pod", pod) == event.Failure:
		return failing(pod)
	case o.fold != nil && o.fold.crashed:
		return crashLoop
	}
	return ""
}

// recovered ends what was said of a pod that crashed, once it has run for a while.
func (t *Text) recovered(o *object) {
	if f := o.fold; !f.crashed || moving(o.resource, f.from, f.to) {
		return
	}
	o.fold.crashed = false
	t.note(o, o.fold.to)
	if w := t.teller(o); w != nil {
		t.schedule(w)
	}
}

// gistOf is what a line says that is not worth another one at once.
func gistOf(o *object) string {
	if o.fold.cast.looping() || o.fold.crashed {
		return crashLoop
	}
	return gist(o.resource, o.fold.to)
}

// failing names what is wrong with a pod.
func failing(pod map[string]any) string {
	if word := podWord(pod); word != "Pending" {
		return word
	}
	return conditionOf(pod, "PodScheduled").reason
}

// tell makes what is pending of an object part of its workload's story, unless it is a failure that has a line of
// its own.
func (t *Text) tell(o *object) bool {
	w := t.teller(o)
	if w == nil || o.hot != nil || !w.fold.takes(o) {
		return false
	}
	w.fold.take(o)
	if isPod(o.resource) {
		w.fold.cast.note(o, t.standing(o, o.fold.to))
	}
	o.fold.rebase()
	t.recovered(o)
	t.schedule(w)
	return true
}

// takes reports whether what an object did needs no line of its own. Of pods that fail for the same reason, the first
// has one.
func (f *fold) takes(o *object) bool {
	kind := kindOf(o.resource)
	switch {
	case kind == "Job.batch", kind == "Pod" && podEnded(o.fold.to) && o.owner.Kind == "Job":
		return true // how it ended is in the line of its CronJob or Job
	case o.fold.told != "" && !o.gone:
		return false // what began with a line ends with one
	case kind != "Pod":
		return severity.Failing(kind, o.fold.to) != event.Failure && o.fold.report.severity != event.Failure
	case o.gone:
		return true
	case terminating(o.fold.to):
		return false // for too long
	}
	reason := failureOf(o.fold)
	if reason == "" || f.cast.shown[reason] {
		return true
	}
	if f.cast.shown == nil {
		f.cast.shown = map[string]bool{}
	}
	f.cast.shown[reason] = true
	return false
}

// failureOf names what is, or was, wrong with a pod; empty if nothing.
func failureOf(f *fold) string {
	op := event.Updated
	if f.born {
		op = event.Created
	}
	switch {
	case severity.Failing("Pod", f.to) == event.Failure:
		return failing(f.to)
	case f.report.severity == event.Failure:
		return f.report.reason
	case severity.Of(op, "Pod", f.from, f.to) == event.Failure:
		return "over" // such as OOMKilled, and it runs again
	}
	return ""
}

// take takes over what an object did.
func (f *fold) take(o *object) {
	if n := o.fold.pending(); n > 0 {
		f.cast.count += n
		f.cast.last = later(f.cast.last, o.fold.changed())
		if f.count == 0 {
			f.caught = o.fold.caught
		}
		if f.orphans {
			f.last = o.fold.last
		}
	}
	if isPod(o.resource) {
		f.cast.pod(o)
		return
	}
	f.cast.merge(&o.fold.cast)
	if end := jobEnd(o.fold.to); kindOf(o.resource) == "Job.batch" && end.kind != "" && jobEnd(o.fold.from).kind == "" {
		f.cast.runs = append(f.cast.runs, jobRun{o.name, jobEnded(o.fold.to, f.cast.why), end.kind == "Failed"})
		f.cast.why = ""
	}
}

// pod counts a pod.
func (s *cast) pod(o *object) {
	if s.born == nil {
		s.born, s.gone = map[objectKey]bool{}, map[objectKey]bool{}
	}
	if o.fold.born {
		s.born[o.key] = true
	}
	if o.gone || terminating(o.fold.to) {
		s.gone[o.key] = true
	}
	if podEnded(o.fold.to) {
		s.why = failure(o.fold.to)
	}
}

// merge adds the story of a ReplicaSet or Job, but for its count, to that of its owner.
func (s *cast) merge(of *cast) {
	if of.born != nil {
		if s.born == nil {
			s.born, s.gone = map[objectKey]bool{}, map[objectKey]bool{}
		}
		maps.Copy(s.born, of.born)
		maps.Copy(s.gone, of.gone)
	}
	if of.failing != nil {
		if s.failing == nil {
			s.failing = map[objectKey]string{}
		}
		maps.Copy(s.failing, of.failing)
	}
	s.why = cmp.Or(of.why, s.why)
	*of = cast{shown: of.shown}
}

// gather ends a story: what its members did so far is part of it, and what is left of pods that are about to go is
// not worth a line.
func (t *Text) gather(w *object) {
	for _, o := range t.family.of(w) {
		switch {
		case o.fold == nil || o.fold.pending() == 0 || o == w:
		case isPod(o.resource) && terminating(o.fold.to):
			w.fold.cast.pod(o)
			o.replaced = true
		case t.tell(o):
			t.schedule(o)
		}
	}
}

// incomplete reports whether pods of a workload that rolls are on their way: neither ready nor failing, ended or about to
// go.
func (t *Text) incomplete(w *object) bool {
	if t.o.Flat || rankOf(w) == 0 || wanted(w.fold.to) == 0 || isReady(w.fold.to) < wanted(w.fold.to) {
		return false
	}
	return slices.ContainsFunc(t.family.of(w), func(o *object) bool {
		if !isPod(o.resource) || o.gone || o.fold == nil {
			return false
		}
		pod := o.fold.to
		return !podReady(pod) && !podEnded(pod) && !terminating(pod) && severity.Failing("Pod", pod) != event.Failure
	})
}

// looping reports whether a pod crashes again and again.
func (s *cast) looping() bool {
	for _, reason := range s.failing {
		if reason == crashLoop {
			return true
		}
	}
	return false
}

// failures says what keeps pods of a workload from running.
func (s *cast) failures() string {
	counts := map[string]int{}
	for _, reason := range s.failing {
		counts[reason]++
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, plural(counts[reason], "pod")+" "+reason)
	}
	return strings.Join(parts, ", ")
}

// pods says how many pods came and went, where a transition did more than begin with the pods that it has.
func (s *cast) pods(fresh bool) string {
	born, gone := len(s.born), len(s.gone)
	switch {
	case s.partial:
		return "" // there may have been more
	case fresh && gone == 0:
		return ""
	case born > 0 && born == gone:
		return plural(born, "pod") + " replaced"
	case born > 0 && gone > 0:
		return plural(born, "pod") + fmt.Sprintf(" new, %d gone", gone)
	case born > 0:
		return plural(born, "pod") + " new"
	case gone > 0:
		return plural(gone, "pod") + " gone"
	}
	return ""
}

// pending is how many changes have no line yet.
func (f *fold) pending() int { return f.count + f.cast.count }

// gatherAll ends every story.
func (t *Text) gatherAll() {
	for _, o := range slices.SortedFunc(maps.Values(t.objects), func(a, b *object) int { return cmp.Compare(b.seq, a.seq) }) {
		if o.fold != nil && rankOf(o) > 0 {
			t.gather(o)
		}
	}
	for _, o := range t.objects {
		if o.fold != nil && o.fold.pending() > 0 && o.place < 0 {
			o.due = o.fold.last
			heap.Push(&t.due, o)
		}
	}
}
