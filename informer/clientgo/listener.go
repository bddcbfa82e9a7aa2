package clientgo

import (
	"fmt"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/cache/synctrack"
	"k8s.io/klog/v2"
)

// listener is a handler's registration. It calls the handler from its own goroutine.
type listener struct {
	informer *sharedInformer
	handler  cache.ResourceEventHandler
	name     string
	log      klog.Logger
	queue    *queue
	synced   *synctrack.SingleFileTracker
	finished chan struct{} // closed once the handler is no longer called

	// The informer's notifyMu guards these.
	requested time.Duration // the requested resync period; 0: none
	period    time.Duration // the effective period
	due       time.Time     // of the next resync
	syncing   bool          // it receives unchanged objects
}

var _ cache.ResourceEventHandlerRegistration = (*listener)(nil)

func newListener(s *sharedInformer, h cache.ResourceEventHandler, log klog.Logger, requested, period time.Duration) *listener {
	name := nameOf(h)
	o := &s.engine.opts
	l := &listener{
		informer: s, handler: h, name: name, log: log,
		synced:    synctrack.NewSingleFileTracker(fmt.Sprintf("%s + event handler %s", s.done.Name(), name)),
		finished:  make(chan struct{}),
		requested: requested, period: period, due: time.Now().Add(period),
		syncing: true, // until the first resync, as in client-go
	}
	l.queue = newQueue(o.handlerBudget(), o.Coalesce, func(*notification) { l.synced.Finished() }, s.table.packing.item)
	return l
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool { return l.synced.HasSynced() }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() cache.DoneChecker { return l.synced }

// ShutdownChan is closed once the handler is no longer called. cache.ShutDownEventHandler uses it.
func (l *listener) ShutdownChan() <-chan struct{} { return l.finished }

// add queues a notification.
func (l *listener) add(n *notification) {
	if n.op == added && n.initial {
		l.synced.Start()
	}
	if l.queue.push(n) {
		l.informer.engine.folds(l)
	}
}

// run calls the handler until the queue is closed.
//
// A handler that panics ends the process, unless k8s.io/apimachinery/pkg/util/runtime is set not to crash. Then its
// notification is skipped and the next one follows after a second, as in client-go.
func (l *listener) run() {
	defer close(l.finished)
	crashed := false
	for {
		n, ok := l.queue.next()
		if !ok {
			return
		}
		if crashed {
			time.Sleep(time.Second)
		}
		crashed = !l.deliver(n)
	}
}

// deliver calls the handler. It returns false if the handler panicked.
func (l *listener) deliver(n *notification) (ok bool) {
	defer utilruntime.HandleCrashWithLogger(l.log)
	n.deliver(l.watched(), l.informer.table)
	if n.op == added && n.initial {
		l.synced.Finished()
	}
	return true
}

// watched returns the handler, wrapped if the mutation detector is on: objects are then recorded before the handler
// gets them.
func (l *listener) watched() cache.ResourceEventHandler {
	d := l.informer.detector
	if d == nil {
		return l.handler
	}
	who := "handler " + l.name
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { d.handsOut(who, obj); l.handler.OnAdd(obj, initial) },
		UpdateFunc: func(old, obj any) { d.handsOut(who, old, obj); l.handler.OnUpdate(old, obj) },
		DeleteFunc: func(obj any) { d.handsOut(who, obj); l.handler.OnDelete(obj) },
	}
}

// isDue reports whether the listener is due for a resync, and schedules the next one. The caller holds notifyMu.
func (l *listener) isDue(now time.Time) bool {
	if l.period == 0 || now.Before(l.due) {
		return false
	}
	l.due = now.Add(l.period)
	return true
}
