package watch

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/selection"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fakeWatcher sends the messages of a test.
type fakeWatcher struct {
	unsettled atomic.Value // []string
	out       chan capture.Message
	fail      chan error // Run's error, before its context ends
	parting   error      // Run's error after that
	stuck     chan struct{}

	started atomic.Pointer[[3]int] // kinds, settled, objects
}

func (f *fakeWatcher) Messages() <-chan capture.Message { return f.out }

func (f *fakeWatcher) Unstarted() []string {
	names, _ := f.unsettled.Load().([]string)
	return names
}

func (f *fakeWatcher) Progress() (kinds, settled, objects int) {
	p := f.started.Load()
	if p == nil {
		return 0, 0, 0
	}
	return p[0], p[1], p[2]
}

func (f *fakeWatcher) Run(ctx context.Context) error {
	defer close(f.out)
	select {
	case err := <-f.fail:
		return err
	case <-ctx.Done():
		if f.stuck != nil {
			<-f.stuck
		}
		return f.parting
	}
}

// rig is a session within a synctest bubble. On its screen, stdout and stderr are mixed as on a terminal.
type rig struct {
	*fakeWatcher
	out, err, screen buffer
	width            int
	wrong            error // of writing to stdout
	session          *session
	interrupt        context.CancelFunc
	end              chan error
}

// buffer may be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) Len() int { return len(b.String()) }

func (b *buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

// sink writes to one of the rig's streams.
type sink struct {
	r   *rig
	own *buffer
}

func (s sink) Write(p []byte) (int, error) {
	if s.own == &s.r.out && s.r.wrong != nil {
		return 0, s.r.wrong
	}
	_, _ = s.own.Write(p)
	return s.r.screen.Write(p)
}

// play runs a session with the options while do acts, and returns its error.
func play(t *testing.T, o Options, do func(r *rig)) (*rig, error) {
	t.Helper()
	r := &rig{}
	var err error
	synctest.Test(t, func(t *testing.T) {
		r.fakeWatcher = &fakeWatcher{out: make(chan capture.Message), fail: make(chan error, 1)}
		io := &terminal.IO{Out: sink{r, &r.out}, Err: sink{r, &r.err}, Width: func() int { return r.width }}
		if o.IO != nil {
			io.OutTTY, io.ErrTTY = o.IO.OutTTY, o.IO.ErrTTY
		}
		o.IO = io
		st := terminal.NewStatus(io.Err, io.ErrTTY)
		cluster := &kube.Cluster{Config: &rest.Config{Host: "https://h"}, Name: "prod", Namespace: "shop"}
		f, ferr := o.filter()
		if ferr != nil {
			t.Fatal(ferr)
		}
		n := o.Within(selection.Namespaces{Include: []string{"shop"}})
		p, perr := o.printer(cluster, n, st, f)
		if perr != nil {
			t.Fatal(perr)
		}
		r.session = &session{
			o: &o, filter: f, cluster: cluster, namespaces: n,
			watcher: r, printer: p, status: st, start: time.Now(),
		}
		if o.Since != "" {
			since, serr := o.sinceTime(time.Now())
			h, herr := o.history(since, cluster, n, st, nil, f)
			if serr != nil || herr != nil {
				t.Fatal(serr, herr)
			}
			r.session.history, h.source = h, noSource{}
		}
		var ctx context.Context
		ctx, r.interrupt = context.WithCancel(t.Context())
		defer r.interrupt()
		r.end = make(chan error, 1)
		go func() { r.end <- r.session.run(ctx) }()
		do(r)
		err = <-r.end
	})
	return r, err
}

// receive passes a message to the session and waits until it has handled it.
func (r *rig) receive(m capture.Message) {
	r.fakeWatcher.out <- m
	synctest.Wait()
}

// pass advances the bubble's time, and waits until the session has done what was due.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) change(c change.Change) {
	r.receive(capture.Message{Batch: &capture.Batch{Changes: []capture.Version{{Change: c}}}})
}

func (r *rig) becomesReady() { r.receive(capture.Message{Ready: &capture.Ready{Kinds: 1}}) }

// created is a change with its own line.
func created(name string) change.Change {
	return change.Change{
		Meta:  change.Meta{Op: event.Created, Namespace: "shop", Name: name, At: time.Now(), Kind: change.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}},
		Names: change.Names{Short: "cm"},
		After: map[string]any{},
	}
}

func quietUpdate() change.Change {
	c := created("quiet")
	c.Op, c.Quiet = event.Updated, true
	return c
}
