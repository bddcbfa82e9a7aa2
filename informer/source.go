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
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/raw"
)

// The parts for decoded objects to share that a source keeps, in bytes: where objects are kept decoded, and where they
// are not.
const (
	fewParts  = 8 << 20
	manyParts = 64 << 20
)

// tidyEvery is how often what nobody reads any more is let go of.
const tidyEvery = 5 * time.Minute

// Source keeps the objects of one resource under one selection. It is safe for concurrent use.
type Source struct {
	cluster *Cluster
	gvr     schema.GroupVersionResource
	opts    SourceOptions
	streams []*stream
	router  *compact.Router
	hot     *compact.Hot
	parts   *plans.Table // that decoded objects share, where nobody may change them
	recent  doorkeeper
	shares  atomic.Bool // somebody gets shared objects

	restore func(ctx context.Context, namespace string, pack raw.Pack) (*checkpoint.State, error) // nil: there is nothing
	sumKey  []byte                                                                                // of sums of contents; nil: none

	plain atomic.Int64 // until when the server counts as one without protobuf of this resource, in Unix nanoseconds
	scans atomic.Int64 // reads of everything, lately

	labelled atomic.Bool // the stores keep an index of labels

	sharing  sharing
	indexing sync.Mutex // held while indexes are added and removed
	indexers atomic.Pointer[[]*indexer]

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

func newSource(c *Cluster, gvr schema.GroupVersionResource, o SourceOptions, f raw.Options) (*Source, error) {
	if gvr.Version == "" || gvr.Resource == "" {
		return nil, fmt.Errorf("open source: the resource to watch needs a version and a name (plural): got group %q, version %q, resource %q",
			gvr.Group, gvr.Version, gvr.Resource)
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
		return nil, errors.New("open source: Restore needs JSON, and the source asks for protobuf")
	}
	if why := o.needsJSON(); o.Format == Protobuf && why != "" {
		return nil, fmt.Errorf("open source: %s needs JSON, and the source asks for protobuf", why)
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
	s.hot.Left = s.left
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

// Status describes the source's streams, in the order of their namespaces.
func (s *Source) Status() []Status {
	all := make([]Status, len(s.streams))
	for i, st := range s.streams {
		all[i] = st.Status()
	}
	return all
}

// reaching returns the streams that can have objects of a namespace; empty is all of them.
func (s *Source) reaching(namespace string) []*stream {
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

// reaches tells whether the stream can have objects of a namespace; empty is all of them.
func (s *stream) reaches(namespace string) bool {
	return namespace == "" || s.id.Namespace == "" || s.id.Namespace == namespace
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

// leave counts a view less. A source that closes with its last view does so before anybody can join.
func (s *Source) leave() {
	s.mu.Lock()
	s.views--
	var closing bool
	var consumers []*consumer
	if s.lent && s.views == 0 {
		consumers, closing = s.shut()
	}
	s.mu.Unlock()
	if closing {
		s.end(consumers)
	}
}

// typed tells whether a view reads a Go type of one version of the kind.
func (s *Source) typed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.codecs {
		if c.versioned() {
			return true
		}
	}
	return false
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

// tidy lets go of what nobody has read, or decoded, for some time.
func (s *Source) tidy() {
	s.scans.Store(0)
	s.hot.Age()
	s.parts.Sweep()
}

// beginScan tells what becomes of objects that are read because everything is.
func (s *Source) beginScan(shared bool) use {
	again := s.scans.Add(1) > 1
	if shared || s.opts.Storage == LiveStorage || s.opts.Storage == AutoStorage && again {
		return scanning
	}
	return passing
}

// wants is the format that the source asks for now. Objects that came in another one stay as they are.
func (s *Source) wants() Format {
	if time.Now().UnixNano() < s.plain.Load() {
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

// served is the resource in the version that is asked for.
func (s *Source) served() schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gvr.GroupResource().WithVersion(s.version)
}

// Close ends the source's streams and consumers, without waiting for their goroutines: Cluster.Run
// does.
func (s *Source) Close() {
	s.mu.Lock()
	consumers, first := s.shut()
	s.mu.Unlock()
	if first {
		s.end(consumers)
	}
}

// end is the rest of Close, behind shut.
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

// shut refuses everything new; s.mu is held.
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
