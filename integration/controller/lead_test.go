package controller

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestLeader: of the processes that compete for a lease one reconciles, and another takes over when it stops in
// any way. A process that was suspended begins nothing when it continues.
func TestLeader(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.parent(fmt.Sprintf("p%03d", i), "0")
	}
	processes := map[string]*process{}
	start := func(name string) { processes[name] = w.start(name) }
	value := 0
	// leads waits until a change is reconciled, and returns the process that did it.
	leads := func() string {
		t.Helper()
		before := map[string]int{}
		for name, p := range processes {
			before[name] = p.began()
		}
		value++
		for i := range 20 {
			w.parent(fmt.Sprintf("p%03d", i), fmt.Sprint(value))
		}
		w.mirrored()
		leader := ""
		for name, p := range processes {
			if p.began() > before[name] {
				leader += name
			}
		}
		return leader
	}
	start("a")
	if got := leads(); got != "a" {
		t.Fatalf("%q leads", got)
	}
	start("b")

	// It releases its lease, so the next process need not wait for its expiry.
	processes["a"].stop(t)
	if got := leads(); got != "b" {
		t.Fatalf("after SIGTERM %q leads", got)
	}
	start("c")
	processes["b"].kill(t)
	if got := leads(); got != "c" {
		t.Fatalf("after SIGKILL %q leads", got)
	}
	start("d")

	frozen := processes["c"]
	frozen.signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	if got := leads(); got != "d" {
		t.Fatalf("after SIGSTOP %q leads", got)
	}
	begun := frozen.began()
	frozen.signal(t, syscall.SIGCONT)
	w.eventually(func() error {
		select {
		case err := <-frozen.done:
			frozen.done <- err
			if err == nil {
				return errors.New("it ended without an error")
			}
			return nil
		default:
			return errors.New("it keeps running, although it does not lead")
		}
	})
	if n := frozen.began() - begun; n > 0 {
		t.Errorf("it began %d after it was stopped", n)
	}
	if got := leads(); got != "d" {
		t.Fatalf("%q leads beside d", got)
	}
	processes["d"].stop(t)

	// No two at once, except Reconciles that ran when their process was suspended or killed.
	type span struct {
		who        string
		begin, end time.Time
	}
	var spans []span
	for name, p := range processes {
		running := map[string]time.Time{}
		for _, s := range p.steps() {
			if s.what == "begin" {
				running[s.key] = s.at
			} else if begin := running[s.key]; !begin.Before(stopped) || s.at.Before(stopped) {
				spans = append(spans, span{name, begin, s.at})
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.begin.Compare(b.begin) })
	if len(spans) < 60 {
		t.Errorf("only %d Reconciles are known", len(spans))
	}
	var latest span
	for _, s := range spans {
		if s.who != latest.who && s.begin.Before(latest.end) {
			t.Errorf("%s began at %s, while %s ran until %s", s.who, s.begin, latest.who, latest.end)
		}
		if s.end.After(latest.end) {
			latest = s
		}
	}
}
