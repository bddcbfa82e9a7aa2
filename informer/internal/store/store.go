// Package store keeps the objects of one stream and queues their changes for each feed.
//
// One goroutine, the writer, commits; a commit changes the entries and reaches every queue in one
// step, so that a queue that joins between two commits sees each change exactly once: in its
// starting state or as a delta.
//
//	Ordering         A queue gets the deltas of one store in the order of their commits. Between
//	                 stores that share a queue there is no order.
//	What may be      Nothing below a queue's budget. Above it, versions that a newer one replaced:
//	skipped          the next batch then carries a Gap.
//	Deletes          Carry the last known version. An object with another UID is a delete and an add.
//	Slow consumers   A queue over its budget holds one node per object that differs from what its
//	                 consumer knows.
//	Ownership        Versions are immutable and shared.
//	After close      Queue.Next returns ErrClosed.
package store

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Key names an object within a resource.
type Key struct{ Namespace, Name string }

// Version is one version of an object. It is absent where Object is zero.
type Version struct {
	RV     string
	Object compact.Object
}

func (v Version) absent() bool { return v.Object.IsZero() }

// Change is what a list or watch says of one object.
type Change struct {
	Key Key
	UID string
	Version
	// Delete says that the object is gone; Version is then the server's last word, or absent.
	Delete bool
	// Keep says that the object exists in a version that could not be read: what is stored stays.
	Keep bool
}

// Commit is one step of the writer.
type Commit struct {
	Changes []Change
	// Version is the stream's resource version behind the changes; empty where it is not known yet.
	Version string
	Gap     *Gap
	// At is now. After is, for a list, when the stored state was last known to be current.
	At, After time.Time
	// Sweep ends a list: what it did not name is deleted.
	Sweep bool
}

// Drops counts what a commit did not apply.
type Drops struct {
	Past uint64 // versions older than the stored one
	Same uint64 // versions that are stored already
}

type entry struct {
	uid string
	Version
	mark uint64 // the list that named it last
}

// Store holds the objects of one stream. Everything but Subscribe, Unsubscribe, Stat and Close is
// the writer's alone.
type Store struct {
	id int

	mu      sync.Mutex // the writer holds it to write, everybody else to read
	entries map[Key]*entry
	queues  []*Queue
	head    head
	closed  bool

	mark   uint64
	synced bool // a list was completed
	fresh  bool // an epoch's first list is under way: versions compare by content
}

// head says where a stream stands.
type head struct {
	epoch   int64
	phase   Phase
	version string
}

// New returns the store of the stream that its queues know as id.
func New(id int) *Store {
	return &Store{id: id, entries: map[Key]*entry{}, head: head{epoch: 1, phase: Listing}}
}

// Begin starts a list, from its first page. With newEpoch the server's history was replaced:
// versions from before mean nothing more.
func (s *Store) Begin(newEpoch bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark++
	s.head.phase = Listing
	if newEpoch {
		s.head.epoch++
		s.head.version = ""
		s.fresh = true
	}
}

// Version is the resource version up to which the stream was seen.
func (s *Store) Version() string { return s.head.version }

// Epoch is the current epoch, counted from 1.
func (s *Store) Epoch() int64 { return s.head.epoch }

// Synced tells whether a list was ever completed.
func (s *Store) Synced() bool { return s.synced }

// Known tells, while listing, whether this very version is stored; if so the list has named it and
// nothing is left to do.
func (s *Store) Known(k Key, uid, rv string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[k]
	if e == nil || s.fresh || uid == "" || rv == "" || e.uid != uid || e.RV != rv {
		return false
	}
	e.mark = s.mark
	return true
}

// Ahead tells whether a newer version of this object is stored. In a list, which is always current,
// that proves that the server's history was replaced.
func (s *Store) Ahead(k Key, uid, rv string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[k]
	return e != nil && !s.fresh && e.uid == uid && wire.Older(rv, e.RV)
}

// Stat returns the number of objects and the version; anybody may call it.
func (s *Store) Stat() (objects int, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.head.version
}

// Commit applies c and tells every queue.
func (s *Store) Commit(c Commit) Drops {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Drops{}
	}
	var drops Drops
	var deltas []Delta
	for i := range c.Changes {
		deltas = s.apply(deltas, &c.Changes[i], &c, &drops)
	}
	moved := c.Version != "" && c.Version != s.head.version && !wire.Older(c.Version, s.head.version)
	listing := s.head.phase == Listing
	if c.Sweep {
		deltas = s.sweep(deltas, &c)
		s.head.phase, s.synced, s.fresh = Live, true, false
		s.head.version = c.Version
	} else if moved && !listing {
		s.head.version = c.Version
	}
	if len(deltas) > 0 || c.Gap != nil || c.Sweep || moved && !listing {
		s.push(Batch{Stream: s.id, Gap: c.Gap, Deltas: deltas}, c.At)
	}
	return drops
}

func (s *Store) push(b Batch, at time.Time) {
	b.Epoch, b.Phase = s.head.epoch, s.head.phase
	if b.Phase == Live {
		b.Version = s.head.version
	}
	for _, q := range s.queues {
		q.push(b, at)
	}
}

// apply changes one entry and appends what that means.
func (s *Store) apply(to []Delta, c *Change, in *Commit, drops *Drops) []Delta {
	listed := s.head.phase == Listing
	e := s.entries[c.Key]
	if c.Keep {
		if e != nil {
			e.mark = s.mark
		}
		return to
	}
	if e != nil && e.uid == c.UID && !listed && wire.Older(c.RV, e.RV) {
		drops.Past++
		return to
	}
	d := Delta{Key: c.Key, UID: c.UID, Relisted: listed && s.synced, At: in.At}
	if listed {
		d.After = in.After
	}
	if c.Delete {
		return s.remove(to, d, e, c)
	}
	switch {
	case e == nil:
		s.entries[c.Key] = &entry{uid: c.UID, Version: c.Version, mark: s.mark}
		to = append(to, added(d, c, listed && !s.synced))
	case e.uid != c.UID:
		to = append(to, deleted(d, e), added(d, c, false))
	case s.same(e, c):
		if !listed {
			drops.Same++
		}
		e.mark = s.mark
		return to
	default:
		d.Op, d.Old, d.New, d.Relisted = Updated, e.Version, c.Version, listed
		to = append(to, d)
	}
	if e != nil {
		*e = entry{uid: c.UID, Version: c.Version, mark: s.mark}
	}
	return to
}

func (s *Store) remove(to []Delta, d Delta, e *entry, c *Change) []Delta {
	if e == nil {
		return to
	}
	delete(s.entries, c.Key)
	d = deleted(d, e)
	if e.uid == c.UID {
		d.Final = c.Version
	}
	return append(to, d)
}

func added(d Delta, c *Change, initial bool) Delta {
	d.Op, d.UID, d.New, d.Initial = Added, c.UID, c.Version, initial
	if initial {
		d.After = time.Time{}
	}
	return d
}

func deleted(d Delta, e *entry) Delta {
	d.Op, d.UID, d.Old = Deleted, e.uid, e.Version
	return d
}

// same tells whether c says nothing new of an object with the same UID.
func (s *Store) same(e *entry, c *Change) bool {
	if e.RV != c.RV {
		return false
	}
	return e.RV != "" && c.UID != "" && !s.fresh || sameContent(e.Object, c.Object)
}

// sameContent compares bytes, then, since another server may order fields otherwise, values.
func sameContent(a, b compact.Object) bool {
	if a.Identical(b) {
		return true
	}
	var va, vb any
	return decode(a, &va) && decode(b, &vb) && reflect.DeepEqual(va, vb)
}

func decode(o compact.Object, into *any) bool {
	raw, err := o.JSON()
	return err == nil && json.Unmarshal(raw, into) == nil
}

// sweep deletes what the list did not name, in the order of the keys.
func (s *Store) sweep(to []Delta, in *Commit) []Delta {
	var gone []Key
	for k, e := range s.entries {
		if e.mark != s.mark {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, compareKeys)
	for _, k := range gone {
		d := Delta{Key: k, Relisted: true, At: in.At, After: in.After}
		to = append(to, deleted(d, s.entries[k]))
		delete(s.entries, k)
	}
	return to
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Subscribe adds a queue, which starts with the current state.
func (s *Store) Subscribe(q *Queue, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.queues = append(s.queues, q)
	if s.synced || len(s.entries) > 0 {
		q.start(s.id, s.head, s.entries, at)
	}
}

// Unsubscribe removes a queue.
func (s *Store) Unsubscribe(q *Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues = slices.DeleteFunc(s.queues, func(x *Queue) bool { return x == q })
}

// Close drops every object; what the queues hold is theirs to close.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.entries, s.queues = true, map[Key]*entry{}, nil
}
