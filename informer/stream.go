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
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

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

	asked      bool      // whether there is a state of an earlier run
	loaded     loaded    // which
	unverified bool      // nobody knows yet whether it is of the server's history
	expect     *expected // whose deletion must be told before a loaded state counts as caught up
	witnesses  witnesses
	missing    []sighting // of them, at the server, when it was asked last

	jsonInstead int // requests in a row that were answered 500 in protobuf, and in JSON were not

	counts struct{ decodeErrors, lossyDecodes atomic.Uint64 }

	mu      sync.Mutex // guards what follows
	status  Status
	parking parking
	unlook  func() // ends the look for the kind of a parked stream; nil before the first

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
	objects.Replaced = s.hot.Drop
	return &stream{
		source: s, id: id, store: objects,
		packer: compact.Packer{Router: s.router},
		status: Status{Stream: id, Since: time.Now()},
	}
}

func (s *stream) hooks() *Hooks { return s.source.hooks() }

func (s *stream) run(ctx context.Context) {
	s.turn.Lock()
	defer s.turn.Unlock()
	c := s.source.cluster
	q := url.Values{}
	if v := s.source.opts.Selection.Labels; v != "" {
		q.Set("labelSelector", v)
	}
	if v := s.source.opts.Selection.Fields; v != "" {
		q.Set("fieldSelector", v)
	}
	r := reflector.Reflector{
		Open:   s.open,
		Query:  q,
		Sink:   s,
		Lists:  c.lists,
		Timing: c.timing,
		Paged:  s.source.opts.Paged,
		Synced: s.store.Synced(),
		Verify: s.verify,
		Doubt:  s.doubt,
		Tell:   s.noted,
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
	r.Run(ctx)
	stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looking := s.look(cancel)
	s.rest()
	if looking && r.AwaitServed(ctx) == nil {
		s.wakeUp()
	}
}

// resume takes in the state of an earlier run, if there is one, and tells whether the stream may be
// resumed from it.
func (s *stream) resume(ctx context.Context, file *checkpoint.Stream) bool {
	switch {
	case s.source.opts.Restore != nil:
		return s.restore(ctx)
	case file != nil:
		return s.load(file)
	}
	return false
}

// Begin implements reflector.Sink.
func (s *stream) Begin(newEpoch bool) {
	newEpoch = newEpoch || s.expect != nil || s.unverified // what was loaded may be of another history
	s.expect, s.unverified = nil, false
	s.witnesses, s.missing = nil, nil
	s.unpin(s.staged)
	s.unstage()
	s.after = s.began
	if st := s.Status(); st.Loaded {
		s.after = st.LastCurrent
	}
	s.began = time.Now()
	s.store.Begin(newEpoch)
}

// Item implements reflector.Sink.
func (s *stream) Item(o wire.Object) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !s.keep(k) {
		return nil
	}
	s.witnesses.listed(sighting{k, o.UID, o.ResourceVersion})
	if s.store.Known(k, o.UID, o.ResourceVersion) {
		return nil
	}
	if s.store.Ahead(k, o.UID, o.ResourceVersion) {
		return reflector.ErrRewritten
	}
	c, err := s.change(k, o)
	if err != nil {
		s.lose(err)
		c.Keep = true
	}
	s.stage(c)
	return nil
}

func (s *stream) keep(k store.Key) bool {
	keep := s.source.opts.Selection.Keep
	return keep == nil || keep(k.Namespace, k.Name)
}

// Gone implements reflector.Sink.
func (s *stream) Gone(o wire.Object) {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !s.keep(k) {
		return
	}
	s.witnesses.lost(k)
	s.stage(s.removal(k, o))
}

// stage adds to what the next commit holds, which it makes once that is much.
func (s *stream) stage(c store.Change) {
	s.staged = append(s.staged, c)
	s.stagedBytes += c.V.Size()
	if len(s.staged) >= maxStaged || s.stagedBytes >= maxStagedBytes {
		s.commit(store.Commit{})
	}
}

// kept returns the bytes that are kept of an object.
func (s *stream) kept(o wire.Object) ([]byte, error) {
	raw := o.Raw
	if s.source.opts.DropManagedFields {
		raw = wire.DropManagedFields(o.Format, raw)
	}
	return s.source.opts.Transform.run(o.Format, raw)
}

// change transforms, packs and indexes an object.
func (s *stream) change(k store.Key, o wire.Object) (store.Change, error) {
	c := store.Change{Key: k, UID: o.UID}
	raw, err := s.kept(o)
	if err != nil {
		return c, err
	}
	c.V = s.packer.Pack(o.Format, o.UID, o.ResourceVersion, raw)
	s.derive(&c, raw)
	return c, nil
}

// removal is a change that removes an object; its last word may be missing.
func (s *stream) removal(k store.Key, o wire.Object) store.Change {
	c := store.Change{Key: k, UID: o.UID, RV: o.ResourceVersion, Delete: true}
	if o.Raw == nil {
		return c
	}
	raw, err := s.kept(o)
	if err != nil { // that it is gone needs no transform
		s.lose(err)
		return c
	}
	c.V = s.packer.Pack(o.Format, o.UID, o.ResourceVersion, raw)
	return c
}

// lose counts a version that cannot be handed on, and notes the gap that it leaves.
func (s *stream) lose(err error) {
	reason := ReasonTransform
	if wire.Unreadable(err) {
		reason = ReasonUnreadable
	}
	s.update(func(st *Status) {
		st.Dropped.LastErr = err
		if reason == ReasonTransform {
			st.Dropped.Transform++
		} else {
			st.Dropped.Unreadable++
		}
	})
	s.note(reason)
}

// note adds to the gap that goes with the next commit.
func (s *stream) note(reason string) {
	since := s.Status().LastCurrent
	s.gap = s.gap.Merge(&store.Gap{From: s.store.Version(), Since: since, Reason: reason})
}

// Unreadable implements reflector.Sink.
func (s *stream) Unreadable(m wire.Meta, err error) {
	s.lose(err)
	if m.Name != "" {
		k := store.Key{Namespace: m.Namespace, Name: m.Name}
		s.staged = append(s.staged, store.Change{Key: k, UID: m.UID, Keep: true})
	}
}

// Page implements reflector.Sink.
func (s *stream) Page(version string) error {
	if wire.Older(version, s.store.Version()) {
		return reflector.ErrRewritten
	}
	if len(s.staged) > 0 {
		s.commit(store.Commit{Version: version})
	}
	return nil
}

// Live implements reflector.Sink.
func (s *stream) Live(version string) {
	s.commit(store.Commit{Version: version, Sweep: true})
	s.current()
}

// commit hands what is staged, and the gap, to the store and so to the feeds.
func (s *stream) commit(c store.Commit) {
	c.Changes = append(c.Changes, s.staged...)
	c.At, c.After = time.Now(), s.after
	if s.gap != nil {
		c.Gap = s.gap
		c.Gap.To, c.Gap.Until = c.Version, c.At
		s.gap = nil
		s.hooks().gap(s.id, *gapOf(c.Gap))
	}
	s.unstage()
	drops := s.store.Commit(c)
	s.unpin(c.Changes)
	s.update(func(st *Status) {
		st.Dropped.Past += drops.Past
		st.Dropped.Repeated += drops.Same
	})
}

// unpin lets go of decoded objects that were kept for versions that were not stored.
func (s *stream) unpin(changes []store.Change) {
	if s.source.live() == nil {
		return
	}
	for i := range changes {
		if c := &changes[i]; c.V != nil && s.store.Get(c.Key) != c.V {
			s.source.hot.Drop(c.V)
		}
	}
}

func (s *stream) unstage() {
	clear(s.staged)
	s.staged, s.stagedBytes = s.staged[:0], 0
}

// Event implements reflector.Sink.
func (s *stream) Event(ev wire.Event) error {
	c := store.Commit{Version: ev.ResourceVersion}
	k := store.Key{Namespace: ev.Namespace, Name: ev.Name}
	switch {
	case !s.keep(k):
	case ev.Type == wire.Deleted:
		if e := s.expect; e != nil && e.key == k && e.uid == ev.UID {
			s.expect = nil
		}
		s.witnesses.lost(k)
		c.Changes = append(c.Changes, s.removal(k, ev.Object))
	default:
		s.witnesses.saw(sighting{k, ev.UID, ev.ResourceVersion})
		change, err := s.change(k, ev.Object)
		if err != nil {
			s.lose(err)
		} else {
			c.Changes = append(c.Changes, change)
		}
	}
	s.commit(c)
	s.current()
	return nil
}

// Bookmark implements reflector.Sink.
func (s *stream) Bookmark(version string) error {
	s.commit(store.Commit{Version: version})
	s.current()
	return nil
}

// Current implements reflector.Sink.
func (s *stream) Current() { s.current() }

func (s *stream) current() {
	if !s.store.Synced() {
		return // still catching up with what was loaded
	}
	now := time.Now()
	s.update(func(st *Status) { st.LastCurrent = now })
}

// Missed implements reflector.Sink.
func (s *stream) Missed(reason string, tell bool) {
	s.note(reason)
	if tell {
		s.update(func(st *Status) { st.Dropped.Unreadable++ })
		s.commit(store.Commit{})
	}
}

// Version implements reflector.Sink.
func (s *stream) Version() string { return s.store.Version() }

// Report implements reflector.Sink.
func (s *stream) Report(m reflector.Machine) {
	before := s.Status()
	s.update(func(st *Status) {
		st.State, st.Err, st.Attempts, st.Synced = published(m), m.Err, m.Attempts, m.Synced
		st.Loaded = st.Loaded || m.Synced
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
	objects, version := s.store.Stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Objects, st.Version, st.Epoch = objects, version, s.store.Epoch()
	st.DecodeErrors, st.LossyDecodes = s.counts.decodeErrors.Load(), s.counts.lossyDecodes.Load()
	return st
}

// sync may be called by anybody. final says that the stream will not sync unless somebody changes
// something.
func (s *stream) sync() (st Status, final bool) {
	st = s.Status()
	refused := st.Err != nil && reflector.IsRefusal(st.Err)
	return st, refused || st.State == Parked || st.State == Stopped
}
