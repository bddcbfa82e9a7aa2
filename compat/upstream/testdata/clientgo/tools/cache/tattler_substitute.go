package cache

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// SubstituteInformer, if set, constructs the informers to which those of this package forward.
var SubstituteInformer func(lw ListerWatcher, example runtime.Object, resync time.Duration, indexers Indexers) SharedIndexInformer

// substitute is an informer that records its handlers.
type substitute struct {
	SharedIndexInformer

	mu       sync.Mutex
	handlers map[ResourceEventHandlerRegistration]bool
}

func newSubstitute(lw ListerWatcher, example runtime.Object, o SharedIndexInformerOptions) *substitute {
	if SubstituteInformer == nil {
		return nil
	}
	return &substitute{
		SharedIndexInformer: SubstituteInformer(lw, example, o.ResyncPeriod, o.Indexers),
		handlers:            map[ResourceEventHandlerRegistration]bool{},
	}
}

func (s *substitute) AddEventHandler(h ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.added(s.SharedIndexInformer.AddEventHandler(h))
}

func (s *substitute) AddEventHandlerWithResyncPeriod(h ResourceEventHandler, period time.Duration) (ResourceEventHandlerRegistration, error) {
	return s.added(s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h, period))
}

func (s *substitute) AddEventHandlerWithOptions(h ResourceEventHandler, o HandlerOptions) (ResourceEventHandlerRegistration, error) {
	return s.added(s.SharedIndexInformer.AddEventHandlerWithOptions(h, o))
}

func (s *substitute) RemoveEventHandler(r ResourceEventHandlerRegistration) error {
	err := s.SharedIndexInformer.RemoveEventHandler(r)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.handlers, r)
	}
	return err
}

func (s *substitute) added(r ResourceEventHandlerRegistration, err error) (ResourceEventHandlerRegistration, error) {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handlers[r] = true
	}
	return r, err
}

// has reports whether r is a handler that runs or will run.
func (s *substitute) has(r ResourceEventHandlerRegistration) bool {
	if !s.handlers[r] {
		return false
	}
	select {
	case <-r.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan():
		return false
	default:
		return true
	}
}

// The next three functions replace the tests' reads of private fields of an informer.

func substituteHandlers(i SharedInformer) (n int, ok bool) {
	s := i.(*sharedIndexInformer).substitute
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.handlers {
		if s.has(r) {
			n++
		}
	}
	return n, true
}

func substituteStarted(i SharedInformer) (started, ok bool) {
	s := i.(*sharedIndexInformer).substitute
	if s == nil {
		return false, false
	}
	return s.SharedIndexInformer.(interface{ HasStarted() bool }).HasStarted(), true
}

func substituteRegistered(i SharedInformer, r ResourceEventHandlerRegistration) (registered, ok bool) {
	s := i.(*sharedIndexInformer).substitute
	if s == nil {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(r), true
}

// substituteInformer constructs the results of NewInformer and its variants: a store and the controller that fills it.
func substituteInformer[S Store](state S, o InformerOptions) (S, Controller) {
	if SubstituteInformer == nil {
		return state, newInformer(state, o, DeletionHandlingMetaNamespaceKeyFunc)
	}
	informer := SubstituteInformer(o.ListerWatcher, o.ObjectType, o.ResyncPeriod, o.Indexers)
	if err := informer.SetTransform(o.Transform); err != nil {
		panic(err)
	}
	if _, err := informer.AddEventHandlerWithOptions(o.Handler, HandlerOptions{Logger: o.Logger}); err != nil {
		panic(err)
	}
	return informer.GetIndexer().(S), informer
}

// substituteIndexer returns the indexer of an informer that never runs, or nil if that would have other keys.
func substituteIndexer(key KeyFunc, indexers Indexers, opts []StoreOption) Indexer {
	if SubstituteInformer == nil || len(opts) > 0 {
		return nil
	}
	switch reflect.ValueOf(key).Pointer() {
	case reflect.ValueOf(MetaNamespaceKeyFunc).Pointer(), reflect.ValueOf(DeletionHandlingMetaNamespaceKeyFunc).Pointer():
		return SubstituteInformer(&ListWatch{}, nil, 0, indexers).GetIndexer()
	}
	return nil
}
