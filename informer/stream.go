package informer

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// A resource version belongs to a stream. A source with several namespaces has several streams, each with its own
// version, gaps and state.
//
// The version of a stream and its objects reach the disk in one transaction. A first list, or a list that is not
// complete, is marked as such; after a restart in the middle of it, the stream lists again.

// stream is one list and watch of a source. Any goroutine may use it, except for its parts.
type stream struct {
	source   *Source
	id       Stream
	storage  string // see histories
	store    *store.Store
	progress progress
	counts   struct{ decodeErrors, lossyDecodes, mutations atomic.Uint64 }

	ingest  ingest
	resume  resume
	auditor auditor

	// The reflector's goroutine uses these.
	jsonInstead time.Time // when the server last answered 500 in protobuf but not in JSON; zero: not at the last request
	saving      func()    // stops writing the checkpoint; nil while it is not written
	parked      bool

	mu        sync.Mutex // guards what follows
	status    Status
	refused   bool                 // waiting does not resolve Err
	reflector *reflector.Reflector // nil before run
	retrying  bool                 // a parked stream is about to list
}

func newStream(s *Source, i int, namespace string) *stream {
	id := Stream{Resource: s.gvr, Namespace: namespace}
	st := &stream{source: s, id: id, storage: storageOf(s.gvr.GroupResource()), store: store.New(i), status: Status{Stream: id, Since: time.Now()}}
	st.store.Replaced = s.replaced
	st.ingest = ingest{stream: st, packer: compact.Packer{Router: s.router}}
	st.resume = resume{stream: st}
	st.auditor = auditor{stream: st, wake: make(chan struct{}, 1), delay: jittered(auditDelay)}
	return st
}

func (s *stream) hooks() *reports { return s.source.hooks() }

// run serves the stream until ctx ends.
func (s *stream) run(ctx context.Context) {
	c := s.source.cluster
	file := s.openCheckpoint(ctx)
	r := &reflector.Reflector{
		Open:         s.open,
		Query:        s.query(),
		Sink:         &s.ingest,
		Lists:        c.lists,
		Timing:       c.timing,
		Paged:        s.source.opts.Paged,
		Resume:       s.resume.from(ctx, file),
		Verify:       s.resume.verify,
		Compare:      s.auditor.compareLoaded,
		CheckHistory: s.resume.checkHistory,
		Served:       s.served,
		Stalled:      c.heartbeat.stalled,
		Observe:      s.noted,
	}
	s.mu.Lock()
	s.reflector = r
	s.mu.Unlock()
	s.startSaving(ctx, file)
	stopAudits := s.auditor.start(ctx, r)
	c.awaitForms(ctx)
	r.Run(ctx)
	stopAudits()
	s.stopSaving()
}

// query returns the stream's selectors.
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

func (s *stream) selects(k store.Key) bool {
	keep := s.source.opts.Selection.Keep
	return keep == nil || keep(k.Namespace, k.Name)
}

// Report implements reflector.Sink.
func (s *stream) Report(m reflector.Machine) {
	s.pauseSaving(m.State == reflector.Parked)
	before := s.Status()
	s.mu.Lock()
	if m.State == reflector.Parked && s.retrying {
		s.mu.Unlock()
		return // it is Starting already
	}
	s.retrying = false
	st := &s.status
	st.State, st.Err, st.Attempts, st.Synced = published(m), m.Err, m.Attempts, m.Synced
	st.Loaded = st.Loaded || m.Synced
	s.refused = m.Refused()
	if st.State != before.State {
		st.Since = time.Now()
	}
	s.mu.Unlock()
	now := s.Status()
	now.State, now.Err = published(m), m.Err // even if Retry has changed them since
	if now.State == before.State && now.Synced == before.Synced && now.Attempts == before.Attempts {
		return
	}
	s.source.notify()
	if before.State == Waiting && now.State == Watching && now.Synced {
		s.auditor.want()
	}
	s.auditor.notify()
	s.hooks().state(now)
	if f := s.source.opts.OnState; f != nil {
		f(now)
	}
}

// published returns the machine's state as callers see it: after a failure, a stream is Waiting until the server has
// accepted its next list or watch.
func published(m reflector.Machine) State {
	switch {
	case m.State == reflector.Parked:
		return Parked
	case m.State == reflector.Stopped:
		return Stopped
	case m.Err != nil:
		return Waiting
	case m.State == reflector.Listing:
		return Listing
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

// Status returns the stream's status.
func (s *stream) Status() Status {
	st, _ := s.inspect()
	return st
}

// inspect returns the status, and whether Err is a refusal that waiting does not resolve.
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

// sync returns the status; final means that waiting alone will not make the stream sync.
func (s *stream) sync() (st Status, final bool) {
	st, refused := s.inspect()
	return st, refused || st.State == Parked || st.State == Stopped
}
