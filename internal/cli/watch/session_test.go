package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
)

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
			r.receive(capture.Message{Ready: &capture.Ready{}})
		}, "nothing can be watched there"},
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

// TestOver: the watcher's end and ours may arrive in either order.
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

// TestStuck: a stream that does not end, such as one whose credential plugin hangs, does not delay Ctrl-C.
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
			r.change(change.Change{Meta: change.Meta{Op: event.Gap, At: time.Now(), Kind: change.Kind{Resource: "pods"}, Gap: &event.GapInfo{}}})
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
	if got := play(Options{Options: selection.Options{Severities: []string{"change"}}}); !strings.HasSuffix(got, "\n1 quiet change not shown (--noise)\n") {
		t.Errorf("with a severity:\n%s", got)
	}
	play(Options{Options: selection.Options{Noise: true}}) // this ends the watch; otherwise the call would not return
}

// TestOutputFails: a failing output ends the watch, with its error and no other message.
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

// TestFlush: whatever ends the watch, the changes seen are shown.
func TestFlush(t *testing.T) {
	for why, end := range map[string]func(r *rig){
		"Ctrl-C":    func(r *rig) { r.interrupt() },
		"a failure": func(r *rig) { r.fail <- errors.New("failed") },
	} {
		r, _ := play(t, Options{}, func(r *rig) {
			r.becomesReady()
			c := created("a")
			c.ResourceVersion = "7" // it waits for changes written before it
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
		r.pass(render.OrderWindow)
		if !strings.Contains(r.out.String(), "+ cm/a") {
			t.Error("due changes are not shown before the next event")
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
			"! the API server does not answer: connect: connection refused; retrying\n"},
		{"back, and all streams resumed", capture.Away{Since: at(0), Until: at(14), Streams: 2},
			"! API server was away 14 s; resumed, nothing missed\n", ""},
		{"back after a freeze", capture.Away{Since: at(0), Until: at(48), Silent: true, Streams: 2},
			"! API server was silent for 48 s; resumed, nothing missed\n", ""},
		{"back, and versions are lost", capture.Away{Since: at(0), Until: at(14), Streams: 2, Relisted: 1},
			"! API server was away 14 s; resumed, 1 stream relisted (net changes only)\n", ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r, err := play(t, Options{}, func(r *rig) { r.receive(capture.Message{Away: &tt.away}); r.interrupt() })
			if err != nil || !strings.HasSuffix(r.out.String(), tt.out) || (tt.out == "") != (r.out.Len() == 0) || r.err.String() != tt.err {
				t.Errorf("%v\nstdout %q\nstderr %q", err, r.out.String(), r.err.String())
			}
			r, err = play(t, Options{Output: "json"}, func(r *rig) { r.receive(capture.Message{Away: &tt.away}); r.interrupt() })
			if err != nil || r.out.Len() > 0 || r.err.String() != tt.out+tt.err {
				t.Errorf("-o json: %v\nstdout %q\nstderr %q", err, r.out.String(), r.err.String())
			}
		})
	}
}
