package differential

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/internal/informerdiff"
)

// constructor is client-go's or ours.
type constructor func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// side is one of the two informers with its environment.
type side struct {
	name     string
	line     *line
	informer cache.SharedIndexInformer
	handlers map[int]*handler // the same numbers on both sides
	cancel   context.CancelFunc
	done     chan struct{}

	mu     sync.Mutex
	failed int // calls of the watch error handler
}

// handler is a registration, possibly removed.
type handler struct {
	informerdiff.Handler
	registration cache.ResourceEventHandlerRegistration
	removed      bool
	// period is its resync period.
	period time.Duration
	// slow handlers fall behind, so only their final state can be compared.
	slow bool
}

func (s *side) onWatchError(_ context.Context, r *cache.Reflector, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && r != nil {
		s.failed++
	}
}

// failures returns the calls of the watch error handler since the last call.
func (s *side) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.failed
	s.failed = 0
	return n
}

func (s *side) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		s.informer.RunWithContext(ctx)
	}()
}

// form describes a handler's registration.
type form struct {
	way    int
	period time.Duration
	slow   uint64 // seed of its pauses; 0: none
}

func (w *world) form() form {
	f := form{way: w.rng.IntN(5)}
	if w.resync > 0 && w.rng.IntN(2) == 0 {
		f.period = time.Duration(1+w.rng.IntN(9)) * time.Second
	}
	if w.resync == 0 && w.rng.IntN(6) == 0 { // with resyncs it would fall ever further behind
		f.slow = 1 + w.rng.Uint64N(1e9)
	}
	return f
}

// add registers a handler under a number.
func (s *side) add(n int, f form, resync time.Duration) error {
	h := &handler{slow: f.slow > 0, period: f.period}
	if h.slow {
		rng := rand.New(rand.NewPCG(f.slow, 0))
		h.Before = func() { <-time.After(time.Duration(rng.IntN(3000)) * time.Millisecond) }
	}
	var err error
	switch f.way {
	case 0:
		h.period = resync
		h.registration, err = s.informer.AddEventHandler(&h.Handler)
	case 1:
		h.registration, err = s.informer.AddEventHandlerWithResyncPeriod(&h.Handler, f.period)
	case 2:
		h.registration, err = s.informer.AddEventHandlerWithOptions(&h.Handler, cache.HandlerOptions{ResyncPeriod: &f.period})
	case 3:
		h.period = resync
		h.registration, err = s.informer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: h.OnAdd, UpdateFunc: h.OnUpdate, DeleteFunc: h.OnDelete,
		}, cache.HandlerOptions{})
	default:
		h.period = resync
		h.registration, err = s.informer.AddEventHandler(cache.FilteringResourceEventHandler{
			FilterFunc: func(o any) bool {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				return accessor(o).GetLabels()["app"] != "db"
			},
			Handler: &h.Handler,
		})
	}
	if err == nil {
		s.handlers[n] = h
	}
	return err
}

// remove ends a registration, and optionally waits for its last call.
func (s *side) remove(n int, wait bool) error {
	h := s.handlers[n]
	h.removed = true
	if wait {
		return cache.ShutDownEventHandler(s.informer, h.registration)
	}
	return s.informer.RemoveEventHandler(h.registration)
}

// state describes an informer and its registrations, without the store.
func (s *side) state() string {
	out := fmt.Sprintf("HasSynced %t, %t; IsStopped %t; LastSyncResourceVersion %q; controller %t, %q",
		s.informer.HasSynced(), cache.IsDone(s.informer.HasSyncedChecker()), s.informer.IsStopped(), s.informer.LastSyncResourceVersion(),
		s.informer.GetController().HasSynced(), s.informer.GetController().LastSyncResourceVersion())
	for _, n := range s.numbers() {
		if h := s.handlers[n]; !h.slow && !h.removed {
			out += fmt.Sprintf("; handler %d synced %t, %t", n, h.registration.HasSynced(), cache.IsDone(h.registration.HasSyncedChecker()))
		}
	}
	return out
}

func (s *side) numbers() []int {
	var out []int
	for n := range s.handlers {
		out = append(out, n)
	}
	slices.SortFunc(out, cmp.Compare[int])
	return out
}
