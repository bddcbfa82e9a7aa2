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

// Under client-go's interfaces its promises hold, not ours: every event counts, whatever its version; a relist
// notifies of unchanged objects; a recreated object is an update. So this package shares compact, wire and request
// with the engine, and not its store or its reflector. client-go's own Reflector feeds it, with the program's own
// clients, so the requests, the handling of errors and the time until the next attempt are client-go's by
// construction.

// Engine is what informers share: the connection, the room for decoded objects, statistics. It is safe
// for concurrent use.
type Engine struct {
	opts       Options
	http       *http.Client
	client     *request.Client // has the connection
	hot        *compact.Hot
	keptBudget keptBudget

	mu        sync.Mutex
	informers map[*sharedInformer]struct{} // that run
	aging     *time.Timer                  // nil: no informer has run
}

// New returns an Engine; it does not talk to the server. cfg is copied. It may be nil for informers that
// only ever use the ListerWatchers that they are made with: there is no HTTPClient then.
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

// HTTPClient is the client that requests are sent with: for controller-runtime's cache.Options.HTTPClient and
// client-go's NewForConfigAndClient. It takes the answers to the lists and watches of informers that take them
// undecoded: those of NewCacheInformer, and of NewInformer with a ListWatch. All else passes through. It is nil where
// New had no configuration.
func (e *Engine) HTTPClient() *http.Client { return e.http }

// NewInformer returns an informer of what lw lists and watches: cache.NewSharedIndexInformer with what the engine
// shares. The program's client decodes what it lists and watches, unless lw is a ListWatch. The indexers are copied.
func (e *Engine) NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return e.newInformer(lw, unknown, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewInformerWithOptions is NewInformer with the options of cache.NewSharedIndexInformerWithOptions: with an Identifier,
// client-go's metrics of informers are published.
func (e *Engine) NewInformerWithOptions(lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
	return e.newInformer(lw, unknown, example, o)
}

// NewCacheInformer is for controller-runtime's cache.Options.NewInformer, beside HTTPClient in the same options, and
// for nothing else: it takes the answers to lw's requests undecoded, and relies on lw being one that
// controller-runtime's cache made, which hands on what the server sends.
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

// NewSharedIndexInformer is cache.NewSharedIndexInformer with an Engine of its own, and so with budgets for
// decoded objects that it shares with no other. The program's client decodes what it lists and watches.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return newEngine(Options{}).NewInformer(lw, example, resync, indexers)
}

// NewTypedSharedIndexInformer is NewSharedIndexInformer with handlers, indexers and reads of a Go type. For an
// informer of an Engine, use cache.NewTypedSharedIndexInformer on that.
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

// ageEvery is how often unread decoded objects are looked for: one that nobody reads is dropped at the third time.
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

// folds tells that a handler has exceeded its budget.
func (e *Engine) folds(l *listener) {
	e.log().Info("A handler is too slow: until it has captured up, it is told of each object's last state only",
		"informer", l.informer.title(), "handler", l.name, "budget", e.opts.handlerBudget())
	if f := e.opts.Hooks.Folding; f != nil {
		go f(l.informer.title(), l.name) // it may ask the engine, which is busy with this handler
	}
}

// Stats is what an Engine has.
type Stats struct {
	// Decoded is what objects cost that are kept decoded for a while because they were read or have changed, Kept what
	// those cost that are read often: in bytes of heap, estimated, without the parts that they share.
	Decoded, Kept int64
	Informers     []InformerStats // that run, by name
}

// InformerStats describes an informer.
type InformerStats struct {
	// Name has the kind of unstructured objects and of metadata, once it is known, and otherwise the Go type.
	Name    string
	Objects int
	// Bytes is what the objects cost at rest, with what they are stored as the difference from. What
	// objects cost that are kept as they are is estimated.
	Bytes int64
	// Raw says that objects are cut out of what the server sends. Otherwise the program's client decodes them, and
	// Decoded says why, in a sentence.
	Raw     bool
	Decoded string
	// Undecodable counts the versions of objects that the server sent and the type cannot hold, where Raw: it
	// shows when they are read first. Such an object is as if it were not there.
	Undecodable uint64
	// Unpacked counts the versions of objects that are kept as they came, since their type cannot be packed or they
	// would come back changed: a quantity such as "0.5", which Go writes as "500m", is one.
	Unpacked uint64
	// LeftOut counts the objects, each time that they came, for which a transform returned nothing.
	LeftOut uint64
	// Kept is how many objects are kept decoded because they are read often, Parts what decoded objects share, in bytes.
	Kept     int
	Parts    int64
	Handlers []HandlerStats // in the order in which they came
}

// HandlerStats describes a handler.
type HandlerStats struct {
	Name string
	// Queued is how many notifications it has yet to be told, Bytes what they keep in memory that nobody
	// else needs.
	Queued int
	Bytes  int64
	// Folded counts the notifications that it was not told since a later one said it all.
	Folded uint64
}

// Stats tells what the engine has.
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
