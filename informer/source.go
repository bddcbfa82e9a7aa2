package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Source keeps the objects of one resource under one selection. It is safe for concurrent use.
type Source struct {
	cluster *Cluster
	gvr     schema.GroupVersionResource
	opts    SourceOptions
	streams []*stream
	router  *compact.Router
	hot     *compact.Hot
	recent  doorkeeper

	plain atomic.Bool  // the server has no protobuf of this resource
	scans atomic.Int64 // reads of everything

	sharing  sharing
	indexing sync.Mutex // held while indexes are added and removed
	indexers atomic.Pointer[[]*indexer]

	restart sync.Mutex // held while parked streams are touched; taken before mu

	mu        sync.Mutex
	version   string // of the API group, as it is asked for now
	closed    bool
	ctx       context.Context // of the streams; nil before they start
	stop      func()          // ends it
	changed   chan struct{}
	consumers map[*consumer]struct{}
	codecs    map[reflect.Type]*codec
	first     *codec // of the first view: what LiveStorage decodes to
	views     int
	lent      bool // it closes with its last view
}

// SyncError says that a stream of a source cannot complete its initial list.
type SyncError struct {
	Stream Stream
	// Err is the cause: an apierrors.APIStatus where the server answered.
	Err error
}

func (e *SyncError) Error() string {
	where := e.Stream.Resource.GroupResource().String()
	if e.Stream.Namespace != "" {
		where += " in namespace " + e.Stream.Namespace
	}
	return fmt.Sprintf("sync %s: %v", where, e.Err)
}

func (e *SyncError) Unwrap() error { return e.Err }

func newSource(c *Cluster, gvr schema.GroupVersionResource, o SourceOptions) (*Source, error) {
	if gvr.Version == "" || gvr.Resource == "" {
		return nil, fmt.Errorf("open source: %v names no version or no resource", gvr)
	}
	if _, err := labels.Parse(o.Selection.Labels); err != nil {
		return nil, fmt.Errorf("open source: label selector: %w", err)
	}
	if _, err := fields.ParseSelector(o.Selection.Fields); err != nil {
		return nil, fmt.Errorf("open source: field selector: %w", err)
	}
	if o.Format == Protobuf && o.Transform != nil && o.Transform.Apply != nil {
		return nil, errors.New("open source: Transform.Apply needs JSON, and the source asks for protobuf: use TransformOf")
	}
	s := &Source{
		cluster: c, gvr: gvr, opts: o, version: gvr.Version,
		router:    compact.NewRouter(compact.Options{}),
		hot:       compact.NewHot(o.hot()),
		changed:   make(chan struct{}),
		consumers: map[*consumer]struct{}{},
		codecs:    map[reflect.Type]*codec{},
	}
	namespaces := slices.Clone(o.Selection.Namespaces)
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for i, ns := range namespaces {
		s.streams = append(s.streams, newStream(s, i, ns))
	}
	return s, nil
}

// started notes how to end the streams, unless the source was closed before they began.
func (s *Source) started(ctx context.Context, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = ctx, stop
	return !s.closed
}

// running is the context of the streams; nil where they must not run.
func (s *Source) running() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.ctx
}

// Feed opens a feed: first the current state, then every change. The name shows up in what is told
// about the feed.
func (s *Source) Feed(name string, o FeedOptions) (*Feed, error) {
	c, err := s.consume(name, nil, store.QueueOptions{Budget: o.Budget})
	if err != nil {
		return nil, err
	}
	return &Feed{c}, nil
}

// Status describes the source's streams, in the order of their namespaces.
func (s *Source) Status() []Status {
	all := make([]Status, len(s.streams))
	for i, st := range s.streams {
		all[i] = st.Status()
	}
	return all
}

// Wait returns nil once every stream is synced, or a *SyncError as soon as one cannot be: the
// server refuses it (forbidden, unauthorized, …) or does not serve the kind. While the server does
// not answer, or fails, Wait goes on; when ctx ends, its error and the last cause are joined.
func (s *Source) Wait(ctx context.Context) error {
	return s.wait(ctx, func(st Status) bool { return st.Synced })
}

// WaitForLoad returns nil once every stream has a state to read: from a checkpoint, or because it is
// synced. Its errors are those of Wait.
func (s *Source) WaitForLoad(ctx context.Context) error {
	return s.wait(ctx, func(st Status) bool { return st.Loaded })
}

func (s *Source) wait(ctx context.Context, done func(Status) bool) error {
	for {
		changed, closed := s.watchState()
		ready, final, cause := s.progress(done)
		switch {
		case ready:
			return nil
		case final:
			return cause
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), cause)
		}
	}
}

// progress tells whether every stream is done, and else why one is not; final says that it will not
// be unless somebody changes something.
func (s *Source) progress(done func(Status) bool) (ready, final bool, cause error) {
	ready = true
	for _, st := range s.streams {
		status, stuck := st.sync()
		if done(status) {
			continue
		}
		ready = false
		if status.Err == nil {
			continue
		}
		cause = &SyncError{Stream: status.Stream, Err: status.Err}
		if stuck {
			return false, true, cause
		}
	}
	return ready, false, cause
}

// reaching returns the streams that can have objects of a namespace; empty is all of them.
func (s *Source) reaching(namespace string) []*stream {
	if namespace == "" || len(s.opts.Selection.Namespaces) == 0 {
		return s.streams
	}
	i, ok := slices.BinarySearchFunc(s.streams, namespace, func(st *stream, ns string) int {
		return cmp.Compare(st.id.Namespace, ns)
	})
	if !ok {
		return nil
	}
	return s.streams[i : i+1]
}

// join counts a view; lent says that the source is to close with the last one.
func (s *Source) join(lent bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.views++
	s.lent = s.lent || lent
	return nil
}

func (s *Source) leave() {
	s.mu.Lock()
	s.views--
	over := s.lent && s.views == 0
	s.mu.Unlock()
	if over {
		s.Close()
	}
}

// decodes returns the source's codec of a Go type: c, unless there is one already.
func (s *Source) decodes(t reflect.Type, c *codec) *codec {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.codecs[t]; have != nil {
		return have
	}
	s.codecs[t] = c
	if s.first == nil {
		s.first = c
	}
	return c
}

// live is what objects are kept decoded to; nil where they are not.
func (s *Source) live() *codec {
	if s.opts.Storage != LiveStorage {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// keep keeps a decoded object; scanned says that it was read because everything is. It returns the
// one that is kept, which another reader may have been quicker with.
func (s *Source) keep(v *compact.Version, c *codec, obj Object, size int64, scanned bool) Object {
	put := s.hot.Put
	switch {
	case s.live() == c:
		put = s.hot.Pin
	case scanned:
		put = s.hot.Fill
	}
	kept, ok := put(v, c, obj, size).(Object)
	if !ok {
		return obj
	}
	return kept
}

// beginScan tells what becomes of objects that are read because everything is.
func (s *Source) beginScan(shared bool) use {
	again := s.scans.Add(1) > 1
	if shared || s.opts.Storage == LiveStorage || s.opts.Storage == AutoStorage && again {
		return scanning
	}
	return passing
}

// wants is the format that the source asks for.
func (s *Source) wants() Format {
	if s.plain.Load() {
		return JSON
	}
	return s.opts.Format
}

func (s *Source) hooks() *Hooks { return &s.cluster.opts.Hooks }

func (s *Source) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Source) consuming() []*consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.consumers), func(a, b *consumer) int { return cmp.Compare(a.name, b.name) })
}

// Retry starts those streams again that are Parked because the kind was not served, and asks for
// this version of the API group from then on; an object has the same resource version under each.
// A stream lists against what it knows, so that only real differences are told, behind a Gap if it
// holds objects: what happened to them meanwhile was not seen. Its Stream stays the same.
//
// Like Retire, it does nothing for streams that are not Parked, or still within the call of OnState
// that says so.
func (s *Source) Retry(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	s.cluster.relaunch(s)
}

// Retire says that the kind of a source is gone: streams that are Parked drop their objects and tell
// of it as deletions that were missed, behind a Gap; done again, it tells nothing. Retry brings the
// source back.
func (s *Source) Retire() {
	s.parked(func(st *stream) { st.retire() })
}

// parked calls f for each stream that has ended because its kind is not served. The lock keeps
// those from being started meanwhile.
func (s *Source) parked(f func(*stream)) {
	s.restart.Lock()
	defer s.restart.Unlock()
	for _, st := range s.streams {
		if st.parked.Load() {
			f(st)
		}
	}
}

// served is the resource in the version that is asked for.
func (s *Source) served() schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gvr.GroupResource().WithVersion(s.version)
}

// watchState returns a channel that is closed with the next change of a stream's state.
func (s *Source) watchState() (changed <-chan struct{}, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.closed
}

// notify wakes those who wait for a change of state.
func (s *Source) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close ends the source's streams and consumers, without waiting for their goroutines: Cluster.Run
// does.
func (s *Source) Close() {
	consumers, first := s.shut()
	if !first {
		return
	}
	for _, c := range consumers {
		c.queue.Close()
	}
	for _, st := range s.streams {
		st.store.Close()
	}
	s.cluster.forget(s)
	s.notify()
}

func (s *Source) shut() (consumers []*consumer, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.closed = true
	if s.stop != nil {
		s.stop()
	}
	consumers = slices.Collect(maps.Keys(s.consumers))
	clear(s.consumers)
	return consumers, true
}
