package informer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// rig is a server, a cluster that runs, and one source with one feed, in a synctest bubble.
type rig struct {
	*testing.T
	server  *informertest.Server
	cluster *informer.Cluster
	source  *informer.Source
	feed    *feedLog
	states  *stateLog
}

// scenario runs a test in a bubble. before fills the server before the cluster starts.
func scenario(t *testing.T, o informer.SourceOptions, before func(*informertest.Server), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, server: informertest.NewServer(), states: &stateLog{}}
		r.server.Serve(pods, "Pod")
		r.server.Serve(widgets, "Widget")
		if before != nil {
			before(r.server)
		}
		var err error
		// Without audits, every request is the reflector's; audit_test.go and the model have them.
		r.cluster, err = informer.NewCluster(r.server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		o.OnState = r.states.add
		o.Paged = true // its order is fixed; a streaming list has no order (stream_test.go and the model use it)
		f, err := feed.Open(r.cluster, widgets, "test", feed.Options{SourceOptions: o})
		if err != nil {
			t.Fatal(err)
		}
		r.source, r.feed = f.Source(), follow(f)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.cluster.Run(ctx) }()
		test(r)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.feed.wait()
	})
}

// feedLog records a feed's batches.
type feedLog struct {
	feed *feed.Feed
	done chan struct{}
	mu   sync.Mutex
	text []string
}

func follow(f *feed.Feed) *feedLog {
	l := &feedLog{feed: f, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			b, err := f.Next(context.Background())
			if err != nil {
				l.add(err.Error())
				return
			}
			l.add(describe(b)...)
		}
	}()
	return l
}

func (l *feedLog) add(lines ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, lines...)
}

func (l *feedLog) wait() { <-l.done }

// take waits until everything is idle, and returns the batches since the last call.
func (l *feedLog) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.text, "\n")
	l.text = nil
	return text
}

// want compares the batches since the last call.
func (r *rig) want(why, want string) {
	r.Helper()
	got := r.feed.take()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// describe writes a batch as text: a line for the gap, for each delta, and for a live version.
func describe(b feed.Batch) []string {
	var text []string
	if g := b.Gap; g != nil {
		text = append(text, fmt.Sprintf("! %s %s..%s", g.Reason, g.From, g.To))
	}
	for _, d := range b.Deltas {
		text = append(text, line(d))
	}
	if b.Phase == feed.Live {
		text = append(text, fmt.Sprintf("= %s epoch %d", b.Version, b.Epoch))
	}
	return text
}

func line(d feed.Delta) string {
	text := ""
	switch d.Op {
	case informer.Added:
		text = "+ " + d.Key.Name + " " + d.New.ResourceVersion
	case informer.Updated:
		text = "~ " + d.Key.Name + " " + d.Old.ResourceVersion + ">" + d.New.ResourceVersion
	case informer.Deleted:
		text = "- " + d.Key.Name + " " + d.Old.ResourceVersion
		if !d.Final.IsZero() {
			text += " final " + d.Final.ResourceVersion
		}
	}
	if d.Initial {
		text += " initial"
	}
	if d.Relisted {
		text += " relisted"
	}
	return text
}

// stateLog records transitions.
type stateLog struct {
	mu   sync.Mutex
	text []string
}

var stateNames = map[informer.State]string{
	informer.Starting: "starting", informer.Listing: "listing", informer.Watching: "watching",
	informer.Waiting: "waiting", informer.Parked: "parked", informer.Stopped: "stopped",
}

func (l *stateLog) add(s informer.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := stateNames[s.State]
	if s.Attempts > 0 {
		text += fmt.Sprintf("/%d", s.Attempts)
	}
	l.text = append(l.text, text)
}

func (l *stateLog) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.text, " ")
	l.text = nil
	return text
}

func spec(v any) map[string]any { return map[string]any{"spec": map[string]any{"v": v}} }
