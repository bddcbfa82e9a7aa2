package watch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestProblem: a message from elsewhere is one line, and cannot control the terminal.
func TestProblem(t *testing.T) {
	r, _ := play(t, Options{}, func(r *rig) {
		r.receive(capture.Message{Problem: errors.New("read pods/x: a\n  b\x1b[2J")})
		r.interrupt()
	})
	if got, want := r.err.String(), "! read pods/x: a b\\x1b[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	tty := &terminal.IO{OutTTY: true, ErrTTY: true}
	const draw = terminal.EraseLine + terminal.NoWrap
	r, err := play(t, Options{IO: tty}, func(r *rig) {
		r.pass(redraw)
		if got, want := r.screen.String(), draw+"prod: asking the server for its kinds …"+terminal.Wrap; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		r.started.Store(&[3]int{3, 1, 20})
		r.pass(redraw)
		if got, want := r.screen.String(), draw+"prod: 1 of 3 kinds live, 20 objects …"+terminal.Wrap; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want it to end with %q", got, want)
		}
		r.screen.Reset()
		r.change(created("a"))
		if got := r.screen.String(); !strings.HasPrefix(got, terminal.EraseLine) || !strings.HasSuffix(got, "+ cm/a\n") {
			t.Errorf("a change is written into the progress line: %q", got)
		}
		r.pass(redraw)
		r.screen.Reset()
		r.becomesReady()
		if got := r.screen.String(); !strings.HasPrefix(got, terminal.EraseLine+"prod, namespace shop: ") {
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
	if got := r.screen.String(); !strings.HasSuffix(got, terminal.Wrap+terminal.EraseLine) {
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
		watcher: &fakeWatcher{}, status: terminal.NewStatus(&screen, true),
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

func TestSlowStartSaysWhatItWaitsFor(t *testing.T) {
	r, err := play(t, Options{Options: selection.Options{Objects: selection.Objects{All: true}}}, func(r *rig) {
		r.unsettled.Store([]string{"configmaps"})
		r.pass(slowStart + time.Second)
		r.interrupt()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.err.String(), "no answer yet for 1 kind: configmaps; showing changes of the others\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
