package clientgo

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/request"
)

// Behind client-go's interfaces, client-go's guarantees apply, not those of package informer: every event counts,
// whatever its version; a relist notifies of unchanged objects; a recreated object is an update. So this package
// shares compact, wire and request with the engine, but not its store or its reflector. client-go's own Reflector
// feeds it through the program's own clients, so requests, error handling and backoff are client-go's by
// construction.

// Engine holds what its informers share: the connection, the budgets for decoded objects, and statistics. It is safe
// for concurrent use.
type Engine struct {
	opts       Options
	http       *http.Client
	client     *request.Client // has the connection
	hot        *compact.Hot
	keptBudget keptBudget

	mu        sync.Mutex
	informers map[*sharedInformer]struct{} // the running ones
	aging     *time.Timer                  // nil: no informer has run yet
}

// New returns an Engine. It does not contact the server. cfg is copied. It may be nil if the informers only use the
// ListerWatchers with which they are made; then there is no HTTPClient.
func New(cfg *rest.Config, o Options) (*Engine, error) {
	e := newEngine(o)
	if cfg == nil {
		return e, nil
	}
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent() // as client-go's clients have it
	}
	client, err := request.New(cfg)
	if err != nil {
		return nil, err
	}
	plain, base := client.HTTP()
	mine := *plain
	if mine.Transport == nil {
		mine.Transport = http.DefaultTransport
	}
	mine.Transport = &capturing{next: mine.Transport, base: base.Path, gzip: !cfg.DisableCompression}
	mine.Timeout = cfg.Timeout
	e.http, e.client = &mine, client
	return e, nil
}

func newEngine(o Options) *Engine {
	e := &Engine{
		opts:      o,
		hot:       compact.NewHot(orDefault(o.Hot, defaultHot)),
		informers: map[*sharedInformer]struct{}{},
	}
	e.keptBudget.limit = orDefault(o.Kept, defaultKept)
	return e
}

// HTTPClient returns the client for controller-runtime's cache.Options.HTTPClient and client-go's
// NewForConfigAndClient. It intercepts the responses to lists and watches of informers that take them undecoded:
// those of NewCacheInformer, and of NewInformer with a ListWatch. Everything else passes through. It is nil if New
// got no configuration.
func (e *Engine) HTTPClient() *http.Client { return e.http }

// NewInformer returns an informer of the objects that lw lists and watches. It replaces cache.NewSharedIndexInformer
// and uses the engine's shared parts and budgets. The program's client decodes the responses, unless lw is a
// ListWatch. The indexers are copied.
func (e *Engine) NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return e.newInformer(lw, unknown, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewInformerWithOptions is NewInformer with the options of cache.NewSharedIndexInformerWithOptions. With an
// Identifier, the informer publishes client-go's informer metrics.
func (e *Engine) NewInformerWithOptions(lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
	return e.newInformer(lw, unknown, example, o)
}

// NewCacheInformer is only for controller-runtime's cache.Options.NewInformer, together with HTTPClient in the same
// options. It takes the responses to lw's requests undecoded. It relies on lw coming from controller-runtime's cache,
// which passes objects on as the server sends them.
func (e *Engine) NewCacheInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return e.newInformer(lw, controllerRuntime, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

func (e *Engine) newInformer(lw cache.ListerWatcher, made provenance, example runtime.Object, o cache.SharedIndexInformerOptions) *sharedInformer {
	s := &sharedInformer{
		engine:   e,
		lw:       lw,
		made:     made,
		example:  example,
		done:     done{name: fmt.Sprintf("SharedIndexInformer %T", example), ch: make(chan struct{})},
		options:  o,
		metrics:  newMetrics(o),
		detector: newDetector(),
		fallback: o.ResyncPeriod,
		check:    o.ResyncPeriod,
	}
	s.table = newTable(e, e.opts.storageOf(example), o.Indexers, s)
	return s
}

// NewSharedIndexInformer is cache.NewSharedIndexInformer with its own Engine, and so with its own budgets for decoded
// objects. The program's client decodes the responses.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return newEngine(Options{}).NewInformer(lw, example, resync, indexers)
}

// NewTypedSharedIndexInformer is NewSharedIndexInformer with typed handlers, indexers and reads. For an informer of
// an Engine, wrap that with cache.NewTypedSharedIndexInformer.
func NewTypedSharedIndexInformer[T cache.Object](lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.TypedIndexers[T]) cache.TypedSharedIndexInformer[T] {
	return cache.NewTypedSharedIndexInformer[T](
		NewSharedIndexInformer(lw, example, resync, cache.TypedIndexersToIndexers(indexers)))
}

func (e *Engine) join(s *sharedInformer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.informers[s] = struct{}{}
	if e.aging == nil {
		e.aging = time.AfterFunc(ageEvery, e.age)
	} else if len(e.informers) == 1 {
		e.aging.Reset(ageEvery)
	}
}

// ageEvery is the interval at which recently read objects age: an object that was not read for three intervals is
// dropped.
const ageEvery = 15 * time.Second

func (e *Engine) age() {
	e.hot.Age()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.informers) > 0 {
		e.aging.Reset(ageEvery)
	}
}

func (e *Engine) leave(s *sharedInformer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.informers, s)
	if len(e.informers) > 0 {
		return
	}
	e.aging.Stop()
	if e.client != nil {
		e.client.CloseIdle()
	}
}

// folds reports that a handler has exceeded its budget.
func (e *Engine) folds(l *listener) {
	e.log().Info("A handler is too slow: until it has caught up, it receives only each object's latest state",
		"informer", l.informer.title(), "handler", l.name, "budget", e.opts.handlerBudget())
	if f := e.opts.Hooks.Folding; f != nil {
		go f(l.informer.title(), l.name) // the hook may call the engine, which holds locks here
	}
}

// Stats describes an Engine.
type Stats struct {
	// Decoded is the size of the objects kept decoded for a while because they were read or changed, Kept the size of
	// those kept because they are read often: in estimated bytes of heap, without shared parts.
	Decoded, Kept int64
	Informers     []InformerStats // the running ones, sorted by name
}

// InformerStats describes an informer.
type InformerStats struct {
	// Name contains the kind of unstructured objects and metadata, once known, and otherwise the Go type.
	Name    string
	Objects int
	// Bytes is the size of the stored objects, including the samples against which they are packed. The size of
	// objects that are kept decoded is estimated.
	Bytes int64
	// Raw reports whether objects are cut out of the server's responses. Otherwise the program's client decodes them,
	// and Decoded says why, in a sentence.
	Raw     bool
	Decoded string
	// Undecodable counts, if Raw, the versions of objects that the server sent and the Go type cannot hold. They are
	// found when first read, and treated as absent.
	Undecodable uint64
	// Unpacked counts the versions of objects that are kept decoded because their type cannot be packed or packing
	// would change them. An example is a quantity such as "0.5", which Go writes as "500m".
	Unpacked uint64
	// LeftOut counts the versions for which a transform returned nil.
	LeftOut uint64
	// Kept is the number of objects kept decoded because they are read often, Parts the size of the parts that
	// decoded objects share, in bytes.
	Kept     int
	Parts    int64
	Handlers []HandlerStats // in the order in which they were added
}

// HandlerStats describes a handler.
type HandlerStats struct {
	Name string
	// Queued is the number of notifications not yet delivered, Bytes the memory that only they keep.
	Queued int
	Bytes  int64
	// Folded counts the notifications that were merged into later ones instead of being delivered.
	Folded uint64
}

// Stats returns the engine's current statistics.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	running := make([]*sharedInformer, 0, len(e.informers))
	for s := range e.informers {
		running = append(running, s)
	}
	e.mu.Unlock()
	st := Stats{Decoded: e.hot.Bytes(), Kept: e.keptBudget.used.Load()}
	for _, s := range running {
		st.Informers = append(st.Informers, s.stats())
	}
	slices.SortFunc(st.Informers, func(a, b InformerStats) int { return cmp.Compare(a.Name, b.Name) })
	return st
}

func (s *sharedInformer) stats() InformerStats {
	t := s.table
	s.mu.Lock()
	raw, isRaw := s.controller.(*rawSource)
	why := s.decoded
	s.mu.Unlock()
	t.mu.RLock()
	st := InformerStats{Decoded: why, Name: s.title(), Unpacked: t.packing.unpacked.Load(), Objects: len(t.list), Kept: int(t.kept.Load()), Parts: t.packing.parts.Stats().Bytes}
	t.mu.RUnlock()
	if isRaw {
		st.Raw = true
		st.Undecodable = raw.undecodable.n.Load()
	}
	st.LeftOut = s.left.Load()
	st.Bytes = t.bytes.Load() + t.packing.packer.Router.Stats().Bytes
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	for _, l := range s.listeners {
		h := HandlerStats{Name: l.name}
		h.Queued, h.Bytes, h.Folded = l.queue.lag()
		st.Handlers = append(st.Handlers, h)
	}
	return st
}
