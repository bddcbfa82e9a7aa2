package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeWatcher tells what a test wants.
type fakeWatcher struct {
	out     chan capture.Message
	fail    chan error // Run's error, before its context ends
	parting error      // Run's error after that
	stuck   chan struct{}

	started atomic.Pointer[[3]int] // kinds, settled, objects
}

func (f *fakeWatcher) Messages() <-chan capture.Message { return f.out }

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

// rig is a session within a synctest bubble. On its screen, what goes to stdout and to stderr meets
// as on a terminal.
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
		st := &status{w: io.Err, terminal: io.ErrTTY}
		cluster := &kube.Cluster{Config: &rest.Config{Host: "https://h"}, Name: "prod", Namespace: "shop"}
		p, perr := o.printer(cluster, o.namespaces("shop"), st)
		if perr != nil {
			t.Fatal(perr)
		}
		r.session = &session{
			o: &o, cluster: cluster, namespaces: o.namespaces("shop"),
			watcher: r, printer: p, status: st, start: time.Now(),
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

// tell hands a message to the session and waits until it is done with it.
func (r *rig) tell(m capture.Message) {
	r.fakeWatcher.out <- m
	synctest.Wait()
}

// pass lets time pass, which in the bubble takes none, and waits until the session has done what was
// due.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) change(c capture.Change) { r.tell(capture.Message{Change: &c}) }

func (r *rig) becomesReady() { r.tell(capture.Message{Ready: &capture.Ready{Kinds: 1}}) }

// created is a change with a line of its own.
func created(name string) capture.Change {
	return capture.Change{
		Op: event.Created, Namespace: "shop", Name: name, At: time.Now(),
		Resource: capture.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true},
		After:    map[string]any{},
	}
}

func quietUpdate() capture.Change {
	c := created("quiet")
	c.Op, c.Quiet = event.Updated, true
	return c
}

func TestEnds(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		why  string
		o    Options
		do   func(r *rig)
		want string // the error; empty: none
	}{
		{"Ctrl-C", Options{}, func(r *rig) { r.becomesReady(); r.interrupt() }, ""},
		{"Ctrl-C before anything is live, whatever the watcher says of that", Options{}, func(r *rig) {
			r.parting = fmt.Errorf("ask: %w", context.Canceled)
			r.interrupt()
		}, ""},
		{"Ctrl-C while the server does not answer", Options{}, func(r *rig) { r.parting = refused; r.interrupt() }, ""},
		{"the watcher fails at once", Options{}, func(r *rig) { r.fail <- refused }, "refused"},
		{"the watcher fails as the progress line is due", Options{}, func(r *rig) {
			r.pass(redraw)
			r.fail <- refused
		}, "refused"},
		{"the watcher fails after it was live", Options{}, func(r *rig) { r.becomesReady(); r.fail <- refused }, "refused"},
		{"discovery took too long", Options{}, func(r *rig) { r.fail <- fmt.Errorf("ask: %w", context.DeadlineExceeded) },
			`the API server of context "prod" at https://h does not answer`},
		{"nothing that was asked for may be watched", Options{}, func(r *rig) {
			r.tell(capture.Message{Ready: &capture.Ready{}})
		}, "the server has nothing that can be watched there"},
		{"--timeout", Options{Timeout: time.Second}, func(r *rig) { r.becomesReady() }, ""},
		{"--timeout, with some streams", Options{Timeout: time.Second}, func(r *rig) { r.started.Store(&[3]int{3, 1, 0}) }, ""},
		{"--timeout, without any answer", Options{Timeout: time.Second}, func(*rig) {},
			`after 1s: the API server of context "prod" at https://h does not answer`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			_, err := play(t, tt.o, tt.do)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestOver: the watcher's end and ours may be seen in either order.
func TestOver(t *testing.T) {
	s := &session{cluster: &kube.Cluster{Config: &rest.Config{}}}
	end := &ended{done: make(chan struct{}), err: errors.New("refused")}
	close(end.done)
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.over(ctx, end); !errors.Is(err, end.err) {
		t.Errorf("error %v", err)
	}
	cancel()
	if err := s.over(ctx, end); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// TestStuck: a stream that does not end, such as one whose credential plugin hangs, does not hold
// up Ctrl-C.
func TestStuck(t *testing.T) {
	_, err := play(t, Options{}, func(r *rig) {
		r.stuck = make(chan struct{})
		start := time.Now()
		r.interrupt()
		r.end <- <-r.end
		if waited := time.Since(start); waited > partingTime {
			t.Errorf("waited %s", waited)
		}
		close(r.stuck)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLimit(t *testing.T) {
	play := func(o Options) string {
		o.Limit = 2
		r, err := play(t, o, func(r *rig) {
			r.becomesReady()
			r.change(created("a"))
			r.change(capture.Change{Op: event.Gap, At: time.Now(), Resource: capture.Resource{Resource: "pods"}, Gap: &event.GapInfo{}})
			r.change(quietUpdate())
			if !o.Noise {
				r.change(created("b"))
			}
		})
		if err != nil {
			t.Error(err)
		}
		return r.err.String()
	}
	if got := play(Options{}); !strings.HasSuffix(got, "\n1 quiet change not shown (--noise)\n") {
		t.Errorf("a quiet change is not one that was asked for, but it is counted:\n%s", got)
	}
	play(Options{Noise: true}) // there, it ends the watch; else this would not return
}

// TestOutputFails: what cannot be written ends the watch, with its error and without a word more.
func TestOutputFails(t *testing.T) {
	for _, tt := range []struct {
		why string
		err error
	}{
		{"the reader went away", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}},
		{"the disk is full", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}},
	} {
		for _, output := range []string{"", "json", "yaml"} {
			before := 0
			r, err := play(t, Options{Output: output}, func(r *rig) {
				r.becomesReady()
				r.change(quietUpdate())
				before = r.err.Len()
				r.wrong = tt.err
				r.change(created("a"))
			})
			if !errors.Is(err, tt.err) {
				t.Errorf("%s, -o %q: error %v", tt.why, output, err)
			}
			if more := r.err.String()[before:]; more != "" {
				t.Errorf("%s, -o %q: also says %q", tt.why, output, more)
			}
		}
	}
}

// TestFlush: whatever ends the watch, what was seen is shown.
func TestFlush(t *testing.T) {
	for why, end := range map[string]func(r *rig){
		"Ctrl-C":    func(r *rig) { r.interrupt() },
		"a failure": func(r *rig) { r.fail <- errors.New("failed") },
	} {
		r, _ := play(t, Options{}, func(r *rig) {
			r.becomesReady()
			c := created("a")
			c.ResourceVersion = "7" // which waits for what may have been written before
			r.change(c)
			if r.out.Len() > 0 {
				t.Errorf("%s: shown too early for this test", why)
			}
			end(r)
		})
		if !strings.Contains(r.out.String(), "+ cm/a") {
			t.Errorf("%s: shows %q", why, r.out.String())
		}
	}
}

func TestDue(t *testing.T) {
	_, err := play(t, Options{}, func(r *rig) {
		r.becomesReady()
		c := created("a")
		c.ResourceVersion = "7"
		r.change(c)
		r.pass(window)
		if !strings.Contains(r.out.String(), "+ cm/a") {
			t.Error("what is due is not shown before something else happens")
		}
		r.interrupt()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAway(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	for _, tt := range []struct {
		why      string
		away     capture.Away
		out, err string
	}{
		{"gone", capture.Away{Since: at(0), Err: errors.New("connect: connection refused")}, "",
			"! the API server does not answer: connect: connection refused; trying again\n"},
		{"back, and all streams resumed", capture.Away{Since: at(0), Until: at(14), Streams: 2},
			"! API server was away 14 s; resumed, nothing missed\n", ""},
		{"back, and versions are lost", capture.Away{Since: at(0), Until: at(14), Streams: 2, Relisted: 1},
			"! API server was away 14 s; resumed, 1 stream relisted (net changes only)\n", ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r, err := play(t, Options{}, func(r *rig) { r.tell(capture.Message{Away: &tt.away}); r.interrupt() })
			if err != nil || !strings.HasSuffix(r.out.String(), tt.out) || (tt.out == "") != (r.out.Len() == 0) || r.err.String() != tt.err {
				t.Errorf("%v\nstdout %q\nstderr %q", err, r.out.String(), r.err.String())
			}
			r, err = play(t, Options{Output: "json"}, func(r *rig) { r.tell(capture.Message{Away: &tt.away}); r.interrupt() })
			if err != nil || r.out.Len() > 0 || r.err.String() != tt.out+tt.err {
				t.Errorf("-o json: %v\nstdout %q\nstderr %q", err, r.out.String(), r.err.String())
			}
		})
	}
}

// TestProblem: what comes from elsewhere is one line, and does not command the terminal.
func TestProblem(t *testing.T) {
	r, _ := play(t, Options{}, func(r *rig) {
		r.tell(capture.Message{Problem: errors.New("read pods/x: a\n  b\x1b[2J")})
		r.interrupt()
	})
	if got, want := r.err.String(), "! read pods/x: a b\\x1b[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	tty := &terminal.IO{OutTTY: true, ErrTTY: true}
	const draw = eraseLine + noWrap
	r, err := play(t, Options{IO: tty}, func(r *rig) {
		r.pass(redraw)
		if got, want := r.screen.String(), draw+"prod: asking what there is …"+wrap; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		r.started.Store(&[3]int{3, 1, 20})
		r.pass(redraw)
		if got, want := r.screen.String(), draw+"prod: 1 of 3 kinds live, 20 objects …"+wrap; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want it to end with %q", got, want)
		}
		r.screen.Reset()
		r.change(created("a"))
		if got := r.screen.String(); !strings.HasPrefix(got, eraseLine) || !strings.HasSuffix(got, "+ cm/a\n") {
			t.Errorf("a change is written into the progress line: %q", got)
		}
		r.pass(redraw)
		r.screen.Reset()
		r.becomesReady()
		if got := r.screen.String(); !strings.HasPrefix(got, eraseLine+"prod, namespace shop: ") {
			t.Errorf("the status is written into the progress line: %q", got)
		}
		r.screen.Reset()
		r.pass(10 * redraw)
		if got := r.screen.String(); got != "" {
			t.Errorf("it is drawn for ever: %q", got)
		}
		r.interrupt()
	})
	if err != nil || r.screen.Len() > 0 {
		t.Errorf("%v, at the end %q", err, r.screen.String())
	}

	r, _ = play(t, Options{IO: tty}, func(r *rig) {
		r.pass(redraw)
		r.fail <- errors.New("failed")
	})
	if got := r.screen.String(); !strings.HasSuffix(got, wrap+eraseLine) {
		t.Errorf("an error comes behind the progress line: %q", got)
	}

	r, _ = play(t, Options{}, func(r *rig) {
		r.pass(2 * redraw)
		r.interrupt()
	})
	if r.screen.Len() > 0 {
		t.Errorf("a pipe gets a progress line: %q", r.screen.String())
	}

	var screen bytes.Buffer
	s := &session{
		cluster: &kube.Cluster{Config: &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{}}},
		watcher: &fakeWatcher{}, status: &status{w: &screen, terminal: true},
	}
	if s.drawProgress(); screen.Len() > 0 {
		t.Errorf("it is drawn over the question of a credential plugin: %q", screen.String())
	}
}

func TestResize(t *testing.T) {
	const name = "a-name-that-needs-more-than-thirty-columns"
	r, _ := play(t, Options{IO: &terminal.IO{OutTTY: true}}, func(r *rig) {
		r.becomesReady()
		r.width = 200
		r.change(created(name))
		r.width = 30
		r.change(created(name + "-2"))
		r.interrupt()
	})
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], name) || len([]rune(lines[1])) != 30 {
		t.Errorf("%q", lines)
	}
}
