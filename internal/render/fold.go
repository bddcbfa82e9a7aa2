package render

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/severity"
)

// Times of folding.
const (
	// calm is how long an object must be quiet for its folded changes to be told.
	calm = time.Second
	// hold is the longest that they wait where the object never is calm.
	hold = 10 * time.Second
	// movingHold is the same for an object on its way to another state, such as a rollout.
	movingHold = time.Minute
	// repeat is after how long a line is printed that says the same as the one before; each further time it is twice
	// as long, up to maxRepeats times.
	repeat     = time.Minute
	maxRepeats = 6
	// orphanage is how long those are waited for whose owner was deleted: longer than pods usually take to stop.
	orphanage = 45 * time.Second
	// laggards is how long a workload that is complete waits for pods that are not ready yet: kinds are not seen in one
	// order.
	laggards = 5 * time.Second
	// heirs is how long is waited for the first of their pods to go, where none is known.
	heirs = 5 * time.Second
	// mourning is how long a pod that is gone waits for the change of its workload that it is part of.
	mourning = 2 * time.Second
	// steady is how long a container has to run that crashed again and again, before that counts as a recovery.
	steady = time.Minute
)

// objectKey is the identity of an object; name is set where the server gives no UID.
type objectKey struct{ resource, uid, name string }

func keyOf(c change.Change) objectKey {
	k := objectKey{resource: c.Resource.Resource + "." + c.Resource.Group, uid: c.UID}
	if k.uid == "" {
		k.name = c.Namespace + "/" + c.Name
	}
	return k
}

// object is what is remembered of an object while it changes.
type object struct {
	key             objectKey
	resource        change.Resource
	namespace, name string
	owned           bool
	owner           *event.Owner
	replaced        bool // a line says that it is about to go
	gone            bool
	ended           string // what is said of it then

	fold   *fold
	hot    *hot
	prints []time.Time // of the last hotWindow, at most hotLines

	due   time.Time
	place int // in the heap; -1 if not there
	seq   int // breaks ties
}

// fold is a run of changes of an object's state.
type fold struct {
	born  bool      // created in this run
	count int       // changes that no line stands for yet
	first time.Time // of these
	last  time.Time
	// settled is since when the object has not been moving; zero while it is.
	settled time.Time
	since   moment // the write that began the transition
	end     moment // of the change with which the object ceased to move
	latest  moment // of the last change
	caught  caught // when the last change happened, if it was seen later
	dropped moment // of the change that began the last time in which not all pods were ready
	drops   int    // how often such a time began since the last line
	// origin is the object before the transition, from as the last line told it; nil if born.
	origin, from, to map[string]any
	net              netChanges
	report           report // of an event of the cluster, since the last line
	reports          int    // how many of the changes are such events
	told             string // the state that the last line told
	toldAt           time.Time
	repeats          int // lines in a row that told the same state
	cast             cast
	orphans          bool // the object is gone: the story is what becomes of those that it owned
	crashed          bool // a container crashed again and again, and has not run steadily since
}

func (t *Text) track(c change.Change) *object {
	k := keyOf(c)
	o := t.objects[k]
	if o == nil {
		t.seq++
		o = &object{
			key: k, resource: c.Resource, namespace: c.Namespace, name: c.Name,
			owned: c.Owner != nil, owner: c.Owner, place: -1, seq: t.seq,
		}
		t.objects[k] = o
		t.family.join(o)
	}
	t.note(o, c.After)
	return o
}

func (t *Text) forget(o *object) {
	delete(t.objects, o.key)
	t.family.forget(o)
	if o.place >= 0 {
		heap.Remove(&t.due, o.place)
	}
}

// add folds a change.
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
		f.cast.partial = c.Before != nil && moving(c.Resource, c.Before, c.Before)
		o.fold = f
	}
	if f.count == 0 {
		f.first = c.At
	}
	f.count++
	f.last, f.to, f.latest, f.caught = c.At, c.After, momentOf(c), caughtUp(c)
	if isPod(o.resource) && terminating(c.After) && !terminating(c.Before) {
		f.report = report{} // what it could not do before does not matter any more
	}
	f.crashed = f.crashed || isPod(o.resource) && podWord(c.After) == crashLoop
	f.drop(c)
	for _, change := range fields {
		f.net.add(change.Change)
	}
}

// overtaken says what keeps a pod from running before a change that is the end of it. What was missed comes all at
// once: nothing of it would be calm long enough for a line.
func (t *Text) overtaken(now time.Time, c change.Change) {
	o := t.objects[keyOf(c)]
	if !isPod(c.Resource) || o == nil || o.hot != nil || o.fold == nil || o.fold.count == 0 || !o.fold.caught.late {
		return
	}
	f := o.fold
	was, _ := podTrouble(f.to)
	is, _ := podTrouble(c.After)
	next := momentOf(c).server
	switch {
	case was == "", is == was && !terminating(c.After), f.told == gistOf(o):
	case !next.IsZero() && next.Sub(f.latest.server) <= calm: // it did not last
	default:
		t.expire(now, o)
	}
}

// drop notes when pods ceased to be ready.
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

// spec begins the transition anew where a change asks for something else. A change of the size within a rollout,
// or before the controller has seen the object, leaves the transition as it is.
func (f *fold) spec(c change.Change) {
	if c.Before == nil || diff.Equal(get(c.Before, "metadata", "generation"), get(c.After, "metadata", "generation")) {
		return
	}
	template := func(obj map[string]any) any { return get(obj, "spec", "template") }
	if diff.Equal(template(c.Before), template(c.After)) && (fresh(f.origin) || !diff.Equal(template(f.origin), template(c.Before))) {
		return
	}
	f.since, f.origin = causeOf(c), c.Before
	f.cast = cast{count: f.cast.count, runs: f.cast.runs}
}

// schedule decides when an object is looked at again, and forgets one of which nothing is left.
func (t *Text) schedule(o *object) {
	f := o.fold
	switch {
	case o.hot != nil:
		o.due = o.hot.since.Add(hotEvery)
	case f != nil && f.orphans:
		o.due = t.orphansUntil(o)
	case o.gone:
		o.due = f.last.Add(mourning)
	case f != nil && waits(o):
		if o.due = dueOf(o); !open(o) && t.incomplete(o) {
			o.due = later(o.due, f.settled.Add(laggards))
		}
	case f != nil && !open(o):
		o.fold = nil
		t.schedule(o)
		return
	case len(o.prints) > 0:
		o.due = o.prints[len(o.prints)-1].Add(hotWindow)
	case f == nil:
		t.forget(o)
		return
	default: // unsettled and told: there is nothing to do before it changes
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

// waits reports whether an object has changes to be told. Those of its members wait for one of its own, or for the end.
func waits(o *object) bool {
	f := o.fold
	return f.count > 0 || f.cast.count > 0 && !open(o)
}

// changed is when an object or a member of its story changed last.
func (f *fold) changed() time.Time { return later(f.last, f.cast.last) }

// open reports whether the transition of an object goes on: it is moving, it stands still but is not where it should be,
// or it is only there for the time being.
func open(o *object) bool {
	return moving(o.resource, o.fold.from, o.fold.to) || stuck(o.fold.to) != "" || o.fold.cast.looping()
}

func dueOf(o *object) time.Time {
	f := o.fold
	if !open(o) {
		if f.settled.IsZero() {
			f.settled, f.end = f.last, f.latest
		}
		if f.crashed {
			return f.settled.Add(steady)
		}
		return earlier(f.last.Add(calm), f.settled.Add(hold))
	}
	f.settled = time.Time{}
	if f.told != "" && gistOf(o) == f.told {
		return later(f.toldAt.Add(repeat<<min(f.repeats, maxRepeats)), f.changed().Add(calm))
	}
	if f.report.severity == event.Failure {
		return earlier(f.last.Add(calm), f.first.Add(hold))
	}
	wait := patience(o.resource, o.owned, f.origin, f.to)
	if stuck(f.to) != "" {
		wait = calm
	}
	return earlier(f.last.Add(wait), f.first.Add(max(movingHold, wait)))
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

// expire does what is due for an object.
func (t *Text) expire(now time.Time, o *object) {
	f := o.fold
	switch {
	case o.hot != nil:
		t.printHot(now, o)
	case f != nil && f.orphans && t.orphansUntil(o).After(now): // more of them changed
	case f != nil && f.orphans:
		if t.gather(o); f.cast.count > 0 {
			t.printFold(now, o, t.legacy(o))
		}
		t.forget(o)
		return
	case o.gone:
		if !t.tell(o) {
			t.printFold(now, o, o.ended)
		}
		t.forget(o)
		return
	case f != nil && waits(o):
		if o.replaced = false; t.tell(o) {
			break
		}
		if !open(o) {
			t.gather(o)
		}
		text := t.summary(t.happened(now, o), o)
		if t.mayPrint(now, o) {
			t.printFold(now, o, text)
		} else {
			o.hot.fold(f.pending(), f.latest, f.caught, text)
		}
		f.rebase()
		t.recovered(o)
	default:
		o.prints = nil
	}
	t.schedule(o)
}

// printFold prints the line that stands for the folded changes.
func (t *Text) printFold(now time.Time, o *object, text string) {
	f := o.fold
	t.uncount(f)
	info, severity := t.reported(o, text, f.severity(o.resource))
	r := t.counted(row{
		at: t.happened(now, o), sign: signFolded, namespace: o.namespace, owned: o.owned,
		name: t.typeName(o.resource) + "/" + o.name, info: info, severity: severity, last: f.changed(),
	}, f)
	t.begin(t.seenLate(r, f.caught))
	told := gistOf(o)
	if f.repeats++; told != f.told {
		f.repeats = 0
	}
	f.told, f.toldAt = told, now
}

// seenLate gives a row the time at which happened what was seen later.
func (t *Text) seenLate(r row, c caught) row {
	if !c.late {
		return r
	}
	if r.at = c.from; c.from.Equal(c.to) {
		r.note = notes(r.note, "(seen "+t.clock(c.seen)+")")
	} else {
		r.until = c.to
	}
	return r
}

// happened is the time of a folded line. What is over has the time at which it happened, where a duration in the line
// ends, and so has a failure that is new; the line itself waits until the object is calm. What goes on is as of now.
func (t *Text) happened(now time.Time, o *object) time.Time {
	f := o.fold
	at := f.caught.from
	switch {
	case f.orphans:
		at = f.last
	case o.gone:
	case open(o) && (f.count == 0 || !dated(o) || f.told != "" && f.told == gistOf(o) && !f.wavered()):
		return now
	case f.crashed && !open(o):
		return now
	case f.count == 0:
		at = f.cast.last
	case rankOf(o) > 0 && !f.settled.IsZero():
		end := f.end
		if kindOf(o.resource) == "Deployment.apps" && rolls(f.origin, f.to) {
			end = rolledOut(view{to: f.to, since: f.since, end: f.end})
		}
		at = cmp.Or(end.server, end.seen)
	}
	if at = cmp.Or(at, f.last); at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// dated reports whether what is said of an object that is not where it should be happened at a time: a failure, for
// which its line does not wait long, or pods that are not ready any more though nobody asked for a change.
func dated(o *object) bool {
	f := o.fold
	switch {
	case isPod(o.resource):
		reason, _ := podTrouble(f.to)
		return reason != ""
	case stuck(f.to) != "":
		return true
	}
	asked := fresh(f.origin) || !diff.Equal(get(f.origin, "metadata", "generation"), get(f.to, "metadata", "generation"))
	return rankOf(o) > 0 && !asked && !terminating(f.to)
}

// wavered reports whether pods became ready or ceased to be since the last line.
func (f *fold) wavered() bool { return f.drops > 0 || isReady(f.from) != isReady(f.to) }

// severity says how bad it is what became of the object; what still fails is as bad as it was.
func (f *fold) severity(r change.Resource) event.Severity {
	if f.orphans {
		return event.Normal // it is gone, and so is how it was
	}
	op := event.Updated
	if f.born {
		op = event.Created
	}
	if slices.ContainsFunc(f.cast.runs, func(job jobRun) bool { return job.failed }) || len(f.cast.failing) > 0 {
		return event.Failure
	}
	if s := severity.Of(op, kindOf(r), f.from, f.to); s != event.Normal {
		return s
	}
	return severity.Failing(kindOf(r), f.to)
}

// rebase begins the next line of a transition where the last one ended.
func (f *fold) rebase() {
	f.from, f.born, f.count, f.net, f.settled = f.to, false, 0, netChanges{}, time.Time{}
	f.end, f.dropped, f.drops, f.report, f.reports = moment{}, moment{}, 0, report{}, 0
	f.cast.count, f.cast.runs, f.caught = 0, nil, caught{}
}

// summary says what the folded changes come to.
func (t *Text) summary(now time.Time, o *object) string {
	f := o.fold
	end := f.end
	if f.settled.IsZero() {
		end = f.latest
	}
	return summarize(o.resource, view{
		born: f.born, told: f.told, origin: f.origin, from: f.from, to: f.to,
		since: f.since, end: end, dropped: f.dropped, drops: f.drops, now: now, net: &f.net, idle: f.count == 0, down: t.down,
		failures: f.cast.failures(), why: f.cast.why, pods: f.cast.pods(fresh(f.origin)), runs: f.cast.runs,
	})
}
