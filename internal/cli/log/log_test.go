package log

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestLog(t *testing.T) {
	path := recorded(t)
	for _, tc := range []struct {
		why  string
		o    Options
		want string // operations and names
		said string // on stderr
	}{
		{"all listed changes", Options{}, "created a, updated a, created w, deleted a", "1 quiet change not shown (--noise)"},
		{"with quiet changes", Options{Options: selection.Options{Noise: true}}, "created a, updated a, updated a, created w, deleted a", ""},
		{"the last ones", Options{Limit: 2}, "created w, deleted a", "only the last 2 changes; earlier ones are left out"},
		{"without a limit", Options{Limit: -1}, "created a, updated a, created w, deleted a", "1 quiet"},
		{"from a time on", Options{Options: selection.Options{Since: "10:03"}}, "created w, deleted a", "1 quiet"},
		{"before a time", Options{Options: selection.Options{Until: "10:02"}}, "created a", ""},
		{"at 10:02", Options{Options: selection.Options{Since: "10:02", Until: "10:03"}}, "updated a", ""},
		{"a kind", Options{Options: selection.Options{Types: []string{"cm"}}}, "created a, updated a, deleted a", "1 quiet"},
		{"a kind of others", Options{Options: selection.Options{Types: []string{"Widget"}}}, "created w", ""},
		{"with its group", Options{Options: selection.Options{Types: []string{"widgets.example.com,configmap"}, Ops: []string{"created"}}}, "created a, created w", ""},
		{"with its version", Options{Options: selection.Options{Types: []string{"widgets.v1.example.com"}}}, "created w", ""},
		{"a core kind with its version", Options{Options: selection.Options{Types: []string{"configmaps.v1"}, Ops: []string{"deleted"}}}, "deleted a", ""},
		{"an object", Options{Options: selection.Options{Types: []string{"cm/old"}, Ops: []string{"snapshot"}}}, "snapshot old", ""},
		{"names", Options{Options: selection.Options{Types: []string{"cm", "a", "b"}, Ops: []string{"deleted"}}}, "deleted a", ""},
		{"objects of several kinds", Options{Options: selection.Options{Types: []string{"cm/a", "widgets/w", "widgets/a"}, Ops: []string{"created"}}}, "created a, created w", ""},
		{"a name is one of its kind", Options{Options: selection.Options{Types: []string{"cm/w", "widgets/a"}}}, "", "no such change"},
		{"a namespace", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"pa*"}}}}, "created w", ""},
		{"without a namespace", Options{Options: selection.Options{Objects: selection.Objects{Exclude: []string{"shop"}}}}, "created w", ""},
		{"a label before or after", Options{Options: selection.Options{Objects: selection.Objects{Labels: "app=web"}}}, "created a, updated a, deleted a", ""},
		{"without a label", Options{Options: selection.Options{Objects: selection.Objects{Labels: "app!=web"}}}, "created w", ""},
		{"a field that the journal has", Options{Options: selection.Options{Objects: selection.Objects{Fields: "metadata.name!=a,metadata.namespace=pay"}}}, "created w", ""},
		{"a manager", Options{Options: selection.Options{Managers: []string{"nobody"}}}, "", "no such change; the journal reaches back to 10:00:00; quiet changes were not looked at (--noise)\n"},
		{"a path", Options{Options: selection.Options{Paths: []string{"data.k"}, Ops: []string{"updated"}}}, "updated a", ""},
		{"another path", Options{Options: selection.Options{Paths: []string{"data.other"}}}, "", "no such change"},
		{"an expression", Options{Options: selection.Options{Where: `op == "deleted" || resource.namespace == "pay"`}}, "created w, deleted a", ""},
		{"an expression about the cluster", Options{Options: selection.Options{Where: `cluster == "test" && op == "deleted"`}}, "deleted a", ""},
		{"another cluster", Options{Options: selection.Options{Where: `cluster == "prod"`}}, "", "no such change"},
		{"severities", Options{Options: selection.Options{Severities: []string{"failure", "warning"}}}, "", "no such change"},
		{"a severity", Options{Options: selection.Options{Severities: []string{"change"}}, Limit: -1}, "created a, updated a, created w, deleted a", "1 quiet change not shown (--noise)\n"},
		{"an expression about the severity", Options{Options: selection.Options{Where: `severity != "change"`}}, "", "no such change"},
		{"an expression that fails on some changes", Options{Options: selection.Options{Where: `after.data.k == "2"`}}, "updated a", "could not judge 1 change, such as"},
		{"an end later than now", Options{Options: selection.Options{Since: "10:04", Until: "23:00"}}, "created w, deleted a", ""},
		{"nothing in that time", Options{Options: selection.Options{Since: "10:30"}}, "", "nothing changed since 10:30:00; the journal reaches back to 10:00:00"},
		{"nothing between two times", Options{Options: selection.Options{Since: "10:00", Until: "10:00:30", Types: []string{"widgets"}}}, "", "no such change since 10:00:00 before 10:00:30; the journal"},
		{"a time before the journal's", Options{Options: selection.Options{Since: "yesterday", Ops: []string{"deleted"}}}, "deleted a", "the journal reaches back to 10:00:00 only"},
		{"by objects, without a limit", Options{Options: selection.Options{Objects: selection.Objects{Labels: "app=web"}}, Limit: -1}, "created a, updated a, deleted a", ""},
		{"by an expression, without a limit", Options{Options: selection.Options{Where: `after.data.k == "2"`}, Limit: -1}, "updated a", "could not judge 1 change, such as"},
		{"a limit with a condition on objects", Options{Options: selection.Options{Objects: selection.Objects{Labels: "app=web"}}, Limit: 1}, "deleted a", "only the last change;"},
	} {
		out, said, err := play(t, path, tc.o)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		if diff := cmp.Diff(tc.want, summarizeEvents(t, out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
		if !strings.Contains(said, tc.said) || tc.said == "" && said != "" {
			t.Errorf("%s: said %q, want %q", tc.why, said, tc.said)
		}
	}
}

// TestGaps: no selection by namespace or label hides a gap, because the missed versions may be of selected objects.
func TestGaps(t *testing.T) {
	b := newBook(t, start)
	b.add(maps, "", "", "", nil, nil, gapIn(""))
	b.add(maps, "", "", "", nil, nil, gapIn("pay"))
	b.add(nodes, "", "", "", nil, nil, gapIn(""))
	path := b.close()
	for _, tc := range []struct {
		why  string
		o    Options
		want int
	}{
		{"all", Options{}, 3},
		{"only gaps", Options{Options: selection.Options{Ops: []string{"gap"}}}, 3},
		{"other operations", Options{Options: selection.Options{Ops: []string{"created"}}}, 0},
		{"a namespace: the cluster-wide gap may concern it", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"shop"}}}}, 1},
		{"a namespace with its own stream", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"pay"}}}}, 2},
		{"a pattern of namespaces", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"p*"}}}}, 2},
		{"labels", Options{Options: selection.Options{Objects: selection.Objects{Labels: "app=web"}}}, 3},
		{"fields", Options{Options: selection.Options{Objects: selection.Objects{Fields: "metadata.name=x"}}}, 3},
		{"a kind", Options{Options: selection.Options{Types: []string{"nodes"}}}, 1},
	} {
		out, _, err := play(t, path, tc.o)
		if got := strings.Count(out, "\n"); err != nil || got != tc.want {
			t.Errorf("%s: %d gaps, want %d, %v", tc.why, got, tc.want, err)
		}
	}
}

// TestNamespaceOfClusterKinds: cluster-scoped objects are in no namespace.
func TestNamespaceOfClusterKinds(t *testing.T) {
	b := newBook(t, start)
	b.add(nodes, event.Created, "", "n1", nil, obj{})
	path := b.close()
	for glob, want := range map[string]string{"": "created n1", "*": "", "shop": ""} {
		o := Options{}
		if glob != "" {
			o.Objects.Namespaces = []string{glob}
		}
		if out, _, err := play(t, path, o); err != nil || summarizeEvents(t, out) != want {
			t.Errorf("%q: %q, %v", glob, out, err)
		}
	}
}

// TestManager finds what a manager wrote, also if others wrote at the same time, but not what it owns and did not write.
func TestManager(t *testing.T) {
	b := newBook(t, start)
	as := func(manager string) func(*journal.Row) { return func(r *journal.Row) { r.Manager = manager } }
	b.add(maps, event.Created, "shop", "a", nil, managed(obj{"x": "1"}, "x", "helm"), as("helm"))
	b.add(maps, event.Updated, "shop", "a", managed(obj{"x": "1"}, "x", "helm"), managed(obj{"x": "1", "y": "1"}, "x", "helm", "y", "kubectl"), as("kubectl"))
	b.add(maps, event.Updated, "shop", "a", managed(obj{"x": "1", "y": "1"}), managed(obj{"x": "2", "y": "2"}, "x", "helm", "y", "kubectl"), as("?"))
	b.add(maps, event.Deleted, "shop", "a", managed(obj{"x": "2", "y": "2"}, "x", "helm", "y", "kubectl"), nil)
	path := b.close()
	for manager, want := range map[string]string{
		"helm": "created a, updated a", "kubectl": "updated a, updated a", "hel": "", "?": "deleted a",
		"hel*": "created a, updated a", "kube*": "updated a, updated a", "[h-k]*": "created a, updated a, updated a",
	} {
		out, _, err := play(t, path, Options{Options: selection.Options{Managers: []string{manager}}})
		if err != nil || summarizeEvents(t, out) != want {
			t.Errorf("%s: %q, %v", manager, summarizeEvents(t, out), err)
		}
	}
}

func TestText(t *testing.T) {
	out, _, err := play(t, recorded(t), Options{Options: selection.Options{Types: []string{"cm"}}, Output: "text"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+ shop     cm/a", "~ shop     cm/a", `data.k: "1" → "2"`, "- shop     cm/a"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestOneline(t *testing.T) {
	path := recorded(t)
	out, _, err := play(t, path, Options{Output: "oneline"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out) {
		id, rest, _ := strings.Cut(line, " ")
		if len(id) != 8 {
			t.Errorf("an id of %d characters: %q", len(id), line)
		}
		got = append(got, strings.Join(strings.Fields(rest), " "))
	}
	want := []string{
		"2026-03-01T10:01:00Z + shop cm/a ?",
		`2026-03-01T10:02:00Z ~ shop cm/a data.k: "1" → "2" ?`,
		"2026-03-01T10:04:00Z + pay widget/w ?",
		"2026-03-01T10:05:00Z - shop cm/a ?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	noisy, _, err := play(t, path, Options{Options: selection.Options{Noise: true}, Output: "oneline"})
	if err != nil || strings.Count(noisy, "\n") != 5 {
		t.Errorf("with what is quiet:\n%s%v", noisy, err)
	}
}

// status returns a widget with a status.
func status(phase string) obj { return obj{"status": obj{"phase": phase}} }

// TestFolding plays back a changing state: its line has the time at which watch would have printed it, not the time of the
// next change, nor the present time.
func TestFolding(t *testing.T) {
	b := newBook(t, start)
	b.add(widgets, event.Created, "pay", "w", nil, status("a"))
	b.at = start.Add(time.Minute)
	b.add(widgets, event.Updated, "pay", "w", status("a"), status("b"))
	b.add(widgets, event.Updated, "pay", "w", status("b"), status("c"))
	b.at = start.Add(30 * time.Minute)
	b.add(maps, event.Created, "pay", "m", nil, data("1"))
	b.add(widgets, event.Updated, "pay", "w", status("c"), status("d"))
	path := b.close()
	lines := func(o Options) []string {
		t.Helper()
		o.Output = "text"
		out, _, err := play(t, path, o)
		if err != nil {
			t.Fatal(err)
		}
		var heads []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); strings.HasPrefix(line, "2026-") {
				heads = append(heads, strings.Join([]string{strings.TrimPrefix(f[0], "2026-03-01T"), f[1], f[3]}, " "))
			}
		}
		return heads
	}
	folded := []string{"10:00:00Z + widget/w", "10:01:00Z · widget/w", "10:30:00Z + cm/m", "10:30:00Z · widget/w"}
	each := []string{"10:00:00Z + widget/w", "10:01:00Z ~ widget/w", "10:01:00Z ~ widget/w", "10:30:00Z + cm/m", "10:30:00Z ~ widget/w"}
	updates := []string{"10:01:00Z ~ widget/w", "10:01:00Z ~ widget/w", "10:30:00Z ~ widget/w"}
	for _, tc := range []struct {
		why  string
		o    Options
		want []string
	}{
		{"folded", Options{}, folded},
		{"without a limit", Options{Limit: -1}, folded},
		{"each", Options{Flat: true}, each},
		{"a partial selection has no summaries", Options{Options: selection.Options{Ops: []string{"updated"}}}, updates},
		{"nor has one without controllers", Options{Options: selection.Options{Humans: true}}, []string{folded[0], folded[2]}},
		{"before it changed", Options{Options: selection.Options{Until: "10:01"}}, folded[:1]},
		{"the end of the time range ends a fold", Options{Options: selection.Options{Until: "10:02"}}, folded[:2]},
	} {
		if diff := cmp.Diff(tc.want, lines(tc.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

// TestOrder prints a cause before its effect, although kinds are recorded as their streams arrive.
func TestOrder(t *testing.T) {
	b := newBook(t, start)
	version := func(v string) func(*journal.Row) { return func(r *journal.Row) { r.ResourceVersion = v } }
	b.add(maps, event.Created, "shop", "effect", nil, data("1"), version("12"))
	b.at = b.at.Add(5 * time.Millisecond)
	b.add(widgets, event.Created, "shop", "cause", nil, data("1"), version("9"))
	b.at = b.at.Add(time.Second)
	b.add(maps, event.Created, "shop", "later", nil, data("1"), version("5"))
	out, _, err := play(t, b.close(), Options{Output: "text"})
	cause, effect, later := strings.Index(out, "widget/cause"), strings.Index(out, "cm/effect"), strings.Index(out, "cm/later")
	if err != nil || cause < 0 || cause > effect || effect > later {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestDates: a time of another day has its date, in the reader's time zone.
func TestDates(t *testing.T) {
	path := recorded(t)
	zone := time.FixedZone("there", 2*60*60)
	for _, tc := range []struct {
		now  time.Time
		want string
	}{
		{start.Add(time.Hour).In(zone), "\n12:05:00 - shop"},
		{start.Add(24 * time.Hour).In(zone), "\n2026-03-01 12:05:00 - shop"},
	} {
		out, _, err := play(t, path, Options{Output: "text", Now: func() time.Time { return tc.now }, IO: &terminal.IO{OutTTY: true, Width: func() int { return 100 }}})
		if err != nil || !strings.Contains(out, tc.want) {
			t.Errorf("no %q, %v, in\n%s", tc.want, err, out)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("colours that were not asked for:\n%q", out)
		}
	}
}

// TestNarrow: every line fits a narrow terminal.
func TestNarrow(t *testing.T) {
	path := recorded(t)
	for _, format := range []string{"text", "oneline"} {
		for _, width := range []int{30, 40, 80} {
			out, _, err := play(t, path, Options{Output: format, IO: &terminal.IO{OutTTY: true, Color: false, Width: func() int { return width }}})
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
					t.Errorf("%s, %d columns: %d in %q", format, width, n, line)
				}
			}
		}
	}
}

// TestDamage: two unreadable changes become notices, the others are printed, and the verb fails.
func TestDamage(t *testing.T) {
	b := newBook(t, start)
	b.add(maps, event.Created, "shop", "good", nil, data("1"))
	b.add(maps, event.Created, "shop", "garbage", nil, data("1"), func(r *journal.Row) { r.After = []byte("{") })
	b.add(maps, event.Created, "shop", "flipped", nil, data("1"))
	b.add(maps, event.Deleted, "shop", "flipped", data("1"), nil)
	b.add(maps, event.Created, "shop", "fine", nil, data("1"))
	path := b.close()
	exec(t, path, "UPDATE contents SET before = x'00000000007b7d' WHERE seq IN (SELECT seq FROM changes WHERE op = 4)")
	for _, format := range []string{"json", "text", "oneline"} {
		for _, o := range []Options{{}, {Limit: -1}, {Options: selection.Options{Objects: selection.Objects{Labels: "!x"}}}} {
			o.Output = format
			out, said, err := play(t, path, o)
			if err == nil || !strings.Contains(err.Error(), "3 changes cannot be shown; tattler journal verify") {
				t.Errorf("%s: %v", format, err)
			}
			all := out + said
			if strings.Count(all, "cannot be shown") != 3 || !strings.Contains(out, "good") || !strings.Contains(out, "fine") || strings.Contains(all, "no such change") {
				t.Errorf("%s:\n%s\n%s", format, out, said)
			}
		}
	}
}

// exec changes a journal directly in SQLite.
func exec(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// closedPipe is a pipe whose reader has closed it.
type closedPipe struct{ writes int }

func (p *closedPipe) Write([]byte) (int, error) {
	p.writes++
	return 0, &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// TestClosedPipe: the verb ends at the first write, and the caller recognizes the error.
func TestClosedPipe(t *testing.T) {
	path := recorded(t)
	for _, format := range []string{"text", "oneline", "json", "yaml"} {
		var out closedPipe
		_, said, err := play(t, path, Options{Output: format, IO: &terminal.IO{Out: &out, Width: func() int { return 0 }}})
		if !errors.Is(err, syscall.EPIPE) || out.writes != 1 || said != "" {
			t.Errorf("%s: %v after %d writes, %q", format, err, out.writes, said)
		}
	}
}

// purging is an output that purges the journal before the first write.
type purging struct {
	bytes.Buffer
	purge func()
}

func (p *purging) Write(b []byte) (int, error) {
	if p.purge != nil {
		p.purge()
		p.purge = nil
	}
	return p.Buffer.Write(b)
}

// TestPurgedWhileRead: a list in which changes are missing, because they were removed while it was made, says so. One that
// does not reach back to them does not.
func TestPurgedWhileRead(t *testing.T) {
	for _, tc := range []struct {
		why   string
		o     Options
		until int // the purge removes so many changes
		says  bool
	}{
		{"the oldest first", Options{Limit: -1}, 500, true},
		{"everything is removed", Options{Limit: -1}, 600, true},
		{"as lines", Options{Limit: -1, Output: "oneline"}, 500, true},
		{"only the newest", Options{Limit: 20}, 500, false},
		{"only later ones", Options{Options: selection.Options{Since: start.Add(510 * time.Second).Format(time.RFC3339)}, Limit: -1}, 500, false},
		{"nothing is removed", Options{Limit: -1}, 0, false},
	} {
		t.Run(tc.why, func(t *testing.T) {
			b := newBook(t, start)
			var rows []journal.Row
			for i := range 600 { // more than one page of the reader
				rows = append(rows, b.row(maps, event.Created, "shop", fmt.Sprint("a", i), nil, data("1")))
				b.at = b.at.Add(time.Second)
			}
			b.append(rows...)
			out := &purging{purge: func() {
				if tc.until > 0 {
					if err := b.j.Purge(t.Context(), journal.Purge{Until: start.Add(time.Duration(tc.until) * time.Second)}, nil); err != nil {
						t.Error(err)
					}
				}
			}}
			tc.o.IO = &terminal.IO{Out: out, Width: func() int { return 0 }}
			_, said, err := playOnce(t, b.path, tc.o)
			if says := strings.Contains(said, "were removed from the journal while it was read"); err != nil || says != tc.says {
				t.Errorf("%d lines, %v, %q", strings.Count(out.String(), "\n"), err, said)
			}
			b.close()
		})
	}
}

// TestManyQuiet: only maxQuiet changes are counted, without reading their objects.
func TestManyQuiet(t *testing.T) {
	b := newBook(t, start)
	rows := make([]journal.Row, maxQuiet+1)
	for i := range rows {
		rows[i].Meta = journal.Meta{Op: event.Left, Kind: maps, Namespace: "shop", Name: fmt.Sprint("q", i), UID: fmt.Sprint("q", i), ResourceVersion: fmt.Sprint(100 + i), Time: start, At: start, Quiet: true}
	}
	b.add(maps, event.Created, "shop", "a", nil, data("1"))
	if _, err := b.j.Append(t.Context(), []journal.Batch{{Stream: journal.Stream{GroupResource: "configmaps"}, Head: journal.Head{Version: "9", Live: true, At: start}, Rows: rows}}); err != nil {
		t.Fatal(err)
	}
	b.add(maps, event.Deleted, "shop", "a", data("1"), nil)
	path := b.close()
	for _, limit := range []int{50, -1} {
		out, said, err := play(t, path, Options{Limit: limit})
		if err != nil || summarizeEvents(t, out) != "created a, deleted a" || !strings.Contains(said, "5000 quiet changes or more not shown") {
			t.Errorf("%d: %s%s%v", limit, out, said, err)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	path := recorded(t)
	for _, tc := range []struct {
		why   string
		o     Options
		want  string
		usage bool
	}{
		{"no time", Options{Options: selection.Options{Since: "noon"}}, "--since: \"noon\" is not a time", true},
		{"times the wrong way round", Options{Options: selection.Options{Since: "10:05", Until: "10:02"}}, "--since is not before --until", true},
		{"an operation", Options{Options: selection.Options{Ops: []string{"delete"}}}, "use created, updated, deleted", true},
		{"a glob of managers", Options{Options: selection.Options{Managers: []string{"["}}}, "--manager: \"[\" is not a valid pattern", true},
		{"a path", Options{Options: selection.Options{Paths: []string{"a..b"}}}, "--path", true},
		{"an expression", Options{Options: selection.Options{Where: "op = 1"}}, "--where", true},
		{"a format", Options{Output: "xml"}, "use text, oneline, json or yaml", true},
		{"a limit", Options{Limit: -2}, "--limit", true},
		{"a glob", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"["}}}}, "invalid namespace pattern", true},
		{"both", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"a"}, All: true}}}, "exclude each other", true},
		{"a label selector", Options{Options: selection.Options{Objects: selection.Objects{Labels: "a=("}}}, "invalid label selector", true},
		{"a field selector", Options{Options: selection.Options{Objects: selection.Objects{Fields: "a"}}}, "invalid field selector", true},
		{"a field that only servers know", Options{Options: selection.Options{Objects: selection.Objects{Fields: "status.phase=Running"}}}, "for status.phase say --where", true},
		{"an end with -f", Options{Options: selection.Options{Until: "10:02"}, Follow: true}, "--until and -f exclude each other", true},
		{"an unset variable", Options{Options: selection.Options{Managers: []string{""}}}, "--manager: an empty name", true},
		{"a kind", Options{Options: selection.Options{Types: []string{"widgetts"}}}, `did you mean "widgets"?`, false},
		{"an empty type", Options{Options: selection.Options{Types: []string{"cm,"}}}, "has an empty type", true},
		{"half a name", Options{Options: selection.Options{Types: []string{"cm/"}}}, "is not TYPE/NAME", true},
		{"no journal", Options{}, "start tattler run", false},
		{"a folder", Options{}, "is not a regular file", false},
		{"not SQLite", Options{}, "the file is not a SQLite database", false},
		{"a newer program's", Options{}, "which a newer tattler made", false},
		{"of another program", Options{}, "is not a journal", false},
	} {
		at := path
		switch tc.why {
		case "no journal":
			at = filepath.Join(t.TempDir(), "none.db")
		case "a folder":
			at = t.TempDir()
		case "not SQLite":
			at = filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(at, bytes.Repeat([]byte("hello "), 100), 0o600); err != nil {
				t.Fatal(err)
			}
		case "a newer program's":
			at = recorded(t)
			exec(t, at, "PRAGMA user_version = 99")
		case "of another program":
			at = recorded(t)
			exec(t, at, "PRAGMA application_id = 17")
		}
		_, _, err := play(t, at, tc.o)
		var wrong *usage.Error
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &wrong) != tc.usage {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// TestEmptyJournal: an empty journal is not mistaken for a quiet cluster.
func TestEmptyJournal(t *testing.T) {
	out, said, err := play(t, newBook(t, start).close(), Options{})
	if err != nil || out != "" || said != "the journal is empty\n" {
		t.Errorf("%q, %q, %v", out, said, err)
	}
}

// TestPathOfNewObjects: --path prints the selected values of created and deleted objects, in text and oneline output.
func TestPathOfNewObjects(t *testing.T) {
	path := recorded(t)
	for output, want := range map[string][]string{
		text:    {"+ pay widget/w ? + data.k: \"1\"", "- shop cm/a ? - data.k: \"2\""},
		oneline: {"+ pay", "data.k: \"1\""},
	} {
		out, _, err := play(t, path, Options{Options: selection.Options{Paths: []string{"data.k"}}, Output: output})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%s: no %q in\n%s", output, w, out)
			}
		}
		if strings.Contains(out, "app: web") {
			t.Errorf("%s: more than was asked for:\n%s", output, out)
		}
	}
}
