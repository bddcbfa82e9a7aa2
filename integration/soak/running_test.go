package soak

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// counters count the calls of Hooks, by event and stream.
type counters struct {
	began time.Time

	mu  sync.Mutex
	n   map[string]int
	log []string // the last calls
}

// maxLog bounds the log printed after a failure, in lines.
const maxLog = 100

func (c *counters) add(what string, s informer.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what+" of "+s.Resource.Resource+" "+s.Namespace]++
}

func (c *counters) note(s informer.Stream, what string, detail any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("%8.3f s: %s %s: %s: %+v", time.Since(c.began).Seconds(), s.Resource.Resource, s.Namespace, what, detail)
	c.log = append(c.log[max(0, len(c.log)-maxLog):], line)
}

// all returns the counts of an event, by stream.
func (c *counters) all(what string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for k, v := range c.n {
		if s, ok := strings.CutPrefix(k, what+" of "); ok {
			out[s] = v
		}
	}
	return out
}

// of returns the count of an event over all streams.
func (c *counters) of(what string) int {
	n := 0
	for _, v := range c.all(what) {
		n += v
	}
	return n
}

func (c *counters) hooks() informer.Hooks {
	return informer.Hooks{
		List: func(i informer.ListInfo) {
			c.add("list", i.Stream)
			c.note(i.Stream, "list", i)
		},
		Watch: func(i informer.WatchInfo) { c.note(i.Stream, "watch", i) },
		Expired: func(s informer.Stream) {
			c.add("expired", s)
			c.note(s, "expired", "")
		},
		Gap: func(s informer.Stream, g informer.Gap) {
			for reason := range strings.SplitSeq(g.Reason, ", ") {
				c.add("gap:"+reason, s)
			}
			c.note(s, "gap", g)
		},
		State:       func(st informer.Status) { c.note(st.Stream, "state", fmt.Sprint(st.State, " ", st.Err)) },
		DecodeError: func(s informer.Stream, _ error) { c.add("decode error", s) },
		LossyDecode: func(s informer.Stream) { c.add("lossy decode", s) },
		IndexError:  func(s informer.Stream, _ informer.Key, _ error) { c.add("index error", s) },
		Checkpoint: func(s informer.Stream, err error) {
			c.add("checkpoint error", s)
			c.note(s, "checkpoint", err)
		},
	}
}

// running is a running cluster.
type running struct {
	*informer.Cluster
	line     *line
	requests *requests
	counters *counters
	stop     func() error // ends Run and returns its error
}

// open makes a cluster that does not run yet; setup may be nil.
func (w *world) open(t *testing.T, o informer.Options, setup func(*rest.Config)) *running {
	t.Helper()
	r := &running{line: &line{}, requests: &requests{}, counters: &counters{began: time.Now()}}
	o.Hooks, o.Scheme = r.counters.hooks(), widgetScheme()
	cfg := w.config(r.line, r.requests)
	if setup != nil {
		setup(cfg)
	}
	var err error
	if r.Cluster, err = informer.NewCluster(cfg, o); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the cluster. The test's cleanup stops it, and prints its state if the test failed.
func (r *running) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	var err error
	r.stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(recovery):
				err = fmt.Errorf("the cluster does not end:\n%s", stacks())
			}
		})
		return err
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.dump())
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// stacks returns the stack of every goroutine.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// leftOver waits until the library has no goroutines left, after a cluster has ended.
func leftOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return clustertest.Poll(ctx, 20*time.Millisecond, func() error {
		for goroutine := range strings.SplitSeq(stacks(), "\n\n") {
			if strings.Contains(goroutine, "tattler/informer") {
				return fmt.Errorf("a goroutine is left:\n%s", goroutine)
			}
		}
		return nil
	})
}

// dump returns the cluster's status.
func (r *running) dump() string {
	var b strings.Builder
	if err := r.WriteStatus(&b); err != nil {
		return err.Error()
	}
	r.counters.mu.Lock()
	defer r.counters.mu.Unlock()
	return fmt.Sprintf("%s\n%v\n%s", &b, r.counters.n, strings.Join(r.counters.log, "\n"))
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
