// Package store keeps the objects of one stream and queues their changes for each consumer.
//
// One goroutine, the writer, commits. A commit changes the objects, then reaches every queue, before another queue
// may join or leave. So a queue that joins between two commits gets each change exactly once: in its initial state or
// as a delta.
//
//	Ordering         A queue gets the deltas of one store in the order of their commits. While it folds, the
//	                 order is per object, and objects come in the order of their first change not yet
//	                 taken. There is no order between stores that share a queue. A change can be read from
//	                 the store before a queue has it.
//	What may be      Mode Latest: versions that a newer one replaced, and objects that came and went, while
//	skipped          the consumer took nothing. Mode Every: nothing within the queue's budget; beyond it as
//	                 in Latest, and the next batch carries a Gap.
//	Deletes          Carry the last known version. An object with another UID is a deletion and an addition,
//	                 both delivered at the place of the first.
//	Slow consumers   A folding queue holds one node per object that differs from what its consumer knows: at
//	                 most the objects that the consumer knows or starts with and those that exist, whatever
//	                 the number of events or short-lived names.
//	Sync             A batch with Phase Live leaves the consumer with a state that the server had. So does one
//	                 with Phase Resuming, but the state may be old. Batch.Synced means that the consumer has
//	                 its whole initial state.
//	Ownership        Versions are immutable and shared. A batch's deltas are shared, too, and may be read
//	                 until the consumer asks for the next batch.
//	After close      Queue.Next returns ErrClosed. A closed store keeps its last state and queues nothing.
package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Store holds the objects of one stream. Only the writer may call Begin, Known, Ahead, Load and Commit, except for
// Commits of Reread changes. Everything else may be called from any goroutine.
type Store struct {
	// Replaced, if set before the first commit, is called with every version that is no longer stored, after the
	// queues have its replacement. The commit waits for it.
	Replaced func(*compact.Version)

	id    int
	piece int // number of objects changed per write lock

	// commitMu is held during a commit, and while a queue joins or leaves. Its holder may read what mu guards. Lock
	// it before mu.
	commitMu sync.Mutex
	queues   []*Queue
	waiting  []*Queue // queues that wait until a loaded state is current
	mark     uint32
	// compareContents is set while equal versions prove nothing: until the list is complete, contents are compared.
	compareContents bool
	// outdated is set while the stored versions may belong to another history than the list in progress.
	outdated bool
	// unverified are the objects that such a list contained without a readable version. Their contents are still to
	// be compared.
	unverified map[*object]struct{}
	// unread are the objects whose version on the server could not be read. The empty key is an object with an
	// unknown name. While there are any, the state must not be resumed from.
	unread map[Key]unread

	// mu is locked for writing for at most one piece at a time.
	mu      sync.RWMutex
	table   table
	indexes indexes
	labels  *labelIndex // nil: not enabled
	head    head
	closed  bool
}

// head is the position of a stream.
type head struct {
	epoch   int64
	phase   Phase
	version string
	listing bool      // from Begin to the sweep
	served  uint64    // the form in which the server served the kind when all contents were last compared
	synced  bool      // the state was current at some time: a list was completed, or a loaded state caught up
	loaded  bool      // the store started with a loaded state
	current time.Time // when the state was last known to be current
}

// based reports whether there is a state to compare a list with.
func (h *head) based() bool { return h.synced || h.loaded }

// maxPiece is the default piece: it takes about 100 µs.
const maxPiece = 500

// New returns the store of the stream that its queues call id.
func New(id int) *Store {
	return &Store{
		id:         id,
		piece:      maxPiece,
		unverified: map[*object]struct{}{},
		unread:     map[Key]unread{},
		table:      newTable(),
		head:       head{epoch: 1, phase: Listing},
	}
}

// Head is the position of a loaded state.
type Head struct {
	Epoch int64
	// Phase is Live if the state was complete at Version; otherwise Version is meaningless.
	Phase   Phase
	Version string
	// Served identifies the form in which the server served the kind when all contents were last compared. Each form
	// has a different number; 0: unknown.
	Served uint64
	// At is when the state was last known to be current.
	At time.Time
}

// Load fills an empty store with a state from an earlier run, before the first list and any commit. Queues start with
// it. If a key occurs twice, the last version counts. The state is Listing until Resume, or until a commit with Live
// or Sweep. Differences that a list finds are Relisted. If the state is not trusted, that list compares contents, not
// versions. Indexes get each object with nil values.
func (s *Store) Load(items []Item, h Head, trusted bool) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
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
	s.head.epoch, s.head.served, s.head.loaded, s.head.current = max(h.Epoch, 1), h.Served, true, h.At
	if h.Phase == Live {
		s.head.version = h.Version
	}
	s.mu.Unlock()
	s.compareContents, s.outdated = !trusted, h.Phase != Live
	queues := s.queues
	s.queues = nil
	for _, q := range queues {
		s.join(q, h.At, true)
	}
}

// join starts a queue with the current state, or lets it wait for that. The caller holds commitMu.
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

// admit starts the queues that wait for a synced state. The caller holds commitMu.
func (s *Store) admit(at time.Time) {
	waiting := s.waiting
	s.waiting = nil
	for _, q := range waiting {
		s.join(q, at, false)
	}
}

// Resume declares that the loaded state belongs to the server's history, so commits continue it and batches carry its
// version again. It does nothing after a list.
func (s *Store) Resume() {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := &s.head; h.loaded && !h.synced && !h.listing && h.version != "" {
		h.phase = Resuming
	}
}

// Begin starts a list at its first page. With compare, it compares contents even where versions are equal. An epoch above
// the current one means that the server's history was replaced: until the list is complete, no version proves anything.
func (s *Store) Begin(compare bool, epoch int64) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.isClosed() {
		return
	}
	s.mark++
	clear(s.unread) // the list names them again
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.phase, s.head.listing = Listing, true
	s.compareContents = s.compareContents || compare
	if epoch > s.head.epoch {
		s.head.epoch, s.head.version = epoch, ""
		s.compareContents, s.outdated = true, true
	}
}

// Seen identifies an object in a list before its content is read.
type Seen struct {
	UID, RV string
	Format  wire.Format
	Sum     uint64 // of the content; 0: unknown
}

// Known reports, while listing, whether this very version is stored. If so, it counts as listed and needs nothing
// further. UID and resource version alone do not identify an object's content: defaulting, conversion and upgrades
// change what the server returns for the same version. The sums must be equal, too. Only if the object now comes in
// another format, whose sums cannot be compared, do UID and version decide, and the stored bytes stay.
func (s *Store) Known(k Key, seen Seen) bool {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	o, _ := s.table.find(k)
	if o == nil || !s.trusts(o) || !seen.is(o.v) {
		return false
	}
	o.mark = s.mark
	delete(s.unread, k)
	return true
}

// is reports whether UID, version and sum prove that v is the version seen.
func (s *Seen) is(v *compact.Version) bool {
	return s.UID != "" && s.RV != "" && v.UID() == s.UID && v.RV() == s.RV &&
		(v.Format() != s.Format || s.Sum != 0 && v.Sum() == s.Sum)
}

func seen(v *compact.Version) *Seen {
	return &Seen{UID: v.UID(), RV: v.RV(), Format: v.Format(), Sum: v.Sum()}
}

// ServedDifferently reports whether the stored object has this UID and version but possibly other content, because
// the server serves it in another form. It may be called from any goroutine.
func (s *Store) ServedDifferently(k Key, seen Seen) bool {
	v := s.Get(k)
	return v != nil && v.UID() == seen.UID && v.RV() == seen.RV && !seen.is(v)
}

// Ahead reports whether a newer version of this object is stored, of the same history as far as is known. Since a list
// is always current, that proves that the server's history was replaced.
func (s *Store) Ahead(k Key, uid, rv string) bool {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	o, _ := s.table.find(k)
	_, unverified := s.unverified[o]
	return o != nil && !s.outdated && !unverified && o.v.UID() == uid && wire.Older(rv, o.v.RV())
}

// trusts reports whether the stored resource version belongs to the server's history.
func (s *Store) trusts(o *object) bool {
	_, unverified := s.unverified[o]
	return !s.compareContents && !unverified
}

// resumable returns a batch's version: the one to resume from, or empty. The caller holds commitMu.
func (s *Store) resumable() string {
	if s.head.phase == Listing || len(s.unread) > 0 {
		return ""
	}
	return s.head.version
}

// batch returns a batch without deltas that has the store's position. The caller holds commitMu.
func (s *Store) batch() Batch {
	h := &s.head
	return Batch{Stream: s.id, Epoch: h.epoch, Phase: h.phase, Version: s.resumable(), Served: h.served, Current: h.current}
}

// Version returns the resource version up to which the stream was seen.
func (s *Store) Version() string { return s.state().version }

// Epoch returns the current epoch, counted from 1.
func (s *Store) Epoch() int64 { return s.state().epoch }

// Served returns the form in which the server served the kind when all contents were last compared; 0: unknown.
func (s *Store) Served() uint64 { return s.state().served }

// Synced reports whether a list was ever completed or a loaded state caught up.
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

// Get returns an object's stored version, or nil.
func (s *Store) Get(k Key) *compact.Version {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.get(k)
}

// Snapshot returns the objects of a namespace, or of all if it is empty, from one moment and in no order. The slice
// is the caller's.
func (s *Store) Snapshot(namespace string) []Item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.items(namespace)
}

// Namespaces returns the objects' namespaces, in no order. The empty one stands for objects without a namespace.
func (s *Store) Namespaces() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.table.spaces))
}

// View calls f while neither objects nor indexes can change. f must be quick: it must not wait or call the store.
func (s *Store) View(f func(get func(Key) *compact.Version)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.table.get)
}

// Subscribe adds a queue, which starts with the current state; see QueueOptions.AwaitSynced.
func (s *Store) Subscribe(q *Queue, at time.Time) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.isClosed() {
		return
	}
	s.join(q, at, false)
}

// Unsubscribe removes a queue.
func (s *Store) Unsubscribe(q *Queue) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	same := func(x *Queue) bool { return x == q }
	s.queues = slices.DeleteFunc(s.queues, same)
	s.waiting = slices.DeleteFunc(s.waiting, same)
}

// Close ends the store. Nothing changes afterwards; readers and indexes keep the last state. Queues must be closed
// separately.
func (s *Store) Close() {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queues, s.waiting = true, nil, nil
	clear(s.unverified)
	clear(s.unread)
}
