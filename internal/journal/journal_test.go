package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/delta"
)

var pods = Stream{GroupResource: "pods"}

// pod returns a change of pod web to a version.
func pod(op event.Op, version int) Row {
	at := epoch.Add(time.Duration(version) * time.Second)
	r := Row{Meta: Meta{Op: op, Kind: podKind, Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: strconv.Itoa(version), Time: at, At: at}}
	if op != event.Snapshot && op != event.Created && op != event.Entered {
		r.Before = []byte(fmt.Sprintf(`{"kind":"Pod","version":%d}`, version-1))
	}
	if leaves(op) {
		r.After = []byte(fmt.Sprintf(`{"kind":"Pod","version":%d}`, version))
	}
	return r
}

func add(t *testing.T, j *Journal, rows ...Row) Appended {
	t.Helper()
	a, err := j.Append(t.Context(), []Batch{{Stream: pods, Head: Head{Version: "9", At: epoch}, Rows: rows}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// contents returns the contents before and after each change of a journal.
func contents(t *testing.T, path string) (all []string) {
	t.Helper()
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := e.Contents(t.Context())
		if errors.Is(err, ErrPurged) {
			before, err = []byte("(purged)"), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d %s %s -> %s", e.Seq, e.Op, before, after))
	}
	return all
}

func TestFilesAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "prod")
	path := filepath.Join(dir, "journal.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	add(t, open(t, path), pod(event.Created, 1))
	for name, want := range map[string]fs.FileMode{"": 0o700 | fs.ModeDir, "journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600, "journal.db.lock": 0o600} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode() != want {
			t.Errorf("%q has mode %v, %v; want %v", name, fi.Mode(), err, want)
		}
	}
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.db")
	j := open(t, newer)
	if err := errors.Join(j.db.script("PRAGMA user_version = 99"), j.Close()); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(dir, "older.db")
	j = open(t, older)
	must(t, j.db.script("PRAGMA user_version = 4"), j.Close())
	other := filepath.Join(dir, "other.db")
	c, err := sqlite3.Open("file:" + other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec("CREATE TABLE t (x)"), c.Close()); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database at all\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{newer: "newer tattler", older: "starts a new journal", other: "not a journal", text: "not a SQLite database"} {
		before, _ := os.ReadFile(path)
		for who, open := range map[string]func() error{
			"the writer": func() error { _, err := Open(t.Context(), path, Options{}); return err },
			"a reader":   func() error { _, err := OpenReader(t.Context(), path); return err },
		} {
			if err := open(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s opens %s: %v, want %q", who, filepath.Base(path), err, want)
			}
		}
		if after, _ := os.ReadFile(path); path == text && string(after) != string(before) {
			t.Errorf("%s was written to", path)
		}
	}
	if _, err := OpenReader(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("a reader made a file")
	}
}

func TestClusterStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, pod(event.Created, 1))
	j.Close()
	j, err := Open(t.Context(), path, Options{Cluster: "renamed"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Cluster() != "prod" || add(t, j, pod(event.Created, 1)).Duplicates != 1 {
		t.Errorf("a journal of prod is now one of %s", j.Cluster())
	}
}

func TestClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	changed := j.Changed()
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Close(), j.Close(), r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	<-changed
	ctx := t.Context()
	_, appendErr := j.Append(ctx, nil)
	_, _, headErr := j.Head(ctx, pods)
	_, retainErr := j.Retain(ctx, epoch, Retention{Age: 1}, 1)
	_, lastErr := r.Last(ctx)
	for what, err := range map[string]error{"append": appendErr, "head": headErr, "retain": retainErr, "reader": lastErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, err := range j.Objects(ctx, pods) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("objects: %v", err)
		}
	}
}

func TestChanged(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	first := j.Changed()
	if _, err := j.Append(t.Context(), []Batch{{Stream: pods, Head: Head{Version: "5", At: epoch}}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first:
		t.Error("a commit without changes wakes readers")
	default:
	}
	add(t, j, pod(event.Created, 1))
	<-first
	select {
	case <-j.Changed():
		t.Error("the next channel is closed already")
	default:
	}
}

func TestInvalidRows(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for why, spoil := range map[string]func(*Row){
		"no operation":           func(r *Row) { r.Op = "renamed" },
		"no time":                func(r *Row) { r.Time = time.Time{} },
		"no time of observation": func(r *Row) { r.At = time.Time{} },
		"more than any object":   func(r *Row) { r.After = make([]byte, delta.MaxSize+1) },
		"no after":               func(r *Row) { r.After = nil },
		"a deletion with after":  func(r *Row) { r.Op = event.Deleted },
		"a gap without GapInfo":  func(r *Row) { r.Op, r.After = event.Gap, nil },
		"a gap with an object":   func(r *Row) { r.Op, r.Gap = event.Gap, &event.GapInfo{} },
		"a creation with a gap":  func(r *Row) { r.Gap = &event.GapInfo{} },
	} {
		bad := pod(event.Created, 1)
		spoil(&bad)
		if _, err := j.Append(t.Context(), []Batch{{Stream: pods, Rows: []Row{pod(event.Created, 3), bad}}}); err == nil {
			t.Errorf("%s: accepted", why)
		}
	}
	if last, err := j.Last(t.Context()); last != 0 || err != nil {
		t.Errorf("%d changes were written, %v", last, err)
	}
}

// TestDuplicates has the cases in which an id repeats.
func TestDuplicates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	missed := pod(event.Deleted, 3)
	missed.ResourceVersion = "2" // the last known version
	for _, c := range []struct {
		why  string
		rows []Row
		want Appended
		live string
	}{
		{"new", []Row{pod(event.Created, 1), pod(event.Updated, 2)}, Appended{2, 0, 0, 2}, "2"},
		{"the same again, as after a commit that was not acknowledged", []Row{pod(event.Created, 1), pod(event.Updated, 2)}, Appended{0, 0, 2, 2}, "2"},
		{"a deletion with the version of an update is another change", []Row{missed}, Appended{1, 0, 0, 3}, ""},
		{"the same again", []Row{missed}, Appended{0, 0, 1, 3}, ""},
		{"entered after all", []Row{pod(event.Entered, 5)}, Appended{1, 0, 0, 4}, "5"},
		{"history was replaced: a version that was there before", []Row{pod(event.Updated, 2)}, Appended{0, 0, 1, 4}, "2"},
		{"the next version", []Row{pod(event.Updated, 3)}, Appended{1, 0, 0, 5}, "3"},
	} {
		if got := add(t, j, c.rows...); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
		live := ""
		for o, err := range j.Objects(t.Context(), pods) {
			if err != nil {
				t.Fatal(err)
			}
			if live += o.ResourceVersion; !strings.HasSuffix(string(o.JSON), live+"}") {
				t.Errorf("%s: version %s is %s", c.why, o.ResourceVersion, o.JSON)
			}
		}
		if live != c.live {
			t.Errorf("%s: live is %q, want %q", c.why, live, c.live)
		}
	}
	want := []string{
		`1 created  -> {"kind":"Pod","version":1}`, `2 updated {"kind":"Pod","version":1} -> {"kind":"Pod","version":2}`,
		`3 deleted {"kind":"Pod","version":2} -> `, `4 entered  -> {"kind":"Pod","version":5}`,
		`5 updated {"kind":"Pod","version":2} -> {"kind":"Pod","version":3}`,
	}
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Error(d)
	}
}

// TestChainIsShort updates one object often: reading any change takes a bounded number of others.
func TestChainIsShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, pod(event.Created, 1))
	const n = 5 * wholeEvery
	var rows []Row
	for v := 2; v <= n; v++ {
		r := pod(event.Updated, v)
		r.Quiet = v%9 != 0
		rows = append(rows, r)
	}
	add(t, j, rows...)
	short := func(when string) {
		t.Helper()
		for seq := int64(1); seq <= n; seq++ {
			links, _, err := j.db.chain(1, seq)
			if err != nil && !errors.Is(err, ErrNotFound) || len(links) > wholeEvery {
				t.Fatalf("%s: change %d takes %d others, %v", when, seq, len(links), err)
			}
		}
	}
	short("as written")
	if got, err := j.Retain(t.Context(), epoch, Retention{Size: 1}, n-100); err != nil || got.Removed != n-100 {
		t.Fatalf("%+v, %v", got, err)
	}
	short("without old ones")
	j.quietAt = 0
	p := pruner{j: j, done: &Retained{}}
	if err := j.write(t.Context(), "shrink", func() error { return p.step(epoch, Retention{Size: 1}, n) }); err != nil || p.quiet < 80 {
		t.Fatalf("%d quiet changes were removed, %v", p.quiet, err)
	}
	short("without quiet ones")
	for i, got := range contents(t, path) {
		v := (n-100)/9*9 + 9*(i+1)
		if want := fmt.Sprintf(`%d updated {"kind":"Pod","version":%d} -> {"kind":"Pod","version":%d}`, v, v-1, v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, pod(event.Created, 1), pod(event.Updated, 2))
	before := contents(t, path)
	if err := errors.Join(j.Forget(t.Context(), pods), j.Forget(t.Context(), Stream{GroupResource: "unknown"})); err != nil {
		t.Fatal(err)
	}
	for o, err := range j.Objects(t.Context(), pods) {
		t.Errorf("%s is live, %v", o.Name, err)
	}
	if _, ok, err := j.Head(t.Context(), pods); ok || err != nil {
		t.Errorf("the stream is known, %v", err)
	}
	if d := cmp.Diff(before, contents(t, path)); d != "" {
		t.Error(d)
	}
	// It is watched again, and has changed.
	add(t, j, pod(event.Snapshot, 7))
	if d := cmp.Diff(append(before, `3 snapshot  -> {"kind":"Pod","version":7}`), contents(t, path)); d != "" {
		t.Error(d)
	}
}

func TestContextHasEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(ctx, []Batch{{Stream: pods, Rows: []Row{pod(event.Created, 1)}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if last, err := j.Last(t.Context()); last != 0 || err != nil {
		t.Errorf("%d, %v", last, err)
	}
	if got, err := j.Retain(ctx, epoch, Retention{Age: 1}, 1); err != nil || got.Removed != 0 {
		t.Errorf("retain: %+v, %v", got, err)
	}
}
