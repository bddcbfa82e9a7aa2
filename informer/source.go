package informer

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/raw"
)

// Limits of a source's table of shared parts, in bytes: without decoded objects, and with them.
const (
	fewParts  = 8 << 20
	manyParts = 64 << 20
)

// tidyEvery is how often unread decoded objects are evicted.
const tidyEvery = 5 * time.Minute

// Source keeps the objects of one resource under one selection. It is safe for concurrent use.
type Source struct {
	cluster *Cluster
	gvr     schema.GroupVersionResource
	opts    SourceOptions
	streams []*stream
	router  *compact.Router
	hot     *compact.Hot
	parts   *plans.Table // parts shared by read-only decoded objects
	recent  doorkeeper
	shares  atomic.Bool // shared objects are handed out

	restore func(ctx context.Context, namespace string, pack raw.Pack) (*checkpoint.State, error) // nil: nothing to restore
	sumKey  []byte                                                                                // keys content sums, so that hidden values cannot be guessed from them; nil: unkeyed

	jsonUntil atomic.Int64 // until when to request JSON because the server lacks protobuf, in Unix nanoseconds
	scans     atomic.Int64 // recent reads of all objects

	labelled atomic.Bool // the stores keep an index of labels

	sharing  sharing
	indexing sync.Mutex // held while indexes are added and removed
	indexers atomic.Pointer[[]*indexer]

	mu        sync.Mutex
	version   string // the API version requested now
	closed    bool
	ctx       context.Context // the streams' context; nil before they start
	stop      func()          // cancels ctx
	changed   chan struct{}
	consumers map[*consumer]struct{}
	codecs    map[reflect.Type]*codec
	first     *codec // the first view's codec, which LiveStorage uses
	views     int
	autoClose bool // it closes with its last view
}

func newSource(c *Cluster, gvr schema.GroupVersionResource, o SourceOptions, f raw.Options) (*Source, error) {
	if gvr.Version == "" || gvr.Resource == "" {
		return nil, fmt.Errorf("open source: a resource needs a version and a plural name: got group %q, version %q, resource %q",
			gvr.Group, gvr.Version, gvr.Resource)
	}
	if errs := append(validation.IsDNS1123Subdomain(cmp.Or(gvr.Group, "core")), slices.Concat(validation.IsDNS1123Label(gvr.Version), validation.IsDNS1123Label(gvr.Resource))...); len(errs) > 0 {
		return nil, fmt.Errorf("open source: invalid group %q, version %q or resource %q, such as apps, v1 and deployments: %s",
			gvr.Group, gvr.Version, gvr.Resource, errs[0])
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	if _, err := canonicalLabels(o.Selection.Labels); err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	if _, err := canonicalFields(o.Selection.Fields); err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	namespaces, err := namespaces(o.Selection.Namespaces)
	if err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	if f.Restore != nil && o.Format == Protobuf {
		return nil, errors.New("open source: Restore needs JSON, but the source requests protobuf")
	}
	if why := o.needsJSON(); o.Format == Protobuf && why != "" {
		return nil, fmt.Errorf("open source: %s needs JSON, but the source requests protobuf", why)
	}
	s := &Source{
		cluster: c, gvr: gvr, opts: o, version: gvr.Version,
		restore: f.Restore, sumKey: f.SumKey,
		router:    compact.NewRouter(compact.Options{}),
		hot:       compact.NewHot(o.hot()),
		parts:     plans.NewTable(o.parts()),
		changed:   make(chan struct{}),
		consumers: map[*consumer]struct{}{},
		codecs:    map[reflect.Type]*codec{},
	}
	if o.Transform != nil && s.sumKey == nil && s.checkpointed() {
		s.sumKey = make([]byte, sha256.Size)
		rand.Read(s.sumKey) // it never fails
	}
	s.hot.Left = s.sampleEvicted
	for i, ns := range namespaces {
		s.streams = append(s.streams, newStream(s, i, ns))
	}
	return s, nil
}

// started stores the streams' context, and reports false if the source was closed before they began.
func (s *Source) started(ctx context.Context, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = ctx, stop
	return !s.closed
}

// running returns the streams' context; nil if they must not run.
func (s *Source) running() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.ctx
}

// Status describes the source's streams, in the order of their namespaces.
func (s *Source) Status() []Status {
	all := make([]Status, len(s.streams))
	for i, st := range s.streams {
		all[i] = st.Status()
	}
	return all
}

// streamsOf returns the streams that may hold objects of a namespace; empty means all of them.
func (s *Source) streamsOf(namespace string) []*stream {
	if namespace == "" || s.streams[0].id.Namespace == "" {
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

// mayHold reports whether the stream may hold objects of a namespace; empty means any.
func (s *stream) mayHold(namespace string) bool {
	return namespace == "" || s.id.Namespace == "" || s.id.Namespace == namespace
}

// join adds a view; with autoClose the source closes with its last view.
func (s *Source) join(autoClose bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.views++
	s.autoClose = s.autoClose || autoClose
	return nil
}

// leave removes a view. A source that closes with its last view does so before another view can join.
func (s *Source) leave() {
	s.mu.Lock()
	s.views--
	var closing bool
	var consumers []*consumer
	if s.autoClose && s.views == 0 {
		consumers, closing = s.shut()
	}
	s.mu.Unlock()
	if closing {
		s.end(consumers)
	}
}

// hasTypedView reports whether a view has a Go type that belongs to one version of the kind.
func (s *Source) hasTypedView() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.codecs {
		if c.versioned() {
			return true
		}
	}
	return false
}

// codecFor returns the source's codec for a Go type: c, unless there is one already.
func (s *Source) codecFor(t reflect.Type, c *codec) *codec {
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

// live returns the codec for LiveStorage; nil for other kinds of storage.
func (s *Source) live() *codec {
	if s.opts.Storage != LiveStorage {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// keep keeps a decoded object; scanned means that it was read in a scan of all objects. It returns the kept object, which
// may be one that another reader added first.
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

// tidy evicts decoded objects and parts that were not used recently.
func (s *Source) tidy() {
	s.scans.Store(0)
	s.hot.Age()
	s.parts.Sweep()
}

// beginScan returns the use of objects read in a scan of all objects.
func (s *Source) beginScan(shared bool) use {
	again := s.scans.Add(1) > 1
	if shared || s.opts.Storage == LiveStorage || s.opts.Storage == AutoStorage && again {
		return scanning
	}
	return passing
}

// format returns the format that the source requests now. Objects stored in the other format stay as they are.
func (s *Source) format() Format {
	if time.Now().UnixNano() < s.jsonUntil.Load() {
		return JSON
	}
	return s.opts.Format
}

func (s *Source) hooks() *reports { return &s.cluster.reports }

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

// served returns the resource in the version that is requested now.
func (s *Source) served() schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gvr.GroupResource().WithVersion(s.version)
}

// move makes the source request another version of its API group.
func (s *Source) move(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// Close ends the source's streams and subscriptions. It does not wait for their goroutines; Cluster.Run does.
func (s *Source) Close() {
	s.mu.Lock()
	consumers, first := s.shut()
	s.mu.Unlock()
	if first {
		s.end(consumers)
	}
}

// end completes Close after shut.
func (s *Source) end(consumers []*consumer) {
	for _, c := range consumers {
		c.end()
	}
	for _, st := range s.streams {
		st.store.Close()
	}
	s.cluster.forget(s)
	s.notify()
}

// shut makes the source refuse new views and consumers; s.mu is held.
func (s *Source) shut() (consumers []*consumer, first bool) {
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
