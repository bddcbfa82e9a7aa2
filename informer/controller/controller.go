package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"

	"github.com/tattler-dev/tattler/informer"
)

// Key names what is reconciled: as a rule an object, of which the controller knows the kind.
type Key = informer.Key

// Result is what a Reconcile that did not fail wants next. The zero value wants nothing.
type Result struct {
	// RequeueAfter, if positive, is after how long the key is reconciled again, whether something changed or not.
	RequeueAfter time.Duration
}

// Reconcile brings what a key names to where it should be. It is called again for a key after each change, so it must
// be able to find that nothing is to be done. Its context ends when the process is to stop at once: see Options.Grace.
type Reconcile func(ctx context.Context, key Key) (Result, error)

// Options tune a Controller. The zero value is usable.
type Options struct {
	// Workers is how many keys are reconciled at once; 0 means 1.
	Workers int
	// MinBackoff is the wait after a key's first failure, and MaxBackoff the longest; 0 means 5 ms and 1,000 s, as in
	// client-go.
	MinBackoff, MaxBackoff time.Duration
	// RateLimiter, if set, says how long a key that has failed waits; MinBackoff and MaxBackoff do not count then. It
	// belongs to one controller. To limit the failures of all keys together, as controller-runtime does, use
	// workqueue.DefaultTypedControllerRateLimiter[controller.Key]().
	RateLimiter workqueue.TypedRateLimiter[Key]
	// Grace is for how long a Reconcile may go on after the end; 0 means 20 s, so that the program has ended, and has
	// released its lease, when a kubelet kills it 30 s after SIGTERM.
	Grace time.Duration
	// Log gets failures, each with its key; nil is slog.Default.
	Log *slog.Logger
	// Hooks are called as things happen.
	Hooks Hooks
	// Metrics, if set, makes the queue's metrics, under the controller's name; see workqueue.MetricsProvider.
	Metrics workqueue.MetricsProvider
	// Lock, if set, is what processes that run the same controller compete for: one at a time reconciles.
	Lock resourcelock.Interface
	// Lease tunes that.
	Lease Lease
}

// Hooks report what a controller does. Functions that are nil are not called. They must not block.
type Hooks struct {
	// Synced is called once, when every source is synced and before the first Reconcile: for a readiness probe. With
	// Options.Lock, it does not wait for the lead.
	Synced func()
	// Reconciled is called after each Reconcile, by the worker.
	Reconciled func(Reconciled)
}

// Reconciled describes one call of Reconcile.
type Reconciled struct {
	Key    Key
	Result Result
	// Err is why it failed; a *PanicError if it panicked.
	Err error
	// Failures is how often in a row it has failed for this key, this time included.
	Failures int
	Took     time.Duration
}

// PanicError is the error of a function of the program that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic, if that is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// Controller reconciles the keys that its sources name.
type Controller struct {
	name      string
	o         Options
	reconcile Reconcile
	sources   []Source
	lanes     *lanes
	ran       atomic.Bool
	budget    int64 // of each subscription; 0: the default

	mu    sync.Mutex // guards what follows
	early []Key      // added before Run
	queue workqueue.TypedRateLimitingInterface[Key]
}

// New makes a controller, which does nothing before Run. The name stands in errors, in its log and in its metrics, and
// names its subscriptions.
func New(name string, reconcile Reconcile, o Options, sources ...Source) *Controller {
	return &Controller{name: name, o: o.withDefaults(), reconcile: reconcile, sources: sources, lanes: newLanes()}
}

// open makes the queue, which has goroutines.
func (c *Controller) open() {
	name, o := c.name, &c.o
	limiter := o.RateLimiter
	if limiter == nil {
		limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[Key](o.MinBackoff, o.MaxBackoff)
	}
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: name, MetricsProvider: o.Metrics, Queue: c.lanes})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Name: name, MetricsProvider: o.Metrics, Queue: plain})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[Key]{
		Name: name, MetricsProvider: o.Metrics, DelayingQueue: delaying,
	})
	for _, k := range c.early {
		c.queue.Add(k)
	}
	c.early = nil
}

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = 1
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = 5 * time.Millisecond
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 1000 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// Enqueue has a key reconciled, as if something had changed. It may be called at any time, also by Reconcile.
func (c *Controller) Enqueue(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		c.early = append(c.early, key)
		return
	}
	c.lanes.change(key)
	c.queue.Add(key)
}

// Len is how many keys wait; those that wait for a time are not counted.
func (c *Controller) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return len(c.early)
	}
	return c.queue.Len()
}

// Run reconciles until ctx ends, and returns nil then. It returns an error where a source cannot be synced, is closed,
// or where the lead was lost. Somebody else runs the cluster of the informers (informer.Cluster.Run). A controller runs
// once.
func (c *Controller) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return fmt.Errorf("controller %s: it runs, or has run", c.name)
	}
	candidate, err := c.candidate()
	if err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	feeding, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var feeds sync.WaitGroup
	defer feeds.Wait()
	c.open()
	defer c.queue.ShutDown()
	defer stop(nil)
	if err := c.wait(ctx); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	if c.o.Hooks.Synced != nil {
		c.o.Hooks.Synced()
	}
	for _, s := range c.sources {
		f, err := s.subscribe(c)
		if err != nil {
			return fmt.Errorf("controller %s: %w", c.name, err)
		}
		feeds.Go(func() {
			if err := f(feeding); err != nil && feeding.Err() == nil {
				stop(err)
			}
		})
	}
	err = candidate.lead(feeding, c.work)
	if cause := context.Cause(feeding); err == nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	return nil
}

// work runs the workers until ctx ends, and lets them finish then; if it ends because of errLost, what runs is canceled
// at once. A worker begins nothing while holds returns false.
func (c *Controller) work(ctx context.Context, holds func() bool) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		c.queue.ShutDown()
		if errors.Is(context.Cause(ctx), errLost) {
			cancel()
			return
		}
		late := time.AfterFunc(c.o.Grace, cancel)
		context.AfterFunc(running, func() { late.Stop() })
	})()
	var workers sync.WaitGroup
	for range c.o.Workers {
		workers.Go(func() {
			for {
				key, ended := c.queue.Get()
				if ended {
					return
				}
				if allowed(ctx, holds) { // what still waits at the end is left alone
					c.one(running, key)
				}
				c.queue.Done(key)
			}
		})
	}
	workers.Wait()
}

// allowed waits until holds returns true, and reports false if ctx ends first.
func allowed(ctx context.Context, holds func() bool) bool {
	for ctx.Err() == nil {
		if holds() {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}

// one reconciles a key.
func (c *Controller) one(ctx context.Context, key Key) {
	began := time.Now()
	r := Reconciled{Key: key}
	r.Result, r.Err = guard(func() (Result, error) { return c.reconcile(ctx, key) })
	r.Took = time.Since(began)
	if r.Err == nil {
		c.queue.Forget(key)
		if r.Result.RequeueAfter > 0 {
			c.queue.AddAfter(key, r.Result.RequeueAfter)
		}
	} else {
		c.queue.AddRateLimited(key)
		r.Failures = c.queue.NumRequeues(key)
		c.complain("reconcile failed", key, r.Err, "failures", r.Failures)
	}
	if c.o.Hooks.Reconciled != nil {
		c.o.Hooks.Reconciled(r)
	}
}

// complain logs what failed about a key, with the stack of a panic.
func (c *Controller) complain(what string, key Key, err error, more ...any) {
	attrs := append([]any{"controller", c.name, "key", key.String()}, more...)
	attrs = append(attrs, "err", err)
	var p *PanicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	c.o.Log.Error(what, attrs...)
}

// guard calls a function of the program, and makes an error of its panic.
func guard[V any](f func() (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
