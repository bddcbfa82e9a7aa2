package render

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/severity"
)

// Times of folding.
const (
	// idleDelay is how long an object must not change before its folded changes are printed.
	idleDelay = time.Second
	// maxDelay is the longest that they wait if the object keeps changing.
	maxDelay = 10 * time.Second
	// maxMovingDelay is the same for an object in transition, such as a rollout.
	maxMovingDelay = time.Minute
	// repeatInterval is the time until a line is printed that says the same as the last one. It doubles each time, up to
	// maxRepeats times.
	repeatInterval = time.Minute
	maxRepeats     = 6
	// orphanWait is how long a deleted owner's objects are waited for: longer than pods usually take to stop.
	orphanWait = 45 * time.Second
	// lateReadyWait is how long a complete workload waits for pods that are not ready yet: there is no order between kinds.
	lateReadyWait = 5 * time.Second
	// firstOrphanWait is how long to wait for the first deleted pod of an owner without known pods.
	firstOrphanWait = 5 * time.Second
	// ownerWait is how long a deleted pod waits for the change of its workload that it belongs to.
	ownerWait = 2 * time.Second
	// steadyRun is how long a container must run after a crash loop before that counts as a recovery.
	steadyRun = time.Minute
)

// objectKey identifies an object; name is set if the server gives no UID.
type objectKey struct{ resource, uid, name string }

func keyOf(c change.Change) objectKey {
	k := objectKey{resource: c.Kind.Resource + "." + c.Kind.Group, uid: c.UID}
	if k.uid == "" {
		k.name = c.Kind.Cluster + "/" + c.Namespace + "/" + c.Name
	}
	return k
}

// object is the state of an object while it changes.
type object struct {
	key             objectKey
	kind            change.Kind
	names           change.Names
	namespace, name string
	owned           bool
	owner           *event.Owner
	replaced        bool // a line already counts its deletion
	gone            bool
	ended           string // the text of its line then

	fold   *fold
	hot    *hot
	prints []time.Time // of the last hotWindow, at most hotLines

	due   time.Time
	place int // in the heap; -1 if not in it
	seq   int // breaks ties
}

// fold is a series of changes of an object's state.
type fold struct {
	created bool      // created in this run
	count   int       // changes that no line counts yet
	changes numbers   // of these
	first   time.Time // when the first of them was seen
	last    time.Time
	// stableSince is when the object last ceased to move; zero while it moves.
	stableSince time.Time
	since       moment   // the write that began the transition
	end         moment   // of the change that ended the transition
	latest      moment   // of the last change
	lateSpan    lateSpan // when the last change happened, if it was seen later
	dropped     moment   // when pods last ceased to be all ready
	drops       int      // how often they did since the last line
	// origin is the object before the transition, from its state in the last line; nil if created.
	origin, from, to map[string]any
	net              netChanges
	report           report // of an event of the cluster, since the last line
	reports          int    // how many of the changes are such events
	lastState        string // the state in the last line
	lastStateAt      time.Time
	repeats          int // lines in a row with the same state
	members          members
	orphans          bool // the object is gone: the story is about the objects that it owned
	crashed          bool // a container crash-looped, and has not run for steadyRun since
}

func (t *Text) track(c change.Change) *object {
	k := keyOf(c)
	o := t.objects[k]
	if o == nil {
		t.seq++
		o = &object{
			key: k, kind: c.Kind, names: c.Names, namespace: c.Namespace, name: c.Name,
			owned: c.Owner != nil, owner: c.Owner, place: -1, seq: t.seq,
		}
		t.objects[k] = o
		t.family.join(o)
	}
	t.noteState(o, c.After)
	return o
}

func (t *Text) forget(o *object) {
	delete(t.objects, o.key)
	t.family.forget(o)
	if o.place >= 0 {
		heap.Remove(&t.due, o.place)
	}
}

// add folds a change into the object's next line.
func (t *Text) add(o *object, c change.Change, fields []change.FieldChange) {
	t.counts.Pending++
	if o.hot != nil {
		o.hot.add(c, fields)
		if o.fold != nil {
			o.fold.to = c.After
		}
		return
	}
	f := o.fold
	if f == nil {
		f = &fold{since: momentOf(c), origin: c.Before, from: c.Before}
		f.members.partial = c.Before != nil && moving(c.Kind, c.Before, c.Before)
		o.fold = f
	}
	if f.count == 0 {
		f.first = c.At
	}
	f.count++
	f.changes.add(c.Seq)
	f.last, f.to, f.latest, f.lateSpan = c.At, c.After, momentOf(c), lateSpanOf(c)
	if isPod(o.kind) && terminating(c.After) && !terminating(c.Before) {
		f.report = report{} // earlier problems no longer matter
	}
	f.crashed = f.crashed || isPod(o.kind) && podWord(c.After) == crashLoop
	f.drop(c)
	for _, change := range fields {
		f.net.add(change.Change)
	}
}

// flushFailure prints why a pod does not run before a change that ends that state. Missed changes arrive all at once, so
// no state among them would last long enough for a line.
func (t *Text) flushFailure(now time.Time, c change.Change) {
	o := t.objects[keyOf(c)]
	if !isPod(c.Kind) || o == nil || o.hot != nil || o.fold == nil || o.fold.count == 0 || !o.fold.lateSpan.late {
		return
	}
	f := o.fold
	was, _ := podTrouble(f.to)
	is, _ := podTrouble(c.After)
	next := momentOf(c).server
	switch {
	case was == "", is == was && !terminating(c.After), f.lastState == gistOf(o):
	case !next.IsZero() && next.Sub(f.latest.server) <= idleDelay: // too short
	default:
		t.expire(now, o)
	}
}

// drop records when pods ceased to be ready.
func (f *fold) drop(c change.Change) {
	was, is := isReady(c.Before), isReady(c.After)
	switch {
	case is >= was:
	case was >= wanted(c.After):
		f.dropped = f.latest
		f.drops++
	case f.drops == 0:
		f.dropped, f.drops = f.latest, 1
	}
}

// spec begins a new transition if a change of the spec requires one. A change of the size within a rollout, or before the
// controller has seen the object, continues the transition.
func (f *fold) spec(c change.Change) {
	if c.Before == nil || diff.Equal(jsonmap.Get(c.Before, "metadata", "generation"), jsonmap.Get(c.After, "metadata", "generation")) {
		return
	}
	template := func(obj map[string]any) any { return jsonmap.Get(obj, "spec", "template") }
	if diff.Equal(template(c.Before), template(c.After)) && (unobserved(f.origin) || !diff.Equal(template(f.origin), template(c.Before))) {
		return
	}
	f.since, f.origin = causeOf(c), c.Before
	f.members = members{count: f.members.count, changes: f.members.changes, runs: f.members.runs}
}

// schedule decides when an object is due, and forgets an object with nothing left to print.
func (t *Text) schedule(o *object) {
	f := o.fold
	switch {
	case o.hot != nil:
		o.due = o.hot.since.Add(hotEvery)
	case f != nil && f.orphans:
		o.due = t.orphanDeadline(o)
	case o.gone:
		o.due = f.last.Add(ownerWait)
	case f != nil && reportable(o):
		if o.due = dueOf(o); !inTransition(o) && t.incomplete(o) {
			o.due = later(o.due, f.stableSince.Add(lateReadyWait))
		}
	case f != nil && !inTransition(o):
		o.fold = nil
		t.schedule(o)
		return
	case len(o.prints) > 0:
		o.due = o.prints[len(o.prints)-1].Add(hotWindow)
	case f == nil:
		t.forget(o)
		return
	default: // in transition and printed: nothing to do until it changes
		o.due = time.Time{}
		if o.place >= 0 {
			heap.Remove(&t.due, o.place)
		}
		return
	}
	if o.place < 0 {
		heap.Push(&t.due, o)
		return
	}
	heap.Fix(&t.due, o.place)
}

// reportable reports whether an object has changes to print. Its members' changes wait for one of its own, or for the end
// of the transition.
func reportable(o *object) bool {
	f := o.fold
	return f.count > 0 || f.members.count > 0 && !inTransition(o)
}

// changed returns when an object or a member of its story last changed.
func (f *fold) changed() time.Time { return later(f.last, f.members.last) }

// inTransition reports whether an object's transition continues: it is moving, it is stuck, or it crash-loops.
func inTransition(o *object) bool {
	return moving(o.kind, o.fold.from, o.fold.to) || stuck(o.fold.to) != "" || o.fold.members.crashLooping()
}

func dueOf(o *object) time.Time {
	f := o.fold
	if !inTransition(o) {
		if f.stableSince.IsZero() {
			f.stableSince, f.end = f.last, f.latest
		}
		if f.crashed {
			return f.stableSince.Add(steadyRun)
		}
		return earlier(f.last.Add(idleDelay), f.stableSince.Add(maxDelay))
	}
	f.stableSince = time.Time{}
	if f.lastState != "" && gistOf(o) == f.lastState {
		return later(f.lastStateAt.Add(repeatInterval<<min(f.repeats, maxRepeats)), f.changed().Add(idleDelay))
	}
	if f.report.severity == event.Failure {
		return earlier(f.last.Add(idleDelay), f.first.Add(maxDelay))
	}
	wait := reportDelay(o.kind, o.owned, f.origin, f.to)
	if stuck(f.to) != "" {
		wait = idleDelay
	}
	return earlier(f.last.Add(wait), f.first.Add(max(maxMovingDelay, wait)))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// expire prints what is due for an object.
func (t *Text) expire(now time.Time, o *object) {
	f := o.fold
	switch {
	case o.hot != nil:
		t.printHot(now, o)
	case f != nil && f.orphans && t.orphanDeadline(o).After(now): // more orphans changed
	case f != nil && f.orphans:
		if t.absorbMembers(o); f.members.count > 0 {
			t.printFold(now, o, t.orphanSummary(o))
		}
		t.forget(o)
		return
	case o.gone:
		if !t.joinStory(o) {
			t.printFold(now, o, o.ended)
		}
		t.forget(o)
		return
	case f != nil && reportable(o):
		if o.replaced = false; t.joinStory(o) {
			break
		}
		if !inTransition(o) {
			t.absorbMembers(o)
		}
		text := t.summary(t.happened(now, o), o)
		if t.mayPrint(now, o) {
			t.printFold(now, o, text)
		} else {
			o.hot.fold(f.pending(), f.latest, f.lateSpan, text)
			o.hot.changes.add(f.pendingNumbers()...)
		}
		f.rebase()
		t.recovered(o)
	default:
		o.prints = nil
	}
	t.schedule(o)
}

// printFold prints the line for the folded changes.
func (t *Text) printFold(now time.Time, o *object, text string) {
	f := o.fold
	t.uncount(f)
	info, severity := t.reported(o, text, f.severity(o.kind))
	r := t.counted(row{
		at: t.happened(now, o), sign: signFolded, cluster: o.kind.ClusterOr(t.o.Cluster), namespace: o.namespace, owned: o.owned,
		name: t.typeName(o.kind, o.names) + "/" + o.name, info: info, severity: severity, last: f.changed(), object: o.identity(),
	}, f)
	t.begin(t.withLateSpan(r, f.lateSpan))
	lastState := gistOf(o)
	if f.repeats++; lastState != f.lastState {
		f.repeats = 0
	}
	f.lastState, f.lastStateAt = lastState, now
}

// withLateSpan sets a row's time to when its last change happened, if that was before it was seen. A transition that ended
// before its last change keeps the time of its end.
func (t *Text) withLateSpan(r row, c lateSpan) row {
	if !c.late {
		return r
	}
	if c.from.Equal(c.to) {
		r.at = earlier(r.at, c.from)
		r.note = notes(r.note, "(seen "+t.clock(c.seen)+")")
	} else {
		r.at, r.until = c.from, c.to
	}
	return r
}

// happened returns the time of a folded line. A finished transition and a new failure have the time at which they
// happened, where a duration in the line ends, although the line itself comes later. A continuing one has the present time.
func (t *Text) happened(now time.Time, o *object) time.Time {
	f := o.fold
	at := f.lateSpan.from
	switch {
	case f.orphans:
		at = f.last
	case o.gone:
	case inTransition(o) && (f.count == 0 || !hasEventTime(o) || f.lastState != "" && f.lastState == gistOf(o) && !f.readinessChanged()):
		return now
	case f.crashed && !inTransition(o):
		return now
	case f.count == 0:
		at = f.members.last
	case rankOf(o) > 0 && !f.stableSince.IsZero():
		end := f.end
		if o.kind.GroupKind() == "Deployment.apps" && rolls(f.origin, f.to) {
			end = rolledOut(view{to: f.to, since: f.since, end: f.end})
		}
		at = cmp.Or(end.server, end.seen)
	}
	if at = cmp.Or(at, f.last); at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// hasEventTime reports whether the state of an object in transition began at a known time: a failure, whose line does not
// wait long, or pods that ceased to be ready without a change of the spec.
func hasEventTime(o *object) bool {
	f := o.fold
	switch {
	case isPod(o.kind):
		reason, _ := podTrouble(f.to)
		return reason != ""
	case stuck(f.to) != "":
		return true
	}
	asked := unobserved(f.origin) || !diff.Equal(jsonmap.Get(f.origin, "metadata", "generation"), jsonmap.Get(f.to, "metadata", "generation"))
	return rankOf(o) > 0 && !asked && !terminating(f.to)
}

// readinessChanged reports whether pods became ready or ceased to be since the last line.
func (f *fold) readinessChanged() bool { return f.drops > 0 || isReady(f.from) != isReady(f.to) }

// severity returns the severity of the object's changes. An object that still fails is a failure.
func (f *fold) severity(r change.Kind) event.Severity {
	if f.orphans {
		return event.Normal // the failing object is gone
	}
	op := event.Updated
	if f.created {
		op = event.Created
	}
	if slices.ContainsFunc(f.members.runs, func(job jobRun) bool { return job.failed }) || len(f.members.failing) > 0 {
		return event.Failure
	}
	if s := severity.Of(op, r.GroupKind(), f.from, f.to); s != event.Normal {
		return s
	}
	return health.Failing(r.GroupKind(), f.to)
}

// rebase starts the next line of a transition where the last one ended.
func (f *fold) rebase() {
	f.from, f.created, f.count, f.net, f.stableSince = f.to, false, 0, netChanges{}, time.Time{}
	f.end, f.dropped, f.drops, f.report, f.reports = moment{}, moment{}, 0, report{}, 0
	f.members.count, f.members.runs, f.lateSpan = 0, nil, lateSpan{}
	f.changes, f.members.changes = nil, nil
}

// summary describes the net effect of the folded changes.
func (t *Text) summary(now time.Time, o *object) string {
	f := o.fold
	end := f.end
	if f.stableSince.IsZero() {
		end = f.latest
	}
	return summarize(o.kind, view{
		created: f.created, lastState: f.lastState, origin: f.origin, from: f.from, to: f.to,
		since: f.since, end: end, dropped: f.dropped, drops: f.drops, now: now, net: &f.net, idle: f.count == 0, down: t.down[o.kind.Cluster],
		failures: f.members.failures(), why: f.members.why, pods: f.members.pods(unobserved(f.origin)), runs: f.members.runs,
	})
}
