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

// Key names the thing to reconcile, usually an object of a kind that the controller knows.
type Key = informer.Key

// Result is a Reconcile's request for a later call. The zero value requests none.
type Result struct {
	// RequeueAfter, if positive, is the time after which the key is reconciled again, even without a change.
	RequeueAfter time.Duration
}

// Reconcile moves the thing that a key names to its desired state. It is called for a key after each change, so it must
// be able to find that there is nothing to do. Its context ends when the process must stop at once: see Options.Grace.
type Reconcile func(ctx context.Context, key Key) (Result, error)

// Options tune a Controller. The zero value is usable.
type Options struct {
	// Workers is how many keys are reconciled concurrently; 0 means 1.
	Workers int
	// MinBackoff is the wait after a key's first failure, MaxBackoff the longest wait; 0 means 5 ms and 1,000 s, as in
	// client-go.
	MinBackoff, MaxBackoff time.Duration
	// RateLimiter, if set, decides how long a failed key waits; MinBackoff and MaxBackoff are then ignored. Each
	// controller needs its own. To limit the failures of all keys together, as controller-runtime does, use
	// workqueue.DefaultTypedControllerRateLimiter[controller.Key]().
	RateLimiter workqueue.TypedRateLimiter[Key]
	// Grace is how long a running Reconcile may continue after Run's context ends; 0 means 20 s, so that the program has
	// ended and released its lease before a kubelet kills it 30 s after SIGTERM. Then the call's context ends, and Run
	// waits 5 s for it to return.
	Grace time.Duration
	// Log receives failures, each with its key; nil means slog.Default.
	Log *slog.Logger
	// Hooks report what the controller does.
	Hooks Hooks
	// Metrics, if set, provides the queue's metrics, under the controller's name; see workqueue.MetricsProvider.
	Metrics workqueue.MetricsProvider
	// Lock, if set, enables leader election: of the processes that run the same controller, one at a time reconciles.
	Lock resourcelock.Interface
	// Lease tunes leader election.
	Lease Lease
}

// Hooks report what a controller does. Nil functions are not called. They must not block.
type Hooks struct {
	// Synced is called once, when every source is synced and before the first Reconcile, for a readiness probe. With
	// Options.Lock, it does not wait for leadership.
	Synced func()
	// Reconciled is called after each Reconcile, by the worker.
	Reconciled func(Reconciled)
	// Lost is called at once when leadership is lost, with the keys that are being reconciled. Their contexts have ended,
	// but a call that does not notice may write while another process reconciles. A program that cannot risk that exits
	// here.
	Lost func(running []Key)
}

// Reconciled describes one call of Reconcile.
type Reconciled struct {
	Key    Key
	Result Result
	// Err is why it failed; a *PanicError if it panicked.
	Err error
	// Failures counts consecutive failures for this key, including this one.
	Failures int
	Took     time.Duration
}

// PanicError is the error for a panic in a function of the program.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// Controller reconciles the keys that its sources name.
type Controller struct {
	name      string
	o         Options
	reconcile Reconcile
	sources   []Source
	lanes     *lanes
	ran       atomic.Bool
	budget    int64 // budget of each subscription; 0: the default

	mu      sync.Mutex // guards what follows
	early   []Key      // keys added before Run
	running map[Key]struct{}
	queue   workqueue.TypedRateLimitingInterface[Key]
}

// New makes a controller, which does nothing before Run. The name appears in errors, logs and metrics, and names the
// controller's subscriptions.
func New(name string, reconcile Reconcile, o Options, sources ...Source) *Controller {
	return &Controller{name: name, o: o.withDefaults(), reconcile: reconcile, sources: sources, lanes: newLanes(), running: map[Key]struct{}{}}
}

// open makes the queue, which starts goroutines.
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

// Enqueue queues a key, as if something had changed. It may be called at any time, also by Reconcile.
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

// Len returns the number of queued keys, not counting keys that wait for a retry or a RequeueAfter.
func (c *Controller) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return len(c.early)
	}
	return c.queue.Len()
}

// Run reconciles until ctx ends, and then returns nil. It returns an error if a source cannot be synced or is closed, and
// ErrLost if leadership was lost. It returns after the last Reconcile, or with an *UnfinishedError if one ignores the end
// of its context. The caller must run the informers' cluster (informer.Cluster.Run). A controller runs once.
func (c *Controller) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return fmt.Errorf("controller %s: it was run before", c.name)
	}
	if c.name == "" || c.reconcile == nil {
		return fmt.Errorf("controller %q: it needs a name and a Reconcile", c.name)
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
	if cause := context.Cause(feeding); ctx.Err() == nil && cause != nil {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	return nil
}

// reconcileKey reconciles a key.
func (c *Controller) reconcileKey(ctx context.Context, key Key) {
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
		c.logFailure("reconcile failed", key, r.Err, "failures", r.Failures)
	}
	if c.o.Hooks.Reconciled != nil {
		c.o.Hooks.Reconciled(r)
	}
}

// logFailure logs a key's failure, with the stack of a panic.
func (c *Controller) logFailure(what string, key Key, err error, more ...any) {
	attrs := append([]any{"controller", c.name, "key", key.String()}, more...)
	attrs = append(attrs, "error", err)
	var p *PanicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	c.o.Log.Error(what, attrs...)
}

// guard calls a function of the program and returns a panic as an error.
func guard[V any](f func() (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
