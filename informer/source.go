package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Source keeps the objects of one resource under one selection. It is safe for concurrent use.
type Source struct {
	cluster *Cluster
	gvr     schema.GroupVersionResource
	opts    SourceOptions
	streams []*stream

	restart sync.Mutex // held while parked streams are touched; taken before mu

	mu      sync.Mutex
	version string // of the API group, as it is asked for now
	closed  bool
	ctx     context.Context // of the streams; nil before they start
	stop    func()          // ends it
	changed chan struct{}
	feeds   map[*Feed]struct{}
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
	s := &Source{cluster: c, gvr: gvr, opts: o, version: gvr.Version, changed: make(chan struct{}), feeds: map[*Feed]struct{}{}}
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
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	f := &Feed{source: s, name: name, queue: store.NewQueue(len(s.streams), o.Budget)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.feeds[f] = struct{}{}
	for _, st := range s.streams {
		st.store.Subscribe(f.queue, time.Now())
	}
	return f, nil
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
	for {
		changed, closed := s.watchState()
		done := true
		var cause error
		for _, st := range s.streams {
			status, final := st.sync()
			if status.Synced {
				continue
			}
			done = false
			if status.Err != nil {
				cause = &SyncError{Stream: status.Stream, Err: status.Err}
				if final {
					return cause
				}
			}
		}
		switch {
		case done:
			return nil
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

// Close ends the source's streams and feeds, without waiting for their goroutines: Cluster.Run does.
func (s *Source) Close() {
	feeds, first := s.shut()
	if !first {
		return
	}
	for _, f := range feeds {
		f.queue.Close()
	}
	for _, st := range s.streams {
		st.store.Close()
	}
	s.cluster.forget(s)
	s.notify()
}

func (s *Source) shut() (feeds []*Feed, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.closed = true
	if s.stop != nil {
		s.stop()
	}
	for f := range s.feeds {
		feeds = append(feeds, f)
	}
	clear(s.feeds)
	return feeds, true
}

func (s *Source) forget(f *Feed) {
	s.mu.Lock()
	delete(s.feeds, f)
	s.mu.Unlock()
	for _, st := range s.streams {
		st.store.Unsubscribe(f.queue)
	}
}
