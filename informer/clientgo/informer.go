package clientgo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// sharedInformer is a cache.SharedIndexInformer.
type sharedInformer struct {
	engine   *Engine
	lw       cache.ListerWatcher
	made     provenance // of lw
	example  runtime.Object
	table    *table
	done     done
	options  cache.SharedIndexInformerOptions
	metrics  *metrics                                // nil: disabled
	detector *detector                               // nil: disabled
	kind     atomic.Pointer[schema.GroupVersionKind] // of unstructured objects and metadata, once known
	fallback time.Duration                           // the resync period of handlers without one

	// notifyMu is held while a change is applied and queued for handlers, and while handlers are added or removed. So
	// a new handler gets each object exactly once: in its initial state or as a change. Lock it after mu.
	notifyMu  sync.Mutex
	listeners []*listener
	started   bool // handlers run as soon as they are added
	running   sync.WaitGroup

	// left counts the objects for which a transform returned nil.
	left atomic.Uint64

	mu         sync.Mutex
	ran        bool
	stopped    bool
	check      time.Duration // interval between checks for handlers that are due for a resync; 0: never
	onError    cache.WatchErrorHandlerWithContext
	transform  cache.TransformFunc
	controller source
	decoded    string // why the program's client decodes the objects; empty: it does not, or the informer has not run
}

// source feeds an informer.
type source interface {
	RunWithContext(ctx context.Context)
	LastSyncResourceVersion() string
}

// done reports that the first list is in the cache and queued for every handler.
type done struct {
	name string
	ch   chan struct{}
}

func (d done) Name() string          { return d.name }
func (d done) Done() <-chan struct{} { return d.ch }

var _ cache.SharedIndexInformer = (*sharedInformer)(nil)

// Run implements cache.SharedInformer.
func (s *sharedInformer) Run(stop <-chan struct{}) { s.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements cache.SharedInformer. It returns once every handler's goroutine has ended.
func (s *sharedInformer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !s.claim() {
		klog.FromContext(ctx).Info("Warning: the sharedIndexInformer has started, run more than once is not allowed")
		return
	}
	c := s.newSource(ctx)
	s.begin(c)
	s.engine.join(s)
	defer s.engine.leave(s)
	defer s.table.end()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	if s.detector != nil {
		s.running.Go(func() { s.detector.run(watching) })
	}
	defer s.running.Wait()
	defer s.release()
	defer stop()
	defer s.end()
	c.RunWithContext(ctx)
}

// claim reports whether the informer may run: only the first call returns true.
func (s *sharedInformer) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.ran
	s.ran = true
	return first
}

// begin starts the handlers.
func (s *sharedInformer) begin(c source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controller = c
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	s.started = true
	for _, l := range s.listeners {
		s.running.Go(l.run)
	}
}

// newSource returns client-go's own Reflector, which lists, watches, and writes into our intake. The objects are
// either decoded by the program's client or cut out of the server's responses.
func (s *sharedInformer) newSource(ctx context.Context) source {
	s.mu.Lock()
	defer s.mu.Unlock()
	config := cache.Config{
		ListerWatcher:                s.lw,
		ObjectType:                   s.example,
		ObjectDescription:            s.options.ObjectDescription,
		FullResyncPeriod:             s.check,
		ShouldResync:                 s.shouldResync,
		Process:                      func(any, bool) error { return nil },
		WatchErrorHandlerWithContext: s.onError,
	}
	in := &intake{informer: s, ctx: ctx, transform: s.transform, closed: make(chan struct{})}
	raw, why := s.newRawSource(config, in)
	if s.decoded = why; raw != nil {
		return raw
	}
	config.Queue = in
	return cache.New(&config)
}

// end refuses new handlers.
func (s *sharedInformer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// release stops the handlers.
func (s *sharedInformer) release() {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	for _, l := range s.listeners {
		l.queue.close()
	}
	s.listeners = nil
}

// HasStarted reports whether the informer has been run.
func (s *sharedInformer) HasStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// IsStopped implements cache.SharedInformer.
func (s *sharedInformer) IsStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// HasSynced implements cache.SharedInformer.
func (s *sharedInformer) HasSynced() bool { return cache.IsDone(s.done) }

// HasSyncedChecker implements cache.SharedInformer.
func (s *sharedInformer) HasSyncedChecker() cache.DoneChecker { return s.done }

// LastSyncResourceVersion implements cache.SharedInformer.
func (s *sharedInformer) LastSyncResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controller == nil {
		return ""
	}
	return s.controller.LastSyncResourceVersion()
}

// title returns the informer's name for logs and statistics.
func (s *sharedInformer) title() string {
	k := s.kind.Load()
	if k == nil {
		if k = genericKind(s.example); k == nil {
			return s.done.name
		}
	}
	return fmt.Sprintf("%s (%s)", s.done.name, k)
}

// genericKind returns the kind that an object carries if its Go type does not determine it, else nil.
func genericKind(obj any) *schema.GroupVersionKind {
	switch o := obj.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if k := kindOf(o); !k.Empty() && k != partialKind {
			return &k
		}
	}
	return nil
}

// partialKind is the kind under which the server sends metadata.
var partialKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")

// learnKind records the kind of a decoded object.
func (s *sharedInformer) learnKind(obj any) {
	if s.kind.Load() == nil {
		if k := genericKind(obj); k != nil {
			s.kind.Store(k)
		}
	}
}

// GetStore implements cache.SharedInformer.
func (s *sharedInformer) GetStore() cache.Store { return indexer{s.table} }

// GetIndexer implements cache.SharedIndexInformer.
func (s *sharedInformer) GetIndexer() cache.Indexer { return indexer{s.table} }

// AddIndexers implements cache.SharedIndexInformer.
func (s *sharedInformer) AddIndexers(more cache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.table.addIndexers(more)
}

var errStarted = errors.New("informer has already started")

// SetWatchErrorHandler implements cache.SharedInformer.
func (s *sharedInformer) SetWatchErrorHandler(f cache.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { f(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer.
func (s *sharedInformer) SetWatchErrorHandlerWithContext(f cache.WatchErrorHandlerWithContext) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ran {
		return errStarted
	}
	s.onError = f
	return nil
}

// SetTransform implements cache.SharedInformer.
func (s *sharedInformer) SetTransform(f cache.TransformFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ran {
		return errStarted
	}
	s.transform = f
	return nil
}

// GetController implements cache.SharedInformer. As in client-go, the controller cannot be run.
func (s *sharedInformer) GetController() cache.Controller { return dummy{s} }

type dummy struct{ *sharedInformer }

func (dummy) Run(<-chan struct{})            {}
func (dummy) RunWithContext(context.Context) {}

func (d dummy) LastSyncResourceVersion() string {
	if !features.FeatureGates().Enabled(features.InformerResourceVersion) {
		return ""
	}
	return d.sharedInformer.LastSyncResourceVersion()
}

// AddEventHandler implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.SharedInformer. A handler that is added late first receives the
// existing objects as additions.
func (s *sharedInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", h)
	}
	log, period := klog.Background(), s.fallback
	if o.Logger != nil {
		log = *o.Logger
	}
	if o.ResyncPeriod != nil {
		period = *o.ResyncPeriod
	}
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	period = s.clampPeriod(log, period)
	l := newListener(s, h, log, period, effectivePeriod(log, period, s.check))
	s.listeners = append(s.listeners, l)
	if !s.started {
		return l, nil
	}
	s.running.Go(l.run)
	items := s.table.items()
	for i := range items {
		n := &notification{op: added, initial: true, key: items[i].key, new: items[i].item}
		if i < maxDecodedNotes {
			n.newObj = items[i].obj
		}
		l.add(n)
	}
	if s.HasSynced() {
		l.synced.UpstreamHasSynced()
	}
	return l, nil
}

// minPeriod is the shortest resync period.
const minPeriod = time.Second

// clampPeriod returns the resync period that a handler gets. Before the informer starts, the shortest period sets the
// interval of checks. The caller holds mu and notifyMu.
func (s *sharedInformer) clampPeriod(log klog.Logger, period time.Duration) time.Duration {
	if period <= 0 {
		return period
	}
	if period < minPeriod {
		log.Info("Warning: resync period is too small. Changing it to the minimum allowed value", "resyncPeriod", period, "minimumResyncPeriod", minPeriod)
		period = minPeriod
	}
	switch {
	case period >= s.check:
	case s.ran:
		log.Info("Warning: resync period is smaller than resync check period and the informer has already started. Changing it to the resync check period", "resyncPeriod", period, "resyncCheckPeriod", s.check)
		period = s.check
	default:
		s.check = period
		for _, l := range s.listeners {
			l.period = effectivePeriod(log, l.requested, period)
		}
	}
	return period
}

// effectivePeriod adapts a handler's resync period to the interval between checks.
func effectivePeriod(log klog.Logger, requested, check time.Duration) time.Duration {
	switch {
	case requested == 0:
		return 0
	case check == 0:
		log.Info("Warning: the specified resyncPeriod is invalid because this shared informer doesn't support resyncing", "desired", requested)
		return 0
	case requested < check:
		log.Info("Warning: the specified resyncPeriod is being increased to the minimum resyncCheckPeriod", "desired", requested, "resyncCheckPeriod", check)
		return check
	}
	return requested
}

// RemoveEventHandler implements cache.SharedInformer.
func (s *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	s.mu.Lock() // so that changes wait for at most one caller, not for each that waits for notifyMu
	defer s.mu.Unlock()
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	i := slices.Index(s.listeners, l)
	if i < 0 {
		return nil
	}
	s.listeners = slices.Delete(s.listeners, i, i+1)
	l.queue.close()
	if !s.started {
		close(l.finished)
	}
	return nil
}

// shouldResync marks the handlers that are due for a resync, and reports whether there are any.
func (s *sharedInformer) shouldResync() bool {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	now, some := time.Now(), false
	for _, l := range s.listeners {
		l.syncing = l.isDue(now)
		some = some || l.syncing
	}
	return some
}
