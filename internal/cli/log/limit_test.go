package log

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// folded writes a journal with three stories: a ConfigMap, a widget with 300 folded changes, and another ConfigMap.
func folded(t *testing.T) string {
	b := newBook(t, start)
	b.add(maps, event.Created, "shop", "first", nil, data("1"))
	b.add(widgets, event.Snapshot, "shop", "w", nil, status("0"))
	b.at = start.Add(time.Minute)
	for i := range 300 {
		b.add(widgets, event.Updated, "shop", "w", status(fmt.Sprint(i)), status(fmt.Sprint(i+1)))
		b.at = b.at.Add(2 * time.Millisecond)
	}
	b.at = start.Add(2 * time.Minute)
	b.add(maps, event.Created, "shop", "last", nil, data("1"))
	return b.close()
}

// heads returns the object names of the lines that are not indented.
func heads(out string) (names []string) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); !isDetail(line) && len(f) > 3 {
			names = append(names, f[3])
		}
	}
	return names
}

// TestLimitCountsStories: the limit counts printed lines, and the output says first that it leaves some out.
func TestLimitCountsStories(t *testing.T) {
	path := folded(t)
	for _, tc := range []struct {
		limit int
		want  string
		cut   bool
	}{{1, "[cm/last]", true}, {2, "[widget/w cm/last]", true}, {3, "[cm/first widget/w cm/last]", false}, {50, "[cm/first widget/w cm/last]", false}} {
		var both bytes.Buffer
		o := Options{Output: text, Limit: tc.limit, Now: hourLater, Recording: running, IO: &terminal.IO{Out: &both, Err: &both, Width: func() int { return 0 }}}
		o.Past.Path = path
		if err := Run(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(both.String(), "\n")
		notice := fmt.Sprintf("only the last %d lines; earlier ones are left out (--limit 0 shows all)", tc.limit)
		if tc.limit == 1 {
			notice = "only the last line; earlier ones are left out (--limit 0 shows all)"
		}
		if tc.cut != (first == notice) {
			t.Errorf("%d: begins with %q", tc.limit, first)
		}
		if !tc.cut {
			rest = both.String()
		}
		if got := fmt.Sprint(heads(rest)); got != tc.want {
			t.Errorf("%d: %s, want %s", tc.limit, got, tc.want)
		}
		if tc.limit > 1 && !strings.Contains(rest, " 0 → 300 ") {
			t.Errorf("%d: the story is cut:\n%s", tc.limit, rest)
		}
	}
}

// TestTimeRangeHasNoLimit: a time range shows all its changes, unless a limit is set as well.
func TestTimeRangeHasNoLimit(t *testing.T) {
	b := newBook(t, start)
	for i := range 60 {
		b.add(maps, event.Created, "shop", fmt.Sprint("m", i), nil, data("1"))
		b.at = b.at.Add(time.Second)
	}
	path := b.close()
	for _, tc := range []struct {
		args []string
		want int
		cut  bool
	}{
		{nil, 50, true},
		{[]string{"--since", "2026-03-01T10:00:00Z"}, 60, false},
		{[]string{"--until", "2026-03-01T10:01:00Z"}, 60, false},
		{[]string{"--since", "2026-03-01T10:00:00Z", "--limit", "5"}, 5, true},
	} {
		for _, format := range []string{text, oneline, "json"} {
			var out, said bytes.Buffer
			cmd := NewCommand(&terminal.IO{Out: &out, Err: &said, Width: func() int { return 0 }})
			cmd.SetArgs(append([]string{"--journal", path, "-o", format}, tc.args...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "\n"); n < tc.want || format != text && n != tc.want || format == text && len(heads(out.String())) != tc.want {
				t.Errorf("%v -o %s: %d lines, want %d", tc.args, format, n, tc.want)
			}
			if cut := strings.Contains(said.String(), "left out"); cut != tc.cut {
				t.Errorf("%v -o %s: said %q", tc.args, format, said.String())
			}
		}
	}
}

// TestTimeRangeShowsWholeStories: a story that began before the time range is shown from its beginning; one that
// had ended before is not shown.
func TestTimeRangeShowsWholeStories(t *testing.T) {
	out, _, err := play(t, folded(t), Options{Options: selection.Options{Since: "2026-03-01T10:01:00.3Z"}, Output: text, Limit: -1})
	if err != nil || fmt.Sprint(heads(out)) != "[widget/w cm/last]" || !strings.Contains(out, " 0 → 300 ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestTimeRangeBeginsAfterStories: a story that was over when the time range began is not shown, even if its line was due later.
func TestTimeRangeBeginsAfterStories(t *testing.T) {
	b := newBook(t, start)
	b.add(widgets, event.Snapshot, "shop", "w", nil, status("0"))
	b.at = start.Add(time.Minute - 300*time.Millisecond)
	b.add(widgets, event.Updated, "shop", "w", status("0"), status("1"))
	b.at = start.Add(time.Minute + 2*time.Second)
	b.add(maps, event.Created, "shop", "later", nil, data("1"))
	path := b.close()
	for since, want := range map[string]string{"10:00:30": "[widget/w cm/later]", "10:01": "[cm/later]"} {
		out, _, err := play(t, path, Options{Options: selection.Options{Since: since}, Output: text, Limit: -1})
		if got := fmt.Sprint(heads(out)); err != nil || got != want {
			t.Errorf("since %s: %s, want %s, %v\n%s", since, got, want, err, out)
		}
	}
}

// TestTimeRangeEndsStories: a story that is still open when the time range ends is shown if it changed within the range.
func TestTimeRangeEndsStories(t *testing.T) {
	b := newBook(t, start)
	b.add(pods, event.Created, "shop", "web", nil, crashing(1))
	b.at = start.Add(5 * time.Minute)
	b.add(pods, event.Updated, "shop", "web", crashing(1), crashing(2))
	b.add(maps, event.Created, "shop", "a", nil, data("1"))
	b.at = start.Add(5*time.Minute + 10*time.Second)
	b.add(pods, event.Updated, "shop", "web", crashing(2), crashing(3))
	path := b.close()
	for since, want := range map[string]string{"10:04": "[cm/a pod/web]", "10:05:05": "[pod/web]", "10:05:30": "[]"} {
		out, _, err := play(t, path, Options{Options: selection.Options{Since: since, Until: "10:05:50"}, Output: text, Limit: -1})
		if got := fmt.Sprint(heads(out)); err != nil || got != want {
			t.Errorf("since %s: %s, want %s, %v\n%s", since, got, want, err, out)
		}
	}
}
