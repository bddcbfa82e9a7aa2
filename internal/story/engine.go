package story

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/owners"
)

// Update is what a change proved about a story.
type Update struct {
	// Story is the story as it is now. It is a copy.
	Story Story
	// States are those that it reached with this change, in order.
	States []State
}

// Past answers what an engine has not seen.
type Past interface {
	// Owner returns the controller of an object, which a reference names by its kind; nil if it has none or is unknown.
	Owner(kind string, n owners.Node) (*event.Owner, error)
}

// Engine follows changes. It is not safe for concurrent use.
//
// It holds the open stories, and those with a change among the last ones; see Window. What it does depends on no others, so
// an engine that begins anew with these goes on like the one before.
type Engine struct {
	cluster string // of kinds that name none
	past    Past
	owners  *owners.Graph
	unowned map[owners.Node]bool // without a known controller
	objects map[owners.Node]*object
	byID    map[string]owners.Node
	places  map[place]owners.Node // nodes and namespaces
	seq     int64
	swept   int64
	updates []update // by the change that is followed
}

// update is an Update in the making.
type update struct {
	story  *Story
	states []State
}

// Window is for how many changes a story that has ended can be continued, or be found to be part of another one.
const Window = 50_000

// place is a node or a namespace that an object is in.
type place struct {
	cluster string
	node    bool
	name    string
}

// New returns an engine for a cluster, whose name is for kinds that name none. past may be nil.
func New(cluster string, past Past) *Engine {
	return &Engine{
		cluster: cluster, past: past, owners: owners.New(), unowned: map[owners.Node]bool{},
		objects: map[owners.Node]*object{}, byID: map[string]owners.Node{}, places: map[place]owners.Node{},
	}
}

// Load makes the engine go on from stories: the open ones, and those of the last Window changes, each object's in the order
// in which they began. seq is the number of the last change.
func (e *Engine) Load(stories []*Story, seq int64) error {
	e.seq = seq
	for _, s := range stories {
		n := s.Object.Node()
		o := e.objects[n]
		if o == nil {
			o = &object{}
			e.objects[n] = o
		}
		o.stories = append(o.stories, s)
		e.byID[s.ID] = n
		e.found(&s.Object)
		if err := e.climb(s.Object.Kind.Kind, n); err != nil {
			return err
		}
	}
	return nil
}

// found notes the place that a node or a namespace is.
func (e *Engine) found(o *Object) {
	if kind := o.GroupKind(); kind == "Node" || kind == "Namespace" {
		e.places[place{o.Cluster, kind == "Node", o.Name}] = o.Node()
	}
}

// climb learns the controllers above an object.
func (e *Engine) climb(kind string, n owners.Node) error {
	if e.past == nil {
		return nil
	}
	for range owners.Depth {
		o, known := e.owners.Owner(n)
		if !known {
			if e.unowned[n] {
				return nil
			}
			owner, err := e.past.Owner(kind, n)
			if err != nil {
				return err
			}
			if !e.owners.See(n, owner) {
				e.unowned[n] = true
				return nil
			}
			o, _ = e.owners.Owner(n)
		}
		kind, n = o.Kind, o.Node
	}
	return nil
}

// object is an object with stories: those that ended, oldest first, and the open one last.
type object struct{ stories []*Story }

// last returns the object's last story that counts; nil without one.
func (e *Engine) last(n owners.Node) *Story {
	o := e.objects[n]
	if o == nil {
		return nil
	}
	if s := o.stories[len(o.stories)-1]; e.counts(s) {
		return s
	}
	return nil
}

// open returns the object's open story; nil without one.
func (e *Engine) open(n owners.Node) *Story {
	if s := e.last(n); s != nil && s.Open() {
		return s
	}
	return nil
}

// counts reports whether a story is open, or has a change among the last ones.
func (e *Engine) counts(s *Story) bool { return s.Open() || s.Last > e.seq-Window }

// Forget drops a story that the journal no longer has.
func (e *Engine) Forget(id string) {
	n, ok := e.byID[id]
	if !ok {
		return
	}
	delete(e.byID, id)
	o := e.objects[n]
	o.stories = slices.DeleteFunc(o.stories, func(s *Story) bool { return s.ID == id })
	if len(o.stories) == 0 {
		delete(e.objects, n)
	}
}

// sweep forgets stories that do not count, once in a while.
func (e *Engine) sweep() {
	if e.seq-e.swept < Window/4 {
		return
	}
	e.swept = e.seq
	for n, o := range e.objects {
		o.stories = slices.DeleteFunc(o.stories, func(s *Story) bool {
			if e.counts(s) {
				return false
			}
			delete(e.byID, s.ID)
			return true
		})
		if len(o.stories) == 0 {
			delete(e.objects, n)
		}
	}
	e.owners.Keep(func(n owners.Node) bool { return e.objects[n] != nil })
	clear(e.unowned)
	for p, n := range e.places {
		if e.objects[n] == nil {
			delete(e.places, p)
		}
	}
}

// steady is how long a recovery must last, by the times in the object, so that a failure after it is another story.
const steady = time.Minute

// Apply follows a change, and returns what it proved. An input without a UID has no stories. After an error, which is past's,
// the engine is unusable.
func (e *Engine) Apply(in *Input) ([]Update, error) {
	e.updates = nil
	if e.seq = in.Seq; in.Object.UID == "" || !in.Op.HasObject() || in.Op == event.Converted {
		return nil, nil
	}
	e.sweep()
	n := in.Object.Node()
	owner := in.Owner
	if in.About != nil {
		owner = in.About
	}
	if e.owners.See(n, owner) {
		delete(e.unowned, n)
		if err := e.climb(owner.Kind, owners.Node{Cluster: n.Cluster, UID: owner.UID}); err != nil {
			return nil, err
		}
		e.relink(n)
	}
	a := &act{Engine: e, in: in, node: n}
	switch kind := in.Object.GroupKind(); {
	case kind == "Event", kind == "Event.events.k8s.io":
		a.report()
	case in.Op == event.Deleted:
		a.gone()
	case in.Op == event.Left:
		if s := a.open(); s != nil {
			a.reach(s, State{Word: Left})
		}
	default:
		a.advance()
	}
	return e.proved(), nil
}

// proved returns what the change proved: states in their order, then the stories that it only placed, which come from maps.
func (e *Engine) proved() []Update {
	slices.SortStableFunc(e.updates, func(a, b update) int {
		if r := cmp.Compare(min(len(b.states), 1), min(len(a.states), 1)); r != 0 || len(a.states) > 0 {
			return r
		}
		return strings.Compare(a.story.ID, b.story.ID)
	})
	out := make([]Update, 0, len(e.updates))
	for _, u := range e.updates {
		out = append(out, Update{Story: *u.story, States: u.states})
	}
	return out
}

// act applies one input.
type act struct {
	*Engine
	in   *Input
	node owners.Node
}

func (a *act) open() *Story { return a.Engine.open(a.node) }

func (a *act) last() *Story { return a.Engine.last(a.node) }

// advance applies a change after which the object exists.
func (a *act) advance() {
	in := a.in
	switch {
	case in.Asks:
		a.next(Deletion, in.Asked, stamp(in.Asked))
		return
	case !in.Asked.IsZero():
		if a.open() == nil { // seen while it was being deleted
			a.begin(Deletion, in.Asked, stamp(in.Asked))
		}
		a.cover()
		return
	case in.Cordons:
		a.next(Drain, in.At, stamp(in.At))
	case in.Op == event.Updated:
		a.asked()
	default:
		a.appeared()
	}
	a.failing()
	a.settle()
}

// asked begins a story if somebody wants something else of a workload.
func (a *act) asked() {
	in, s := a.in, a.open()
	was, is := in.Was.Pods.Wanted, in.Is.Pods.Wanted
	switch {
	case in.Template != in.TemplateWas:
		s = a.next(Rollout, in.At, a.generation())
		s.Facts.Images, s.Facts.Template, s.Facts.Before, s.Facts.Back = in.Images, in.Template, in.TemplateWas, a.hadTemplate(in.Template)
		if was != is {
			s.Facts.From = &was
		}
	case was == is || !workloads[in.Object.GroupKind()]:
	case s != nil && s.Kind.asked():
		if s.Facts.From == nil && s.Kind != Start {
			s.Facts.From = &was
		}
	default:
		a.next(Scale, in.At, a.generation()).Facts.From = &was
	}
}

// hadTemplate reports whether the object had a pod template before.
func (a *act) hadTemplate(template string) bool {
	for _, s := range a.objects[a.node].before() {
		if a.counts(s) && (s.Facts.Template == template || s.Facts.Before == template) {
			return true
		}
	}
	return false
}

// before returns the stories that have begun so far.
func (o *object) before() []*Story {
	if o == nil {
		return nil
	}
	return o.stories
}

// appeared begins the story of an object that is new, or that was there when the recording began.
func (a *act) appeared() {
	in := a.in
	isNew := in.Op == event.Created
	if !in.Is.Moving && !(isNew && in.isMember()) || a.open() != nil {
		return
	}
	switch kind := in.Object.GroupKind(); {
	case kind == "Job.batch":
		a.begin(Run, in.Created, "")
	case isNew || kind == "Pod" && in.Is.Word == "Pending":
		a.begin(Start, in.Created, "")
	case workloads[kind]:
		a.continued()
	}
}

// continued begins the story of a workload that has something to do since before the recording.
func (a *act) continued() {
	if in := a.in; in.Is.Pods.Updated < in.Is.Pods.Wanted {
		a.begin(Rollout, in.At, a.generation()).Unknown = true
	} else {
		a.begin(Disruption, in.At, stamp(in.At)).Unknown = true
	}
}

// generation identifies a story by the object's generation.
func (a *act) generation() string {
	if a.in.Generation == 0 {
		return stamp(a.in.At)
	}
	return strconv.FormatInt(a.in.Generation, 10)
}

// failing begins a story where something is newly wrong, or makes that a state of the open one.
func (a *act) failing() {
	in := a.in
	for _, sign := range past(in.Is.Signs) {
		s := a.open()
		isNew := in.Was.Sign(sign.Key) == nil || s != nil && s.Kind == Drain && s.First == in.Seq && !sign.Past // it outlasts what began now
		if !isNew || sign.Past && in.Op != event.Updated || !sign.Past && rank(sign.Severity) < rank(in.Is.Failing()) {
			continue
		}
		at := cmp.Or(sign.At, in.At)
		if s == nil {
			s = a.again(at)
		}
		if s == nil {
			s = a.fails(at, sign)
		}
		st := State{Word: Failing, At: at, Severity: sign.Severity}
		st.Facts.Reason, st.Facts.Message, st.Facts.Container = cmp.Or(sign.Reason, sign.Key), cut(sign.Message, longest), sign.Container
		if sign.At.IsZero() {
			st.Since = in.since()
		}
		a.reach(s, st)
	}
}

// fails begins a story with something that is wrong.
func (a *act) fails(at time.Time, sign *health.Sign) *Story {
	in, mark := a.in, sign.Key+" "+stamp(at)
	if !workloads[in.Object.GroupKind()] {
		return a.begin(Incident, at, mark)
	}
	s := a.begin(Disruption, at, mark)
	if in.Op == event.Updated {
		had := in.Was.Pods.Ready
		s.Facts.From = &had
	}
	return s
}

// past returns signs with those of what is over first: a story comes to stand at what is wrong now.
func past(signs []health.Sign) []*health.Sign {
	all := make([]*health.Sign, 0, len(signs))
	for _, over := range []bool{true, false} {
		for i := range signs {
			if signs[i].Past == over {
				all = append(all, &signs[i])
			}
		}
	}
	return all
}

// report follows a Kubernetes Event that warns. Its own deletion says nothing.
func (a *act) report() {
	in := a.in
	if in.About == nil {
		return
	}
	s := a.last()
	if s == nil {
		s = a.begin(Report, in.First, "")
	}
	sign := &in.Is.Signs[0]
	s.Facts.About = strings.ToLower(in.About.Kind) + "/" + in.About.Name
	a.reach(s, State{Word: Done, At: in.Last, Severity: sign.Severity, Facts: Facts{Reason: sign.Reason, Message: cut(sign.Message, longest), Count: in.Count}})
}

// again opens the object's last story again if that has just ended: a recovery must last until a time.
func (a *act) again(at time.Time) *Story {
	s := a.last()
	if s == nil || s.State.Word != Done || s.Kind == Status || at.Sub(s.End) >= steady {
		return nil
	}
	if s.Worst == event.Normal && s.Kind != Disruption {
		return nil
	}
	s.End = time.Time{}
	return s
}

// settle ends the open story once the object has nothing to do and nothing is wrong with it, and begins one where it has
// something to do that nobody asked for.
func (a *act) settle() {
	in, s := a.in, a.open()
	bad := in.Is.Failing() != event.Normal
	switch {
	case s == nil && in.Op == event.Updated && in.Is.Moving && !in.Was.Moving && workloads[in.Object.GroupKind()]:
		if s = a.again(in.At); s != nil {
			a.reach(s, State{Word: Moving, At: in.At, Since: in.since(), Severity: event.Normal})
			return
		}
		had := in.Was.Pods.Ready
		s = a.begin(Disruption, in.At, stamp(in.At))
		s.Facts.From = &had
	case s == nil && in.Op == event.Updated && in.Is.Moving && workloads[in.Object.GroupKind()]:
		a.continued()
	case s == nil && in.State:
		a.status()
	case s == nil:
	case s.Kind == Drain && !in.Uncordons:
		a.cover()
	case !in.Is.Moving && !bad:
		a.done(s)
	case !in.Is.Moving && s.Kind == Run: // a failed Job
		a.reach(s, State{Word: Failed, At: cmp.Or(in.Is.Since, in.At), Severity: event.Failure})
	case s.State.Word == Failing && !bad:
		a.reach(s, State{Word: Moving, At: in.At, Since: in.since()})
	default:
		a.cover()
	}
}

// done ends a story well.
func (a *act) done(s *Story) {
	in := a.in
	st := State{Word: Done, At: in.Is.Since, Severity: event.Normal}
	if st.At.Before(s.Begin) || st.At.Before(s.State.At) || st.At.After(in.At) { // the object does not say when
		st.At, st.Since = in.At, in.since()
	}
	if s.Worst != event.Normal {
		st.Severity = event.Recovery
	}
	a.reach(s, st)
}

// status covers a change of the state of an object without an open story.
func (a *act) status() {
	in := a.in
	s := a.last()
	if s == nil || s.Kind != Status || in.At.Sub(s.End) >= steady {
		s = a.begin(Status, in.At, stamp(in.At))
	}
	st := State{Word: Done, At: in.At, Since: in.since(), Severity: event.Normal}
	st.Facts.Field = in.Field
	if was := s.State.Facts.Field; was != nil && in.Field != nil && was.Path == in.Field.Path && was.To != "" && in.Field.Text == "" {
		st.Facts.Field = &Field{Path: was.Path, From: was.From, To: in.Field.To}
	}
	if in.Was.Word == "" && in.Is.Word != "" {
		st.Facts.Field = &Field{Text: in.Is.Word}
	}
	if s.First == in.Seq {
		s.Facts.Was = in.Was.Word
	}
	a.reach(s, st)
}

// gone ends the stories of an object that was deleted.
func (a *act) gone() {
	in, s := a.in, a.open()
	if s == nil || s.Kind != Deletion {
		if s == nil && !workloads[in.Object.GroupKind()] && in.Object.GroupKind() != "Job.batch" && !in.isMember() { // the change itself says it
			return
		}
		s = a.next(Deletion, in.At, stamp(cmp.Or(in.Asked, in.At)))
	}
	if !in.Created.IsZero() {
		s.Facts.Created = &in.Created
	}
	a.reach(s, State{Word: Gone, At: in.At, Since: in.since(), Severity: event.Normal})
}

// next begins a story, which ends the open one.
func (a *act) next(kind Kind, at time.Time, mark string) *Story {
	old := a.open()
	if old != nil {
		a.reach(old, State{Word: Superseded, At: cmp.Or(a.in.Asked, a.in.At), Severity: event.Normal, Facts: Facts{Next: kind}})
	}
	s := a.begin(kind, at, mark)
	if old != nil {
		s.Facts.Ended = old.Kind
	}
	return s
}

// raise notes that a story, or a part of it, came to another state.
func (e *Engine) raise(s *Story, seq int64, worst event.Severity) {
	s.Moved = max(s.Moved, seq)
	if s.All == "" || rank(worst) > rank(s.All) {
		s.All = worst
	}
	e.update(s)
}

// raiseParent notes with the stories that one is part of that it failed or recovered.
func (e *Engine) raiseParent(s *Story, seq int64) {
	for range owners.Depth {
		p := e.story(s.Parent)
		if p == nil {
			return
		}
		e.raise(p, seq, s.All)
		s = p
	}
}

// story returns a story by its id; nil if there is none.
func (e *Engine) story(id string) *Story {
	o := e.objects[e.byID[id]]
	if id == "" || o == nil {
		return nil
	}
	for _, s := range o.stories {
		if s.ID == id {
			return s
		}
	}
	return nil
}
