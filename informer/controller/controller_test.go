package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	parts   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "parts"}
)

type object = *unstructured.Unstructured

// rig is a server with some widgets, and running informers of widgets and parts.
type rig struct {
	*testing.T
	server         *informertest.Server
	cluster        *informer.Cluster
	widgets, parts *informer.Informer[object]
	end            context.CancelFunc // of the cluster
	log            strings.Builder
	tune           func(*controller.Controller) // before it runs, if set
}

func play(t *testing.T, first int, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, server: informertest.NewServer()}
		r.server.Serve(widgets, "Widget")
		r.server.Serve(parts, "Part")
		for i := range first {
			r.put(fmt.Sprintf("w%03d", i), 0)
		}
		c, err := informer.NewCluster(r.server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		r.cluster = c
		if r.widgets, err = informer.Unstructured(c, widgets); err != nil {
			t.Fatal(err)
		}
		if r.parts, err = informer.Unstructured(c, parts); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.end = cancel
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		test(r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (r *rig) put(name string, n int) {
	r.server.Put(widgets, "n", name, map[string]any{"spec": map[string]any{"n": int64(n)}})
}

// run runs a controller until end is called, which returns the result of Run.
func (r *rig) run(o controller.Options, reconcile controller.Reconcile, sources ...controller.Source) (c *controller.Controller, end func() error) {
	r.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	}
	c = controller.New("test", reconcile, o, sources...)
	if r.tune != nil {
		r.tune(c)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return c, func() error { cancel(); return <-done }
}

func nothing(context.Context, controller.Key) (controller.Result, error) {
	return controller.Result{}, nil
}

func key(name string) controller.Key { return controller.Key{Namespace: "n", Name: name} }

// TestNeverTwice: two workers never reconcile one key at once, and the last call sees the last state.
func TestNeverTwice(t *testing.T) {
	play(t, 5, func(r *rig) {
		var mu sync.Mutex
		running, seen, calls := map[controller.Key]bool{}, map[controller.Key]int64{}, 0
		_, end := r.run(controller.Options{Workers: 8}, func(_ context.Context, k controller.Key) (controller.Result, error) {
			mu.Lock()
			if running[k] {
				r.Errorf("%s is reconciled twice at once", k)
			}
			running[k], calls = true, calls+1
			mu.Unlock()
			o, err := r.widgets.Get(k.Namespace, k.Name)
			if err != nil {
				return controller.Result{}, err
			}
			<-time.After(30 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running[k] = false
			seen[k], _, _ = unstructured.NestedInt64(o.Object, "spec", "n")
			return controller.Result{}, nil
		}, controller.For(r.widgets))
		for n := 1; n <= 200; n++ {
			r.put(fmt.Sprintf("w%03d", n%5), n)
			<-time.After(time.Millisecond)
		}
		<-time.After(time.Second)
		if err := end(); err != nil {
			t.Error(err)
		}
		if len(seen) != 5 || calls > 100 {
			t.Errorf("%d keys, %d calls", len(seen), calls)
		}
		for k, n := range seen {
			if n <= 195 {
				t.Errorf("%s: saw %d last", k, n)
			}
		}
	})
}

// TestFirstListLast: changes do not wait behind the objects of the first list.
func TestFirstListLast(t *testing.T) {
	play(t, 50, func(r *rig) {
		var order []string
		_, end := r.run(controller.Options{}, func(_ context.Context, k controller.Key) (controller.Result, error) {
			order = append(order, k.Name)
			<-time.After(time.Second)
			return controller.Result{}, nil
		}, controller.For(r.widgets))
		<-time.After(2500 * time.Millisecond)
		r.put("new", 1)  // a new object
		r.put("w049", 1) // a queued key; it may be running, or done
		<-time.After(2 * time.Minute)
		if err := end(); err != nil {
			t.Error(err)
		}
		if i := slices.Index(order, "new"); i > 4 {
			t.Errorf("new is number %d", i)
		}
		if i := slices.Index(order, "w049"); i > 5 {
			t.Errorf("w049 is number %d", i)
		}
		if len(order) < 51 || len(order) > 52 {
			t.Errorf("%d calls", len(order))
		}
	})
}

// TestFailures: a failed key is retried, later each time, or at once with a change; a panic is a failure.
func TestFailures(t *testing.T) {
	play(t, 1, func(r *rig) {
		var at []time.Duration
		var reports []controller.Reconciled
		start := time.Now()
		var fail atomic.Int32
		fail.Store(4)
		o := controller.Options{MinBackoff: time.Second, Hooks: controller.Hooks{Reconciled: func(d controller.Reconciled) { reports = append(reports, d) }}}
		_, end := r.run(o, func(context.Context, controller.Key) (controller.Result, error) {
			at = append(at, time.Since(start).Round(time.Second))
			if len(at) == 2 {
				panic(fmt.Errorf("no %s", "good"))
			}
			if len(at) <= int(fail.Load()) {
				return controller.Result{}, errors.New("it is Monday")
			}
			return controller.Result{RequeueAfter: time.Minute}, nil
		}, controller.For(r.widgets))
		<-time.After(5 * time.Second) // it failed at 0, 1 and 3 s, and the next retry is at 7
		r.put("w000", 1)
		<-time.After(time.Minute)
		r.put("w000", 2)
		fail.Store(8)
		<-time.After(20 * time.Second)
		if err := end(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(at); got != "[0s 1s 3s 5s 7s 1m5s 1m6s 1m8s 1m12s]" {
			t.Errorf("called at %s", got)
		}
		var p *controller.PanicError
		if !errors.As(reports[1].Err, &p) || !strings.Contains(string(p.Stack), "TestFailures") || reports[1].Failures != 2 || reports[0].Key != key("w000") {
			t.Errorf("reports: %+v", reports[:2])
		}
		if log := r.log.String(); !strings.Contains(log, `"panic: no good"`) || !strings.Contains(log, "key=n/w000 failures=3") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// TestRateLimiter: the program's rate limiter decides when a failed key is retried.
func TestRateLimiter(t *testing.T) {
	play(t, 1, func(r *rig) {
		var at []time.Duration
		start := time.Now()
		o := controller.Options{MaxBackoff: time.Second, RateLimiter: workqueue.NewTypedItemFastSlowRateLimiter[controller.Key](3*time.Second, 10*time.Second, 2)}
		_, end := r.run(o, func(context.Context, controller.Key) (controller.Result, error) {
			at = append(at, time.Since(start).Round(time.Second))
			return controller.Result{}, errors.New("it is Monday")
		}, controller.For(r.widgets))
		<-time.After(30 * time.Second)
		if err := end(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(at); got != "[0s 3s 6s 16s 26s]" {
			t.Errorf("called at %s", got)
		}
	})
}

// TestStop: running calls may finish and no new call starts; a call that does not finish loses its context.
func TestStop(t *testing.T) {
	for _, tc := range []struct{ grace, work, want time.Duration }{
		{time.Minute, 10 * time.Second, 5 * time.Second},
		{time.Minute, time.Hour, time.Minute},
		{0, time.Hour, 20 * time.Second},
	} {
		play(t, 10, func(r *rig) {
			calls := 0
			var ended time.Time
			_, end := r.run(controller.Options{Grace: tc.grace}, func(ctx context.Context, _ controller.Key) (controller.Result, error) {
				calls++
				select {
				case <-time.After(tc.work):
				case <-ctx.Done():
				}
				ended = time.Now()
				return controller.Result{}, nil
			}, controller.For(r.widgets))
			<-time.After(5 * time.Second)
			stopped := time.Now()
			if err := end(); err != nil {
				t.Error(err)
			}
			if calls != 1 || ended.Sub(stopped) != tc.want {
				t.Errorf("%d calls, the last ended after %v, want %v", calls, ended.Sub(stopped), tc.want)
			}
		})
	}
}

// TestCannotSync: Run returns why a source cannot sync.
func TestCannotSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		server.Misbehave(informertest.Fault{Code: 403})
		c, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i, err := informer.Unstructured(c, widgets)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		ctl := controller.New("test", nothing, controller.Options{}, controller.For(i))
		if err := ctl.Run(ctx); err == nil || !strings.Contains(err.Error(), "controller test: wait for caches: sync widgets.example.com: ") {
			t.Errorf("Run: %v", err)
		}
		if err := ctl.Run(ctx); err == nil || !strings.Contains(err.Error(), "was run before") {
			t.Errorf("Run again: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestClosed: if the cluster ends before the controller, Run returns an error.
func TestClosed(t *testing.T) {
	play(t, 1, func(r *rig) {
		ctl := controller.New("test", func(context.Context, controller.Key) (controller.Result, error) { return controller.Result{}, nil },
			controller.Options{}, controller.For(r.widgets))
		done := make(chan error)
		go func() { done <- ctl.Run(context.Background()) }()
		<-time.After(time.Second)
		r.end()
		if err := <-done; !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
	})
}
