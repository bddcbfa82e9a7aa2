package log

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// screen holds the output so far.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// take returns the output since the last call.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	s.text.Reset()
	return text
}

// follower is a running log -f.
type follower struct {
	t        *testing.T
	out, err screen
	stop     context.CancelFunc
	done     chan error
}

func follow(t *testing.T, path string, o Options) *follower {
	f := &follower{t: t, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	o.IO, o.Past.Path, o.Follow = &terminal.IO{Out: &f.out, Err: &f.err, Width: func() int { return 0 }}, path, true
	go func() { f.done <- Run(ctx, &o) }()
	return f
}

// follows starts log -f.
type follows func(t *testing.T, path string, o Options) *follower

// everyWay runs a test with the file, and with the journal as a daemon serves it.
func everyWay(t *testing.T, f func(t *testing.T, follow follows)) {
	t.Run("file", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, follow) }) })
	t.Run("served", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, func(t *testing.T, path string, o Options) *follower {
				o.Past.Serving = func(ctx context.Context) (past.Served, error) {
					return clienttest.Open(ctx, path, access.Everything{}, nil)
				}
				return follow(t, path, o)
			})
		})
	})
}

// after lets time pass, and looks for texts in the new output, in order; without texts, there must be no output.
func (f *follower) after(d time.Duration, want ...string) {
	f.t.Helper()
	<-time.After(d)
	synctest.Wait()
	got := f.out.take()
	rest := got
	for _, w := range want {
		_, after, found := strings.Cut(rest, w)
		if !found {
			f.t.Errorf("no %q in\n%s", w, got)
		}
		rest = after
	}
	if len(want) == 0 && got != "" {
		f.t.Errorf("did not expect\n%s", got)
	}
}

// end presses Ctrl-C.
func (f *follower) end() (said string) {
	f.t.Helper()
	f.stop()
	if err := <-f.done; err != nil {
		f.t.Error(err)
	}
	return f.err.take()
}

func TestFollow(t *testing.T) {
	everyWay(t, func(t *testing.T, follow follows) {
		b := newBook(t, time.Now())
		now := func() { b.at = time.Now() }
		b.add(maps, event.Created, "shop", "a", nil, data("1"))
		b.add(maps, event.Updated, "shop", "a", data("1"), data("2"))
		f := follow(t, b.path, Options{Output: "text", Limit: 1, Recording: running})
		f.after(pollEvery, `data.k: "1" → "2"`)
		f.after(time.Minute)
		now()
		b.add(maps, event.Deleted, "shop", "a", data("2"), nil)
		b.add(maps, event.Updated, "shop", "b", data("2"), data("2"), quiet)
		f.after(pollEvery, "- shop     cm/a")
		f.after(time.Minute)

		// Folded changes are printed when their object is idle, although nothing is recorded then.
		now()
		b.add(widgets, event.Created, "pay", "w", nil, status("a"))
		b.add(widgets, event.Updated, "pay", "w", status("a"), status("b"))
		f.after(pollEvery, "+ pay      widget/w")
		f.after(3*time.Second, "·", "widget/w")
		f.after(time.Minute)

		// Pending changes are printed at the end.
		now()
		b.add(widgets, event.Updated, "pay", "w", status("b"), status("c"))
		f.after(pollEvery)
		said := f.end()
		f.after(0, "·", "widget/w")
		if said != "only the last line; earlier ones are left out (--limit 0 shows all)\n" {
			t.Errorf("said %q", said)
		}
		b.close()
	})
}

// TestFollowWhatIsNotThere: log -f waits for kinds that the journal does not have yet, and says so.
func TestFollowWhatIsNotThere(t *testing.T) {
	everyWay(t, func(t *testing.T, follow follows) {
		b := newBook(t, time.Now())
		b.add(maps, event.Created, "shop", "a", nil, data("1"))
		f := follow(t, b.path, Options{Options: selection.Options{Types: []string{"widgets"}}, Output: "json", Recording: running})
		f.after(time.Second)
		if said := f.err.take(); !strings.Contains(said, `the journal has no "widgets"`) {
			t.Errorf("said %q", said)
		}
		b.add(maps, event.Created, "shop", "b", nil, data("1"))
		f.after(time.Second)
		b.add(widgets, event.Created, "pay", "w", nil, data("1"))
		b.add(maps, event.Created, "shop", "c", nil, data("1"))
		f.after(time.Second, `"name":"w"`)
		b.add(widgets, event.Created, "pay", "v", nil, data("1"))
		f.after(time.Second, `"name":"v"`)
		f.end()
		b.close()
	})
}

// TestFollowReplaced: log -f does not wait forever for a file that was replaced.
func TestFollowReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		f := follow(t, b.path, Options{Output: "json", Recording: running})
		f.after(time.Second)
		if err := os.Rename(b.close(), b.path+".old"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := <-f.done; err == nil || !strings.Contains(err.Error(), "was removed or replaced") {
			t.Error(err)
		}
		f.stop()
	})
}

// TestFollowNothingIsLost follows a constantly growing journal, from the first change on.
func TestFollowNothingIsLost(t *testing.T) {
	everyWay(t, func(t *testing.T, follow follows) {
		b := newBook(t, time.Now())
		f := follow(t, b.path, Options{Output: "oneline", Recording: running})
		var want []string
		for i := range 100 {
			name := "n" + strings.Repeat("i", i)
			b.at = time.Now()
			b.add(maps, event.Created, "shop", name, nil, data("1"))
			want = append(want, "cm/"+name+" ")
			<-time.After(time.Duration(i) * 7 * time.Millisecond)
		}
		f.after(time.Second, want...)
		f.end()
		b.close()
	})
}

// TestFollowClockSetBack: what a daemon with a wrong clock recorded is shown at once, and so is everything after it, folded as
// usual, once the clock is right again.
func TestFollowClockSetBack(t *testing.T) {
	everyWay(t, func(t *testing.T, follow follows) {
		b := newBook(t, time.Now())
		b.add(maps, event.Created, "shop", "first", nil, data("1"))
		f := follow(t, b.path, Options{Output: "text", Limit: 1, Recording: running})
		f.after(pollEvery, "cm/first")
		for _, wrong := range []time.Time{time.Now().Add(time.Hour), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
			b.at = wrong
			b.add(maps, event.Created, "shop", "future", nil, data("1"))
			b.add(widgets, event.Created, "pay", "w", nil, status("a"))
			b.add(widgets, event.Updated, "pay", "w", status("a"), status("b"))
			f.after(2*pollEvery, "+ shop     cm/future", "+ pay      widget/w")
			f.after(3*time.Second, "·", "widget/w")
			b.at = time.Now()
			b.add(maps, event.Deleted, "shop", "future", data("1"), nil)
			f.after(2*pollEvery, "- shop     cm/future")
			b.at = time.Now()
			b.add(widgets, event.Updated, "pay", "w", status("b"), status("c"))
			b.at = b.at.Add(200 * time.Millisecond)
			b.add(widgets, event.Updated, "pay", "w", status("c"), status("d"))
			f.after(2 * pollEvery)
			f.after(3*time.Second, "·", "widget/w", "a → d")
			b.add(widgets, event.Deleted, "pay", "w", status("d"), nil)
			f.after(3*time.Second, "widget/w")
		}
		f.end()
		b.close()
	})
}
