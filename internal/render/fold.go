package render

import (
	"container/heap"
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
	// repeat is how often a line is printed that says the same as the one before.
	repeat = time.Minute
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
	dropped moment // of the first change since the last line that took ready pods away
	// origin is the object before the transition, from as the last line told it; nil if born.
	origin, from, to map[string]any
	net              netChanges
	report           report // of an event of the cluster, since the last line
	reports          int    // how many of the changes are such events
	told             string // the state that the last line told
	toldAt           time.Time
}

func (t *Text) track(c change.Change) *object {
	k := keyOf(c)
	o := t.objects[k]
	if o == nil {
		t.seq++
		o = &object{
			key: k, resource: c.Resource, namespace: c.Namespace, name: c.Name,
			owned: c.Owner != nil, place: -1, seq: t.seq,
		}
		t.objects[k] = o
	}
	return o
}

func (t *Text) forget(o *object) {
	delete(t.objects, o.key)
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
		o.fold = f
	}
	if f.count == 0 {
		f.first = c.At
	}
	f.count++
	f.last, f.to, f.latest = c.At, c.After, momentOf(c)
	if f.dropped == (moment{}) && isReady(c.After) < isReady(c.Before) {
		f.dropped = f.latest
	}
	for _, change := range fields {
		f.net.add(change.Change)
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
}

// schedule decides when an object is looked at again, and forgets one of which nothing is left.
func (t *Text) schedule(o *object) {
	f := o.fold
	switch {
	case o.hot != nil:
		o.due = o.hot.since.Add(hotEvery)
	case f != nil && f.count > 0:
		o.due = f.due(o)
	case f != nil && !moving(o.resource, f.from, f.to):
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

func (f *fold) due(o *object) time.Time {
	if !moving(o.resource, f.from, f.to) {
		if f.settled.IsZero() {
			f.settled, f.end = f.last, f.latest
		}
		return earlier(f.last.Add(calm), f.settled.Add(hold))
	}
	f.settled = time.Time{}
	if f.told != "" && stateOf(o.resource, f.to) == f.told {
		return later(f.toldAt.Add(repeat), f.last.Add(calm))
	}
	if f.report.severity == event.Failure {
		return earlier(f.last.Add(calm), f.first.Add(hold))
	}
	wait := patience(o.resource, o.owned, f.origin, f.to)
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
	case f != nil && f.count > 0:
		text := f.summary(now, o, t.down)
		if t.mayPrint(now, o) {
			t.printFold(now, o, text)
		} else {
			o.hot.fold(f.count, text)
		}
		f.rebase()
	default:
		o.prints = nil
	}
	t.schedule(o)
}

// printFold prints the line that stands for the folded changes.
func (t *Text) printFold(now time.Time, o *object, text string) {
	f := o.fold
	t.counts.Pending -= f.count
	t.counts.Folded += f.count
	info, severity := t.reported(o, text, f.severity(o.resource))
	t.line(t.head(t.counted(row{
		at: now, sign: signFolded, namespace: o.namespace, owned: o.owned,
		name: t.typeName(o.resource) + "/" + o.name, info: info, severity: severity,
	}, f.count)))
	f.told, f.toldAt = stateOf(o.resource, f.to), now
}

// severity says how bad it is what became of the object; what still fails is as bad as it was.
func (f *fold) severity(r change.Resource) event.Severity {
	op := event.Updated
	if f.born {
		op = event.Created
	}
	if s := severity.Of(op, kindOf(r), f.from, f.to); s != event.Normal {
		return s
	}
	return severity.Failing(kindOf(r), f.to)
}

// rebase begins the next line of a transition where the last one ended.
func (f *fold) rebase() {
	f.from, f.born, f.count, f.net, f.settled = f.to, false, 0, netChanges{}, time.Time{}
	f.end, f.dropped, f.report, f.reports = moment{}, moment{}, report{}, 0
}

// summary says what the folded changes come to.
func (f *fold) summary(now time.Time, o *object, down map[string]bool) string {
	end := f.end
	if f.settled.IsZero() {
		end = f.latest
	}
	return summarize(o.resource, view{
		born: f.born, told: f.told != "", origin: f.origin, from: f.from, to: f.to,
		since: f.since, end: end, dropped: f.dropped, now: now, net: &f.net, down: down,
	})
}

// dueHeap orders objects by when they are due.
type dueHeap []*object

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	o := x.(*object)
	o.place = len(*h)
	*h = append(*h, o)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	o := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	o.place = -1
	return o
}
