package informer

import (
	"context"
	"io"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
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

	parked atomic.Bool // run has returned because the kind is not served

	mu     sync.Mutex // guards status
	status Status
}

func newStream(s *Source, i int, namespace string) *stream {
	id := Stream{Resource: s.gvr, Namespace: namespace}
	return &stream{source: s, id: id, store: store.New(i), status: Status{Stream: id, Since: time.Now()}}
}

func (s *stream) run(ctx context.Context) {
	c := s.source.cluster
	path := request.Path(s.source.served(), s.id.Namespace, "")
	q := url.Values{}
	if v := s.source.opts.Selection.Labels; v != "" {
		q.Set("labelSelector", v)
	}
	if v := s.source.opts.Selection.Fields; v != "" {
		q.Set("fieldSelector", v)
	}
	r := reflector.Reflector{
		Open: func(ctx context.Context, q url.Values) (io.ReadCloser, error) {
			return c.client.Open(ctx, path, q)
		},
		Query:  q,
		Sink:   s,
		Lists:  c.lists,
		Timing: c.timing,
		Synced: s.store.Synced(),
	}
	r.Run(ctx)
	s.parked.Store(s.Status().State == Parked)
}

// unpark prepares a parked stream for the next run.
func (s *stream) unpark() {
	if objects, _ := s.store.Stat(); objects > 0 {
		s.note(ReasonGone)
	}
	s.parked.Store(false)
}

// retire drops the objects of a kind that is gone. The stream must be parked: nobody else writes.
func (s *stream) retire() {
	if objects, _ := s.store.Stat(); objects == 0 {
		return
	}
	s.note(ReasonGone)
	s.Begin(false)
	s.Live(s.store.Version())
}

// Begin implements reflector.Sink.
func (s *stream) Begin(newEpoch bool) {
	s.unstage()
	s.after = s.began
	if s.store.Synced() {
		s.after = s.Status().LastCurrent
	}
	s.began = time.Now()
	s.store.Begin(newEpoch)
}

// Item implements reflector.Sink.
func (s *stream) Item(o wire.Object) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !s.keep(k) || s.store.Known(k, o.UID, o.ResourceVersion) {
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
	s.staged = append(s.staged, c)
	s.stagedBytes += c.Object.Size()
	if len(s.staged) >= maxStaged || s.stagedBytes >= maxStagedBytes {
		s.commit(store.Commit{})
	}
	return nil
}

func (s *stream) keep(k store.Key) bool {
	keep := s.source.opts.Selection.Keep
	return keep == nil || keep(k.Namespace, k.Name)
}

// change transforms and packs an object.
func (s *stream) change(k store.Key, o wire.Object) (store.Change, error) {
	c := store.Change{Key: k, UID: o.UID, Version: store.Version{RV: o.ResourceVersion}}
	raw, err := s.source.opts.Transform.apply(o.Raw)
	if err == nil {
		c.Object = s.packer.Pack(raw)
	}
	return c, err
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
		s.staged = append(s.staged, store.Change{Key: k, Keep: true})
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
	}
	s.unstage()
	drops := s.store.Commit(c)
	s.update(func(st *Status) {
		st.Dropped.Past += drops.Past
		st.Dropped.Repeated += drops.Same
	})
}

func (s *stream) unstage() {
	clear(s.staged)
	s.staged, s.stagedBytes = s.staged[:0], 0
}

// Event implements reflector.Sink.
func (s *stream) Event(ev wire.Event) {
	c := store.Commit{Version: ev.ResourceVersion}
	k := store.Key{Namespace: ev.Namespace, Name: ev.Name}
	if s.keep(k) {
		change, err := s.change(k, ev.Object)
		change.Delete = ev.Type == wire.Deleted
		if err != nil {
			s.lose(err)
		}
		if err == nil || change.Delete { // that it is gone needs no transform
			c.Changes = append(c.Changes, change)
		}
	}
	s.commit(c)
	s.current()
}

// Bookmark implements reflector.Sink.
func (s *stream) Bookmark(version string) {
	s.commit(store.Commit{Version: version})
	s.current()
}

// Current implements reflector.Sink.
func (s *stream) Current() { s.current() }

func (s *stream) current() {
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
		if st.State != before.State {
			st.Since = time.Now()
		}
	})
	now := s.Status()
	if now.State == before.State && now.Synced == before.Synced && now.Attempts == before.Attempts {
		return
	}
	s.source.notify()
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
	case m.State == reflector.Idle:
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
	st.Objects, st.Version = objects, version
	return st
}

// sync may be called by anybody. final says that the stream will not sync unless somebody changes
// something.
func (s *stream) sync() (st Status, final bool) {
	st = s.Status()
	refused := st.Err != nil && reflector.IsRefusal(st.Err)
	return st, refused || st.State == Parked || st.State == Stopped
}
