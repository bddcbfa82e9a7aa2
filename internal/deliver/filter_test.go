package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// failing is a filter that selects nothing, and fails for the objects of a name.
func failing(name string) filter {
	return func(c *change.Change) (bool, error) {
		if c.Name == name {
			return false, errors.New("cost limit exceeded")
		}
		return false, nil
	}
}

// TestFilterFails: the change is delivered, and its body, event and text give the reason.
func TestFilterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, deliver.Options{Where: failing("web-1"), MaxBytes: deliver.MinMaxBytes})
		for n := range 3 {
			item := sinktest.Item(n)
			item.Event().Data.After = map[string]any{"data": strings.Repeat("x", deliver.MinMaxBytes)}
			item.Text = func(w io.Writer) error { _, err := io.WriteString(w, "the change\n"); return err }
			r.store.Append(item)
		}
		r.start()
		defer r.stop()
		r.want("the change on which the filter failed", "[2]")
		got := r.sink.got[0]
		if !bytes.Contains(got.Body, []byte(`"filterError":"cost limit exceeded"`)) || got.Event.Data.FilterError != "cost limit exceeded" {
			t.Errorf("no mark: %s", got.Body)
		}
		var text strings.Builder
		if err := got.Text(&text); err != nil || text.String() != "the change\n! delivered because the filter failed: cost limit exceeded\n" {
			t.Errorf("%q, %v", text.String(), err)
		}
		if s := r.pump.Status(); s.FilterErrors != 1 || s.FilterError != "cost limit exceeded" {
			t.Errorf("%+v", s)
		}
	})
}

// TestFilterFailsOnADeadLetter: a replayed one is also marked, but not counted again.
func TestFilterFailsOnADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{Where: failing("web-1")})
		var refuse atomic.Bool
		refuse.Store(true)
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if refuse.Load() {
				return 0, &sink.PermanentError{Err: errors.New("400")}
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		time.Sleep(time.Minute)
		refuse.Store(false)
		counted := r.pump.Status().FilterErrors
		if taken, err := r.pump.ReplayDead(t.Context()); taken != 1 || err != nil {
			t.Fatal(taken, err)
		}
		if got := r.sink.got[0]; got.Event.Data.FilterError == "" {
			t.Errorf("no mark: %s", got.Body)
		}
		if again := r.pump.Status().FilterErrors; again != counted {
			t.Errorf("%d failures, and %d after the replay", counted, again)
		}
	})
}

// TestFilterFailsLoudlyAtFirst: the log has at most a line a minute, however often the filter fails.
func TestFilterFailsLoudlyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 0, deliver.Options{
			Where: filter(func(c *change.Change) (bool, error) { return false, fmt.Errorf("no key in %s", c.Name) }),
			Log:   slog.New(slog.NewTextHandler(&log, nil)),
		})
		r.start()
		for n := range 100 { // 150 seconds
			r.append(n, 1)
			time.Sleep(1500 * time.Millisecond)
		}
		r.stop()
		var lines []string
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "filter failed") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 3 {
			t.Fatalf("%d lines:\n%s", len(lines), log.String())
		}
		for _, want := range []string{"level=WARN", "sink=test", `where="after.x == 1"`, `error="no key in web-0"`, "failures=1\n", sinktest.Event(0).Subject} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("no %s in %s", want, lines[0])
			}
		}
		if !strings.Contains(lines[1], "failures=40") {
			t.Errorf("the second line does not count: %s", lines[1])
		}
	})
}

// TestLongFilterError: a user who edits objects cannot fill a log or an event with the cause.
func TestLongFilterError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{Where: filter(func(*change.Change) (bool, error) {
			return false, errors.New("no such key: " + strings.Repeat("ü", 10_000))
		})})
		r.start()
		defer r.stop()
		r.want("it is delivered", "[1]")
		if got := r.sink.got[0].Event.Data.FilterError; len(got) > 600 || !strings.HasPrefix(got, "no such key: ü") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}
