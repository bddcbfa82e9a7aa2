package informer

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// A resource version belongs to a stream. A source with several namespaces has several streams, each with its own
// version, gaps and state.
//
// The version of a stream and its objects reach the disk in one transaction. A first list, or a list that is not
// complete, is marked as such; after a restart in the middle of it, the stream lists again.

// A list is committed in pieces of this many objects, or compressed bytes.
const (
	maxStaged      = 500
	maxStagedBytes = 1 << 20
)

// stream is one list-and-watch: it takes what the reflector reads into its store. Its methods are
// the reflector's goroutine's, but for those that say otherwise.
type stream struct {
	source *Source
	id     Stream
	store  *store.Store
	packer compact.Packer

	staged      []store.Change // of the list under way
	stagedBytes int
	gap         *store.Gap // to be told with the next commit
	began       time.Time  // the list under way
	after       time.Time  // when what is stored was last known to be current
	late        late
	formThen    uint64 // what the list leaves as the form in which the kind was served
	mixed       bool   // the list had objects that are stored in another format

	asked      bool           // whether there is a state of an earlier run
	loaded     loaded         // which
	unverified bool           // nobody knows yet whether it is of the server's history
	expect     *expected      // whose deletion the watch must deliver before a loaded state counts as caught up
	held       []store.Commit // see hold
	heldBytes  int
	holding    bool
	witnesses  witnesses
	missing    []sighting // of them, at the server, when it was asked last

	progress progress // of what is stored

	jsonInstead time.Time // when the last request was answered 500 in protobuf and in JSON was not; zero: it was not

	counts struct{ decodeErrors, lossyDecodes, mutations atomic.Uint64 }

	mu       sync.Mutex // guards what follows
	status   Status
	refused  bool // why it does not get on, waiting does not change
	parking  parking
	auditing auditing
	unlook   func() // ends the look for the kind of a parked stream; nil before the first

	turn sync.Mutex // held by a run to its very end; taken before mu
}

// loaded describes the state of an earlier run.
type loaded struct {
	identity string    // of the cluster; empty: not known
	newest   store.Key // the object with the highest version; without a name: there is none
	uid, rv  string    // of newest
}

// expected is an object that was loaded and that the server does not have.
type expected struct {
	key store.Key
	uid string
}

func newStream(s *Source, i int, namespace string) *stream {
	id := Stream{Resource: s.gvr, Namespace: namespace}
	objects := store.New(i)
	objects.Replaced = s.replaced
	return &stream{
		source: s, id: id, store: objects,
		packer: compact.Packer{Router: s.router},
		status: Status{Stream: id, Since: time.Now()},

		auditing: auditing{wake: make(chan struct{}, 1), delay: jittered(auditDelay)},
	}
}

func (s *stream) hooks() *Hooks { return s.source.hooks() }

func (s *stream) run(ctx context.Context) {
	s.turn.Lock()
	defer s.turn.Unlock()
	c := s.source.cluster
	r := reflector.Reflector{
		Open:   s.open,
		Query:  s.query(),
		Sink:   s,
		Lists:  c.lists,
		Timing: c.timing,
		Paged:  s.source.opts.Paged,
		Synced: s.store.Synced(),
		Verify: s.verify,
		Doubt:  s.doubt,

		Compare: s.compareLoaded,
		Served:  s.served,
		Tell:    s.noted,
	}
	file := s.openCheckpoint(ctx)
	if !s.asked {
		s.asked = true
		r.Resume = s.resume(ctx, file)
	}
	stop := func() {}
	if file != nil {
		stop = s.startSaving(ctx, file)
	}
	stopAudits := s.startAudits(ctx, &r)
	c.awaitForms(ctx)
	r.Run(ctx)
	stopAudits()
	stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looking := s.look(cancel)
	s.rest()
	if looking && r.AwaitServed(ctx) == nil {
		s.wakeUp()
	}
}

// query is what the stream's selection asks the server for.
func (s *stream) query() url.Values {
	q := url.Values{}
	if v := s.source.opts.Selection.Labels; v != "" {
		q.Set("labelSelector", v)
	}
	if v := s.source.opts.Selection.Fields; v != "" {
		q.Set("fieldSelector", v)
	}
	return q
}

// resume takes in the state of an earlier run, if there is one, and tells whether the stream may be
// resumed from it.
func (s *stream) resume(ctx context.Context, file *checkpoint.Stream) bool {
	switch {
	case s.source.restore != nil:
		return s.restore(ctx)
	case file != nil:
		return s.load(file)
	}
	return false
}

// Report implements reflector.Sink.
func (s *stream) Report(m reflector.Machine) {
	before := s.Status()
	s.update(func(st *Status) {
		st.State, st.Err, st.Attempts, st.Synced = published(m), m.Err, m.Attempts, m.Synced
		st.Loaded = st.Loaded || m.Synced
		s.refused = m.Refused()
		if st.State != before.State {
			st.Since = time.Now()
		}
	})
	now := s.Status()
	now.State, now.Err = published(m), m.Err // also if Retry was quicker
	if now.State == before.State && now.Synced == before.Synced && now.Attempts == before.Attempts {
		return
	}
	s.source.notify()
	if before.State == Waiting && now.State == Watching && now.Synced {
		s.wantAudit()
	}
	s.wakeAudit()
	s.hooks().state(now)
	if f := s.source.opts.OnState; f != nil {
		f(now)
	}
}

// published is the machine's state as the caller sees it: after a failure a stream waits until the
// server has accepted its next list or watch.
func published(m reflector.Machine) State {
	switch {
	case m.State == reflector.Parked:
		return Parked
	case m.State == reflector.Stopped:
		return Stopped
	case m.Err != nil:
		return Waiting
	case m.State == reflector.Listing:
		return ListingState
	case m.State == reflector.Idle, m.State == reflector.Probing && m.Resuming:
		return Starting
	}
	return Watching
}

func (s *stream) update(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// Status may be called by anybody.
func (s *stream) Status() Status {
	st, _ := s.inspect()
	return st
}

// inspect is Status, and whether Err is something that waiting does not change.
func (s *stream) inspect() (st Status, refused bool) {
	objects, version := s.store.Stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.status
	st.Objects, st.Version, st.Epoch = objects, version, s.store.Epoch()
	st.DecodeErrors, st.LossyDecodes = s.counts.decodeErrors.Load(), s.counts.lossyDecodes.Load()
	st.Mutations = s.counts.mutations.Load()
	return st, st.Err != nil && s.refused
}

// sync may be called by anybody. final says that the stream will not sync unless somebody changes
// something.
func (s *stream) sync() (st Status, final bool) {
	st, refused := s.inspect()
	return st, refused || st.State == Parked || st.State == Stopped
}
