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
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/severity"
)

// members sums up what a workload's owned objects do while the workload is in transition, as in a rollout. They are part of
// the workload's line, and have no lines of their own except for failures.
//
// A story belongs to the highest workload in the hierarchy that is in transition: a pod's changes belong to its Deployment,
// or to its ReplicaSet if no Deployment is seen. Ownership is learned from the changes of ReplicaSets and Jobs, because a
// pod names only its direct owner. A story continues while a rollout is stuck and while a pod crash-loops: a container
// has to run for a minute before that is a recovery. Repeated lines follow after 1, 2, 4 … minutes.
type members struct {
	count   int       // changes that no line counts yet
	changes numbers   // of these
	last    time.Time // when the last of them happened
	partial bool      // the transition began before the first known change
	// born are the new pods since the transition began, gone those that were deleted or are terminating.
	created, gone map[objectKey]bool
	shown         map[string]bool      // reasons of failures that have had a line
	failing       map[objectKey]string // why pods do not run
	why           string               // why the last pod of a job failed
	runs          []jobRun             // jobs that ended since the last line
}

// jobRun is a job that ended.
type jobRun struct {
	name, text string
	failed     bool
}

// workloads are the kinds that have stories, with their ranks. An object belongs only to the story of a higher rank:
// otherwise objects that own each other, which any client can create, would pass their changes on forever.
var workloads = map[string]int{
	"Deployment.apps": 2, "StatefulSet.apps": 2, "DaemonSet.apps": 2, "CronJob.batch": 2,
	"ReplicaSet.apps": 1, "ReplicationController": 1, "Job.batch": 1,
}

func rankOf(o *object) int { return workloads[o.kind.GroupKind()] }

// workloadKinds are the same kinds without their groups, as in owner references.
var workloadKinds = func() map[string]bool {
	all := map[string]bool{}
	for kind := range workloads {
		name, _, _ := strings.Cut(kind, ".")
		all[name] = true
	}
	return all
}()

// memberKinds are the kinds that are part of a workload's story. Other owned objects have their own lines.
var memberKinds = map[string]bool{"Pod": true, "ReplicaSet.apps": true, "Job.batch": true, "ControllerRevision.apps": true}

// storyOwner returns the workload whose story an object belongs to now, or nil.
func (t *Text) storyOwner(o *object) *object {
	if t.o.Flat || o.owner == nil || !memberKinds[o.kind.GroupKind()] {
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

// noteState records whether a pod of a story runs.
func (t *Text) noteState(o *object, pod map[string]any) {
	if w := t.storyOwner(o); w != nil && isPod(o.kind) {
		w.fold.members.noteState(o, t.whyNotRunning(o, pod))
	}
}

func (s *members) noteState(o *object, reason string) {
	if reason == "" {
		delete(s.failing, o.key)
		return
	}
	if s.failing == nil {
		s.failing = map[objectKey]string{}
	}
	s.failing[o.key] = reason
}

// whyNotRunning returns the reason why a pod does not run; empty if it does.
func (t *Text) whyNotRunning(o *object, pod map[string]any) string {
	switch node := jsonmap.Text(pod, "spec", "nodeName"); {
	case pod == nil || o.gone || terminating(pod) || podEnded(pod):
		return ""
	case heldBack(pod) && t.down[o.kind.Cluster][node]:
		return "on " + node + " NotReady"
	case heldBack(pod):
		return "not ready on " + node + ", though the containers are"
	case health.Failing("Pod", pod) == event.Failure:
		return failing(pod)
	case o.fold != nil && o.fold.crashed:
		return crashLoop
	}
	return ""
}

// recovered ends the crash loop of a pod that has run for a while.
func (t *Text) recovered(o *object) {
	if f := o.fold; !f.crashed || moving(o.kind, f.from, f.to) {
		return
	}
	o.fold.crashed = false
	t.noteState(o, o.fold.to)
	if w := t.storyOwner(o); w != nil {
		t.schedule(w)
	}
}

// gistOf returns the state in a line of the object. While it stays the same, further lines are delayed.
func gistOf(o *object) string {
	if o.fold.members.crashLooping() || o.fold.crashed {
		return crashLoop
	}
	return gist(o.kind, o.fold.to)
}

// failing returns the reason of a failing pod.
func failing(pod map[string]any) string {
	if word := podWord(pod); word != "Pending" {
		return word
	}
	return conditionOf(pod, "PodScheduled").reason
}

// joinStory moves an object's pending changes to its workload's story, and reports whether it did. A failure that needs its
// own line stays.
func (t *Text) joinStory(o *object) bool {
	w := t.storyOwner(o)
	if w == nil || o.hot != nil || !w.fold.absorbs(o) {
		return false
	}
	w.fold.absorb(o)
	if isPod(o.kind) {
		w.fold.members.noteState(o, t.whyNotRunning(o, o.fold.to))
	}
	o.fold.rebase()
	t.recovered(o)
	t.schedule(w)
	return true
}

// absorbs reports whether an object's changes need no line of their own. Among pods that fail for the same reason, the
// first has one.
func (f *fold) absorbs(o *object) bool {
	kind := o.kind.GroupKind()
	switch {
	case kind == "Job.batch", kind == "Pod" && podEnded(o.fold.to) && o.owner.Kind == "Job":
		return true // the line of its CronJob or Job says how it ended
	case o.fold.lastState != "" && !o.gone:
		return false // a failure with a line ends with a line
	case kind != "Pod":
		return health.Failing(kind, o.fold.to) != event.Failure && o.fold.report.severity != event.Failure
	case o.gone:
		return true
	case terminating(o.fold.to):
		return false // it terminates for too long
	}
	reason := failureOf(o.fold)
	if reason == "" || f.members.shown[reason] {
		return true
	}
	if f.members.shown == nil {
		f.members.shown = map[string]bool{}
	}
	f.members.shown[reason] = true
	return false
}

// failureOf returns the reason of a pod's present or past failure; empty if it has not failed.
func failureOf(f *fold) string {
	op := event.Updated
	if f.created {
		op = event.Created
	}
	switch {
	case health.Failing("Pod", f.to) == event.Failure:
		return failing(f.to)
	case f.report.severity == event.Failure:
		return f.report.reason
	case severity.Of(op, "Pod", f.from, f.to) == event.Failure:
		return "over" // such as OOMKilled, after which it runs again
	}
	return ""
}

// absorb takes over an object's pending changes.
func (f *fold) absorb(o *object) {
	if n := o.fold.pending(); n > 0 {
		f.members.count += n
		f.members.changes.add(o.fold.pendingNumbers()...)
		f.members.last = later(f.members.last, o.fold.changed())
		if f.count == 0 {
			f.lateSpan = o.fold.lateSpan
		}
		if f.orphans {
			f.last = o.fold.last
		}
	}
	if isPod(o.kind) {
		f.members.pod(o)
		return
	}
	f.members.merge(&o.fold.members)
	if end := jobEnd(o.fold.to); o.kind.GroupKind() == "Job.batch" && end.kind != "" && jobEnd(o.fold.from).kind == "" {
		f.members.runs = append(f.members.runs, jobRun{o.name, jobEnded(o.fold.to, f.members.why), end.kind == "Failed"})
		f.members.why = ""
	}
}

// pod counts a pod.
func (s *members) pod(o *object) {
	if s.created == nil {
		s.created, s.gone = map[objectKey]bool{}, map[objectKey]bool{}
	}
	if o.fold.created {
		s.created[o.key] = true
	}
	if o.gone || terminating(o.fold.to) {
		s.gone[o.key] = true
	}
	if podEnded(o.fold.to) {
		s.why = failure(o.fold.to)
	}
}

// merge adds the story of a ReplicaSet or Job to its owner's, except for the count.
func (s *members) merge(of *members) {
	if of.created != nil {
		if s.created == nil {
			s.created, s.gone = map[objectKey]bool{}, map[objectKey]bool{}
		}
		maps.Copy(s.created, of.created)
		maps.Copy(s.gone, of.gone)
	}
	if of.failing != nil {
		if s.failing == nil {
			s.failing = map[objectKey]string{}
		}
		maps.Copy(s.failing, of.failing)
	}
	s.why = cmp.Or(of.why, s.why)
	*of = members{shown: of.shown}
}

// absorbMembers ends a story: it takes over what its members did so far. Later changes of terminating pods need no line.
func (t *Text) absorbMembers(w *object) {
	for _, o := range t.family.of(w) {
		switch {
		case o.fold == nil || o.fold.pending() == 0 || o == w:
		case isPod(o.kind) && terminating(o.fold.to):
			w.fold.members.pod(o)
			o.replaced = true
		case t.joinStory(o):
			t.schedule(o)
		}
	}
}

// incomplete reports whether a workload has pods in transition: neither ready nor failing, ended or terminating.
func (t *Text) incomplete(w *object) bool {
	if t.o.Flat || rankOf(w) == 0 || wanted(w.fold.to) == 0 || isReady(w.fold.to) < wanted(w.fold.to) {
		return false
	}
	return slices.ContainsFunc(t.family.of(w), func(o *object) bool {
		if !isPod(o.kind) || o.gone || o.fold == nil {
			return false
		}
		pod := o.fold.to
		return !podReady(pod) && !podEnded(pod) && !terminating(pod) && health.Failing("Pod", pod) != event.Failure
	})
}

// crashLooping reports whether a pod crash-loops.
func (s *members) crashLooping() bool {
	for _, reason := range s.failing {
		if reason == crashLoop {
			return true
		}
	}
	return false
}

// failures describes why pods of a workload do not run, with their number.
func (s *members) failures() string {
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

// pods describes how many pods were created and deleted; empty for a new workload that only created its pods.
func (s *members) pods(unobserved bool) string {
	created, gone := len(s.created), len(s.gone)
	switch {
	case s.partial:
		return "" // the number is unknown
	case unobserved && gone == 0:
		return ""
	case created > 0 && created == gone:
		return plural(created, "pod") + " replaced"
	case created > 0 && gone > 0:
		return plural(created, "pod") + fmt.Sprintf(" new, %d gone", gone)
	case created > 0:
		return plural(created, "pod") + " new"
	case gone > 0:
		return plural(gone, "pod") + " gone"
	}
	return ""
}

// pending returns the number of changes without a line.
func (f *fold) pending() int { return f.count + f.members.count }

// absorbAllMembers ends every story.
func (t *Text) absorbAllMembers() {
	for _, o := range slices.SortedFunc(maps.Values(t.objects), func(a, b *object) int { return cmp.Compare(b.seq, a.seq) }) {
		if o.fold != nil && rankOf(o) > 0 {
			t.absorbMembers(o)
		}
	}
	for _, o := range t.objects {
		if o.fold != nil && o.fold.pending() > 0 && o.place < 0 {
			o.due = o.fold.last
			heap.Push(&t.due, o)
		}
	}
}
