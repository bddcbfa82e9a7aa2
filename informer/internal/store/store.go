// Package store keeps the objects of one stream and queues their changes for each consumer.
//
// One goroutine, the writer, commits; a commit changes the objects, then reaches every queue,
// before anybody may join or leave, so that a queue that joins between two commits sees each change
// exactly once: in its starting state or as a delta.
//
//	Ordering         A queue gets the deltas of one store in the order of their commits; where it
//	                 folds, per object, and objects in the order of the first change that was not
//	                 taken. Between stores that share a queue there is no order. A change can be
//	                 read from the store before a queue has it.
//	What may be      Mode Latest: versions that a newer one replaced, and objects that came and
//	skipped          went, while the consumer did not take. Mode Every: nothing below the queue's
//	                 budget; above it as in Latest, and the next batch carries a Gap.
//	Deletes          Carry the last known version. An object with another UID is a delete and an
//	                 add, and both are told where the first one was.
//	Slow consumers   A queue that folds holds one node per object that differs from what its
//	                 consumer knows: no more than the objects that the consumer knows or starts
//	                 with and those that exist, whatever their events or short-lived names.
//	Sync             A batch with Phase Live leaves the consumer with a state that the server had; so
//	                 does one with Phase Resuming, which may be an old one. Batch.Synced says that it has all that it starts with.
//	Ownership        Versions are immutable and shared. A batch's deltas are shared, too, and may be
//	                 read until the consumer asks for the next one.
//	After close      Queue.Next returns ErrClosed; a closed store keeps its last state and queues
//	                 nothing.
package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Store holds the objects of one stream. Begin, Known, Ahead, Commit and Load are the writer's, but for
// Commits of Reread changes; everything else is anybody's.
type Store struct {
	// Replaced, if set before the first commit, hears of every version that is not stored any more,
	// once the queues have what replaced it. The commit waits.
	Replaced func(*compact.Version)

	id    int
	piece int // objects that are changed while readers wait

	// turn is held through a commit, and while a queue joins or leaves. Who holds it may read what
	// mu guards. It is taken before mu.
	turn    sync.Mutex
	queues  []*Queue
	waiting []*Queue // until a loaded state has caught up
	mark    uint32
	// fresh says that versions prove nothing until the list is through: contents are compared.
	fresh bool
	// doubtful are those that such a list named without a readable version: for them it goes on.
	doubtful map[*object]struct{}
	// unread are the objects of which the server has a version that could not be read. The empty key is an
	// object whose name is not known. While there are any, the state is not one to resume from.
	unread map[Key]unread

	// mu is held to write for no more than a piece.
	mu      sync.RWMutex
	table   table
	indexes indexes
	labels  *labelIndex // nil: nobody asked for it
	head    head
	closed  bool
}

// head says where a stream stands.
type head struct {
	epoch   int64
	phase   Phase
	version string
	listing bool   // between Begin and the sweep
	served  uint64 // the form in which the server serves the kind, when all contents were compared last
	synced  bool   // the state was current once: a list was completed, or a loaded one caught up
	loaded  bool   // there was a state to begin with
}

// based tells whether there is a state that a list can be compared with.
func (h *head) based() bool { return h.synced || h.loaded }

// maxPiece is a store's piece: some 100 µs.
const maxPiece = 500

// New returns the store of the stream that its queues know as id.
func New(id int) *Store {
	return &Store{
		id:       id,
		piece:    maxPiece,
		doubtful: map[*object]struct{}{},
		unread:   map[Key]unread{},
		table:    newTable(),
		head:     head{epoch: 1, phase: Listing},
	}
}

// Head is where a loaded state stands.
type Head struct {
	Epoch int64
	// Phase is Live where the state was complete at Version; else Version means nothing.
	Phase   Phase
	Version string
	// Served identifies the form in which the server served the kind when all contents were compared
	// last, with any number that another form does not have; 0: not known.
	Served uint64
	At     time.Time // now
}

// Load starts an empty store with a state from an earlier run, before the first list and before any
// commit; queues begin with it. Of a key that occurs twice the last version counts. The state is
// Listing until Resume, or until a commit says Live or Sweep; what a list finds to be different is Relisted. If it is
// not trusted, that list compares contents, not versions. Indexes are told each object with nil.
func (s *Store) Load(items []Item, h Head, trusted bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isClosed() {
		return
	}
	for piece := range slices.Chunk(items, s.piece) {
		s.mu.Lock()
		for _, it := range piece {
			if o, _ := s.table.find(it.Key); o != nil {
				o.v = it.V
				if s.labels != nil {
					s.labels.remove(o)
				}
			} else {
				s.table.add(it.Key, it.V, s.mark)
			}
			s.indexes.set(it.Key, nil)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.head.epoch, s.head.served, s.head.loaded = max(h.Epoch, 1), h.Served, true
	if h.Phase == Live {
		s.head.version = h.Version
	}
	s.mu.Unlock()
	s.fresh = !trusted
	queues := s.queues
	s.queues = nil
	for _, q := range queues {
		s.join(q, h.At, true)
	}
}

// join lets a queue begin with the current state, or wait for that. The caller holds the turn.
func (s *Store) join(q *Queue, at time.Time, loaded bool) {
	if q.opts.AwaitSynced && s.head.loaded && !s.head.synced {
		s.waiting = append(s.waiting, q)
		return
	}
	s.queues = append(s.queues, q)
	if s.head.based() || s.table.objects > 0 {
		q.start(s, at, loaded)
	}
}

// admit lets those queues begin that wait for a synced state. The caller holds the turn.
func (s *Store) admit(at time.Time) {
	waiting := s.waiting
	s.waiting = nil
	for _, q := range waiting {
		s.join(q, at, false)
	}
}

// Resume says that the loaded state is of the server's history, so that what is committed continues it: each batch has
// its version again. It does nothing once there was a list.
func (s *Store) Resume() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := &s.head; h.loaded && !h.synced && !h.listing && h.version != "" {
		h.phase = Resuming
	}
}

// Begin starts a list, from its first page. With newEpoch the server's history was replaced:
// versions from before mean nothing more.
func (s *Store) Begin(newEpoch bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isClosed() {
		return
	}
	s.mark++
	clear(s.unread) // the list names them again
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.phase, s.head.listing = Listing, true
	if newEpoch {
		s.head.epoch++
		s.head.version = ""
		s.fresh = true
	}
}

// Seen is what a list says of an object before its content is read.
type Seen struct {
	UID, RV string
	Format  wire.Format
	Sum     uint64 // of the content; 0: not known
}

// Known reports, while listing, whether this very version is stored; if so the list has named it and
// nothing is left to do. UID and resource version alone do not identify an object's content: defaulting,
// conversion and upgrades change what the server returns for the same version. The sums must be equal, too.
// Only where the object now comes in another format, whose sums cannot be compared, do UID and version
// decide, and the stored bytes stay.
func (s *Store) Known(k Key, seen Seen) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	o, _ := s.table.find(k)
	if o == nil || !s.trusts(o) || !seen.is(o.v) {
		return false
	}
	o.mark = s.mark
	delete(s.unread, k)
	return true
}

// is reports whether UID, version and sum prove that v is what was seen.
func (s *Seen) is(v *compact.Version) bool {
	return s.UID != "" && s.RV != "" && v.UID() == s.UID && v.RV() == s.RV &&
		(v.Format() != s.Format || s.Sum != 0 && v.Sum() == s.Sum)
}

func seen(v *compact.Version) *Seen {
	return &Seen{UID: v.UID(), RV: v.RV(), Format: v.Format(), Sum: v.Sum()}
}

// Reformed reports whether the stored object has this UID and version, but perhaps another content: the
// server serves it in another form. Anybody may ask.
func (s *Store) Reformed(k Key, seen Seen) bool {
	v := s.Get(k)
	return v != nil && v.UID() == seen.UID && v.RV() == seen.RV && !seen.is(v)
}

// Ahead tells whether a newer version of this object is stored. In a list, which is always current,
// that proves that the server's history was replaced.
func (s *Store) Ahead(k Key, uid, rv string) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	o, _ := s.table.find(k)
	return o != nil && s.trusts(o) && o.v.UID() == uid && wire.Older(rv, o.v.RV())
}

// trusts tells whether the stored resource version belongs to the server's history.
func (s *Store) trusts(o *object) bool {
	_, doubtful := s.doubtful[o]
	return !s.fresh && !doubtful
}

// resumable is the version of a batch: what the state can be resumed from. The caller holds the turn.
func (s *Store) resumable() string {
	if s.head.phase == Listing || len(s.unread) > 0 {
		return ""
	}
	return s.head.version
}

// Version is the resource version up to which the stream was seen.
func (s *Store) Version() string { return s.state().version }

// Epoch is the current epoch, counted from 1.
func (s *Store) Epoch() int64 { return s.state().epoch }

// Served is the form in which the server served the kind when all contents were compared last; 0: not known.
func (s *Store) Served() uint64 { return s.state().served }

// Synced tells whether a list was ever completed, or a loaded state caught up.
func (s *Store) Synced() bool { return s.state().synced }

func (s *Store) state() head {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head
}

func (s *Store) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Stat returns the number of objects and the version.
func (s *Store) Stat() (objects int, version string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.objects, s.head.version
}

// Get returns the stored version of an object; nil is none.
func (s *Store) Get(k Key) *compact.Version {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.get(k)
}

// Snapshot returns the objects of a namespace, or all where it is empty, of one moment and in no
// order. The slice is the caller's.
func (s *Store) Snapshot(namespace string) []Item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.items(namespace)
}

// Namespaces returns the namespaces of the objects, in no order; that of objects without one is empty.
func (s *Store) Namespaces() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.table.spaces))
}

// View calls f, in which neither objects nor indexes change. f must be quick: it must not wait, nor
// call the store.
func (s *Store) View(f func(get func(Key) *compact.Version)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.table.get)
}

// Subscribe adds a queue, which starts with the current state; see QueueOptions.AwaitSynced.
func (s *Store) Subscribe(q *Queue, at time.Time) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isClosed() {
		return
	}
	s.join(q, at, false)
}

// Unsubscribe removes a queue.
func (s *Store) Unsubscribe(q *Queue) {
	s.turn.Lock()
	defer s.turn.Unlock()
	same := func(x *Queue) bool { return x == q }
	s.queues = slices.DeleteFunc(s.queues, same)
	s.waiting = slices.DeleteFunc(s.waiting, same)
}

// Close ends the store: nothing changes any more, and readers and indexes go on to see the last state.
// What the queues hold is theirs to close.
func (s *Store) Close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queues, s.waiting = true, nil, nil
	clear(s.doubtful)
	clear(s.unread)
}
