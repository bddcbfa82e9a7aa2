package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Presence says whether an object existed at a moment.
type Presence uint8

const (
	// Unknown means that the journal does not reach back that far for this object.
	Unknown Presence = iota
	// Absent means that the object did not exist, or was not selected.
	Absent
	// Present means that the object existed: State has its JSON.
	Present
)

// State is an object as it was at a moment.
type State struct {
	Kind                 Kind
	Namespace, Name, UID string
	Presence             Presence
	// JSON is the object; nil unless it was present, or where Err says why it cannot be read.
	JSON []byte
	// Err is a *DamagedError, or ErrPurged; the states of other objects are not affected.
	Err error
	// Last is the change that led to this state; nil if it is not in the journal any longer.
	Last *Entry
	// Next is a change that may have happened by then already, because only an interval is known; else nil.
	Next *Entry
	// From is when the object was first seen, where the state before that is unknown; else zero.
	From time.Time

	snapshot bool // the object was first seen in a snapshot, after the wanted time
}

// At yields the objects that q selects by Clusters, Resources, Namespaces, Without, Names, UID and Fields, as they were at t, ordered by kind,
// namespace and name. Objects that did not exist then are left out; objects of which the journal does not reach
// back that far have Presence Unknown.
//
// A name belongs to one object at a time: of several of one kind, namespace and name whose recorded times overlap at t, only
// the one created last exists. They overlap because a creation is dated at its whole second, and the deletion before it
// when it was seen.
//
// A change counts from the end of the interval in which it can have happened. An object that has not changed since
// the journal's oldest change counts as unchanged from then on; before that, its state is unknown. So is the state of an
// object between its creation and the snapshot in which it was first seen.
func (r *Reader) At(ctx context.Context, q Query, t time.Time) iter.Seq2[State, error] {
	return each(ctx, r, q, func(o *selected) (State, bool, error) {
		s, err := r.at(o, t.UnixMilli())
		return s, s.Presence != Absent, err
	})
}

// Between yields the states at q.Since and at q.Until of each object that q selects as in At and that can have
// changed between the two. If an object was first seen after q.Since, in a snapshot, its first state is the snapshot's, with
// From.
func (r *Reader) Between(ctx context.Context, q Query) iter.Seq2[[2]State, error] {
	return each(ctx, r, q, func(o *selected) (both [2]State, changed bool, err error) {
		if changed, err = r.changedBetween(o, q.Since.UnixMilli(), q.Until.UnixMilli()); err != nil || !changed {
			return both, false, err
		}
		for i, t := range []time.Time{q.Since, q.Until} {
			if both[i], err = r.at(o, t.UnixMilli()); err != nil {
				return both, false, err
			}
		}
		if from := both[0].From; both[0].snapshot && !from.After(q.Until) {
			both[0], err = r.at(o, from.UnixMilli())
			both[0].From = from
		}
		return both, true, err
	})
}

// statesPage is how many objects are read in one read transaction.
const statesPage = 64

// each yields what read returns for the objects that q selects, unless read returns false. It reads a page of objects
// in one transaction, and yields outside of it.
func each[T any](ctx context.Context, r *Reader, q Query, read func(*selected) (T, bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var all []selected
		err := r.do(ctx, func() (err error) {
			all, err = r.selected(q)
			return err
		})
		for err == nil && len(all) > 0 {
			page := all[:min(statesPage, len(all))]
			all = all[len(page):]
			var found []T
			err = r.do(ctx, func() error {
				for i := range page {
					there, err := r.still(&page[i])
					if err != nil {
						return err
					}
					if !there {
						continue
					}
					t, ok, err := read(&page[i])
					if err != nil {
						return err
					}
					if ok {
						found = append(found, t)
					}
				}
				return nil
			})
			for i := range found {
				if err == nil && !yield(found[i], nil) {
					return
				}
			}
		}
		if err != nil {
			yield(none, err)
		}
	}
}

// selected is an object that a query of states selects.
type selected struct {
	id                   int64
	resource             resource
	namespace, name, uid string
}

// selected returns the objects that q selects, ordered by kind, namespace and name; of one name, the older first.
func (r *Reader) selected(q Query) (all []selected, err error) {
	f, err := r.db.filter(Query{Namespaces: q.Namespaces, Without: q.Without, Fields: q.Fields, Scope: q.Scope})
	if err != nil {
		return nil, err
	}
	resources, err := r.db.resources(q.Resources, q.Clusters)
	if err != nil {
		return nil, err
	}
	for _, of := range resources {
		for _, name := range namesOrAll(&q, of.name) {
			err := r.db.objects(f, of.id, name, q.UID, "o.id, o.namespace, o.name, o.uid", func(s *sqlite3.Stmt) error {
				namespace := s.ColumnInt64(1)
				if !f.has(namespace, s.ColumnText(2)) {
					return nil
				}
				o := selected{id: s.ColumnInt64(0), resource: of, name: s.ColumnText(2), uid: uid(s.ColumnText(3))}
				var err error
				o.namespace, err = r.names.namespaces.text(r.db, namespace)
				all = append(all, o)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b selected) int {
		return cmp.Or(cmp.Compare(a.resource.name, b.resource.name), cmp.Compare(a.resource.cluster, b.resource.cluster), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	})
	return all, nil
}

// still reports whether the journal still has a selected object. After the object is removed, another one can get its number.
func (r *Reader) still(o *selected) (there bool, err error) {
	err = r.db.query("SELECT resource, uid, namespace, name FROM objects WHERE id = ?", []any{o.id}, func(s *sqlite3.Stmt) error {
		namespace, err := r.names.namespaces.text(r.db, s.ColumnInt64(2))
		there = s.ColumnInt64(0) == o.resource.id && uid(s.ColumnText(1)) == o.uid && namespace == o.namespace && s.ColumnText(3) == o.name
		return err
	})
	return there, err
}

// spans calls f with the changes of an object, the newest first, until it returns false: when each happened, or the
// interval in which it did, and when it was seen.
func (r *Reader) spans(object int64, f func(seq int64, op event.Op, from, to, seen int64) bool) error {
	return r.db.query("SELECT seq, op, time, lag, since FROM changes WHERE object = ? ORDER BY seq DESC", []any{object}, func(s *sqlite3.Stmt) error {
		c := record{op: s.ColumnInt(1), time: s.ColumnInt64(2), lag: s.ColumnInt64(3), since: s.ColumnInt64(4), bounded: s.ColumnType(4) != sqlite3.NULL}
		from, to := c.span()
		if !f(s.ColumnInt64(0), opOf(c.op), from, to, c.time+c.lag) {
			return errDone
		}
		return nil
	})
}

// changedBetween reports whether an object can have changed after since and until the other time, or lost its name.
func (r *Reader) changedBetween(o *selected, since, until int64) (changed bool, err error) {
	there := true // at since
	err = r.spans(o.id, func(_ int64, op event.Op, from, to, _ int64) bool {
		changed = to > since && from <= until
		there = to > since || leaves(op)
		return !changed && to > since
	})
	if err != nil || changed || !there {
		return changed, err
	}
	later, err := r.namesakes(o, until)
	return len(later) > 0, err
}

// namesakes returns the objects that were created after an object, by a time, under its name; the last one first.
func (r *Reader) namesakes(o *selected, until int64) (later []selected, err error) {
	err = r.db.query(`SELECT b.id, b.uid FROM objects a JOIN objects b ON b.resource = a.resource AND b.namespace = a.namespace AND b.name = a.name
		WHERE a.id = ? AND b.created BETWEEN a.created AND ? AND (b.created, b.id) > (a.created, a.id) ORDER BY b.created DESC, b.id DESC`,
		[]any{o.id, until}, func(s *sqlite3.Stmt) error {
			b := *o
			b.id, b.uid = s.ColumnInt64(0), uid(s.ColumnText(1))
			later = append(later, b)
			return nil
		})
	return later, err
}

// at returns the state of an object at a time. It is absent from when another object has its name.
func (r *Reader) at(o *selected, t int64) (State, error) {
	s, err := r.recorded(o, t)
	if err != nil || s.Presence == Absent {
		return s, err
	}
	later, err := r.namesakes(o, t)
	for i := range later {
		switch n, err := r.recorded(&later[i], t); {
		case err != nil:
			return s, err
		case n.Presence == Present || n.snapshot && n.Presence == Unknown:
			return r.succeeded(o, &s)
		}
	}
	return s, err
}

// succeeded returns the state of an object after another one got its name. s is what its own changes say.
func (r *Reader) succeeded(o *selected, s *State) (State, error) {
	gone := State{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: s.UID, Presence: Absent, Last: s.Last}
	var last, end int64 // the deletion that is dated later, if it is recorded yet
	if s.Last != nil {
		last = s.Last.Seq
	}
	err := r.spans(o.id, func(seq int64, op event.Op, _, _, _ int64) bool {
		if seq > last && !leaves(op) {
			end = seq
		}
		return seq > last
	})
	if err == nil && end > 0 {
		gone.Last, err = r.changeOf(o, end)
	}
	return gone, err
}

// changeOf returns a change of an object.
func (r *Reader) changeOf(o *selected, seq int64) (*Entry, error) {
	var found []Entry
	if err := r.page(byNewest, []any{o.id, seq, seq}, nil, &found); err != nil {
		return nil, err
	}
	return &found[0], nil
}

// recorded returns the state of an object at a time, as its own changes say.
func (r *Reader) recorded(o *selected, t int64) (State, error) {
	s := State{Namespace: o.namespace, Name: o.name, UID: o.uid}
	var last, next, pending int64 // the change before t, the one after it, and one that was perhaps before it
	var lastOp, nextOp event.Op
	err := r.spans(o.id, func(seq int64, op event.Op, from, to, seen int64) bool {
		if op == event.Snapshot { // its time is that of the creation; what was between the two is unknown
			from, to = seen, seen
		}
		if to <= t {
			last, lastOp = seq, op
			return false
		}
		next, nextOp = seq, op
		if from <= t {
			pending = seq
		}
		return true
	})
	if err != nil {
		return s, err
	}
	for _, e := range []struct {
		seq int64
		to  **Entry
	}{{last, &s.Last}, {pending, &s.Next}} {
		if e.seq == 0 {
			continue
		}
		if *e.to, err = r.changeOf(o, e.seq); err != nil {
			return s, err
		}
	}
	if s.Kind, err = r.kindOf(o, last, next); err != nil {
		return s, err
	}
	switch {
	case last != 0 && !leaves(lastOp), last == 0 && (nextOp == event.Created || nextOp == event.Entered):
		s.Presence = Absent
		return s, nil
	case last != 0:
		_, s.JSON, _, err = r.db.contents(r.codec, o.id, last)
		s.Presence = Present
	default:
		err = r.before(&s, o, t, next, nextOp)
	}
	var damage *DamagedError
	if errors.As(err, &damage) {
		s.Err, err = damage, nil
	}
	return s, err
}

// before fills in the state of an object at t, before its first change that the journal has, if there is one. It is
// known from where the journal begins, unless the object was new to the journal then.
func (r *Reader) before(s *State, o *selected, t, first int64, op event.Op) error {
	from, err := r.db.integer("SELECT time + lag FROM changes ORDER BY seq LIMIT 1")
	if err != nil {
		return err
	}
	if op == event.Snapshot {
		from, err = r.db.integer("SELECT time + lag FROM changes WHERE seq = ?", first)
		if err != nil {
			return err
		}
		s.From, s.snapshot = time.UnixMilli(from).UTC(), true
		_, after, _, err := r.db.contents(r.codec, o.id, first)
		if created := creation(after); created.UnixMilli() > t {
			s.Presence = Absent
		}
		return err
	}
	s.From = time.UnixMilli(from).UTC()
	if t < from {
		return nil
	}
	s.Presence = Present
	if first != 0 {
		var purged bool
		s.JSON, _, purged, err = r.db.contents(r.codec, o.id, first)
		if purged {
			s.Presence, s.Err = Unknown, ErrPurged
		}
		return err
	}
	content, err := r.db.state(o.id)
	switch {
	case err != nil:
		return err
	case content == nil: // it ended, and retention has removed the change that said so
		s.Presence = Absent
		return nil
	}
	if s.JSON, err = r.codec.open(content, nil); err != nil {
		return &DamagedError{r.path, fmt.Sprintf("state of %s/%s", o.namespace, o.name), err}
	}
	return nil
}

// kindOf returns the kind under which an object was recorded by the first of some changes that is there, or else
// the newest one of its resource.
func (r *Reader) kindOf(o *selected, changes ...int64) (Kind, error) {
	for _, seq := range changes {
		if seq == 0 {
			continue
		}
		id, err := r.db.integer("SELECT kind FROM changes WHERE seq = ?", seq)
		if err != nil {
			return Kind{}, err
		}
		return r.names.kind(id)
	}
	id, err := r.db.integer("SELECT max(id) FROM kinds WHERE resource = ?", o.resource.id)
	if err != nil {
		return Kind{}, err
	}
	return r.names.kind(id)
}

// createdOf is when the API server created the object of a change; if it does not say, when the object was first seen.
func createdOf(r *Row) time.Time {
	if r.Op == event.Snapshot || r.Op == event.Created { // nearly always; their time is that
		return r.Time
	}
	text := r.After
	if text == nil {
		text = r.Before
	}
	if at := creation(text); !at.IsZero() {
		return at
	}
	return r.At
}

// creation is when the API server created an object; the zero time where it does not say.
func creation(text []byte) time.Time {
	var object struct {
		Metadata struct {
			CreationTimestamp time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	if json.Unmarshal(text, &object) != nil {
		return time.Time{}
	}
	return object.Metadata.CreationTimestamp
}

// Step is a change in the history of an object, with what was before and after it.
type Step struct {
	Entry
	// Before and After are the object's JSON; nil where it did not exist, and where it is unknown: Purged says that
	// what was before was removed for good.
	Before, After []byte
	Purged        bool
}

// stepsPage is how many changes of an object are read in one read transaction.
const stepsPage = 128

// History yields the changes that led to a state, the newest first; none if its last change is not in the journal. It
// unpacks each version once, where Contents would begin anew for each. A *DamagedError ends it, and so does a change
// that retention has removed meanwhile, without an error.
func (r *Reader) History(ctx context.Context, s *State) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if s.Last == nil {
			return
		}
		h := descent{object: s.Last.object, to: s.Last.Seq, next: s.JSON}
		for !h.done {
			var steps []Step
			err := r.do(ctx, func() (err error) {
				steps, err = h.page(r)
				return err
			})
			for i := range steps {
				if !yield(steps[i], nil) {
					return
				}
			}
			if err != nil {
				yield(Step{}, err)
				return
			}
		}
	}
}

// descent is where reading an object's changes stands.
type descent struct {
	object, to int64  // to is the newest that was not read
	next       []byte // what was after that change, unless it says so itself
	begun      bool   // next is no longer the state
	done       bool
}

// page reads some changes. With an error, those before the damage are returned.
func (h *descent) page(r *Reader) (steps []Step, err error) {
	var links []link
	err = r.db.query(selectLinks+"AND c.seq <= ? ORDER BY c.seq DESC", []any{h.object, h.to}, func(s *sqlite3.Stmt) error {
		if links = append(links, columnLink(s)); len(links) == stepsPage {
			return errDone
		}
		return nil
	})
	if h.done = len(links) < stepsPage; err != nil || len(links) == 0 || !h.begun && links[0].seq != h.to {
		h.done = true
		return nil, err
	}
	var entries []Entry
	if err := r.page(byNewest, []any{h.object, links[len(links)-1].seq, h.to}, nil, &entries); err != nil {
		return nil, err
	}
	for i := range links {
		l := &links[i]
		step := Step{Entry: entries[i], Purged: isPurged(l.before)}
		if leaves(l.op) {
			if step.After = h.next; h.begun && l.after != nil {
				if step.After, err = r.codec.open(l.after, h.next); err != nil {
					return steps, &DamagedError{r.path, fmt.Sprintf("change %d, after", l.seq), err}
				}
			}
			if step.After == nil {
				h.done = true // a purge has removed what the next change began with
				return steps, nil
			}
		}
		if l.before != nil && !step.Purged {
			if step.Before, err = r.codec.open(l.before, step.After); err != nil {
				return steps, &DamagedError{r.path, fmt.Sprintf("change %d, before", l.seq), err}
			}
		}
		h.next, h.begun, h.to = step.Before, true, l.seq-1
		steps = append(steps, step)
	}
	return steps, nil
}
