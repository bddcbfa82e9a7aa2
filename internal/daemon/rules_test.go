package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/rules"
)

var hideGreeting = rules.Rule{Resources: []string{"configmaps"}, Paths: []string{"data.k"}}

// marker matches the replacement of a hidden value.
var marker = regexp.MustCompile(`hidden #[0-9a-f]{16}`)

// TestOtherRules continues recording under other redaction rules: no change is invented, earlier changes read
// the same, and later changes do not show newly hidden values.
func TestOtherRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		key := redact.NewRandomKey()
		use := func(user ...rules.Rule) {
			var err error
			if r.redactor, err = redact.New(key, user); err != nil {
				t.Fatal(err)
			}
		}
		use()
		r.put("a", "s3cret-1")
		r.put("b", "s3cret-b")
		r.put("c", "s3cret-c")
		r.during(func() { r.put("a", "s3cret-2") })
		use(hideGreeting)
		r.during(func() { r.put("a", "s3cret-3") })
		r.during(func() { r.put("a", "s3cret-4") })
		use()
		r.put("b", "s3cret-5") // while no daemon records
		r.during(func() { r.put("a", "s3cret-6") })
		use(hideGreeting)
		r.put("b", "s3cret-7")
		r.server.Delete(configMaps, "shop", "c")
		r.during(func() {})
		want := []string{
			"snapshot a", "snapshot b", "snapshot c", "updated a data.k s3cret-1→s3cret-2",
			"updated a data.k *→*", "updated a data.k *→*",
			"gap redaction rules changed", "updated b data.k *→s3cret-5", // the hidden value is unknown
			"updated a data.k s3cret-4→s3cret-6",
			"gap redaction rules changed", "updated b data.k *→*", "deleted c",
		}
		changes := r.changes()
		slices.Sort(changes[:3]) // a list has no order
		for i := range changes {
			changes[i] = marker.ReplaceAllString(changes[i], "*")
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(changes, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.shows(t, 5, 6, false)
		r.shows(t, 10, 12, false)
	})
}

// shows reports whether the changes recorded between two numbers show a value, by checking all content.
func (r *rig) shows(t *testing.T, from, to int64, want bool) {
	t.Helper()
	reader, err := journal.OpenReader(t.Context(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for e, err := range reader.Rows(t.Context(), journal.Query{After: from - 1, Before: to + 1, Quiet: true, Snapshots: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := e.Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(append(before, after...), []byte("s3cret")); got != want {
			t.Errorf("change %d (%s %s): it shows a value: %v\n%s\n%s", e.Seq, e.Op, e.Name, got, before, after)
		}
	}
}

// TestPurgeOtherRules is the whole procedure: a daemon that shows a value, one whose rules hide it and that
// warns, the purge, and a daemon without a warning.
func TestPurgeOtherRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		path := filepath.Join(dir, "journal.db")
		run := func(f func(), user ...rules.Rule) string {
			var log bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, Options{
					Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
					Journal: path, Key: filepath.Join(dir, "key"), Redact: user, Log: slog.New(slog.NewTextHandler(&log, nil)), listen: nowhere,
				})
			}()
			synctest.Wait()
			f()
			synctest.Wait()
			<-time.After(2 * time.Second)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			return log.String()
		}
		r.put("a", "s3cret")
		if said := run(func() { r.put("a", "s3cret too") }); strings.Contains(said, "purge") {
			t.Errorf("the first run: %s", said)
		}
		said := run(func() { r.put("a", "s3cret, too") }, hideGreeting)
		if !strings.Contains(said, "changes=2 ") || !strings.Contains(said, "tattler journal purge --older-rules --journal") || strings.Contains(said, "s3cret") {
			t.Errorf("under other rules: %s", said)
		}
		j, err := journal.Open(t.Context(), path, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Purge(t.Context(), journal.Purge{OtherRules: true}, nil), j.Close()); err != nil {
			t.Fatal(err)
		}
		r.disk(dir, "s3cret")
		if said := run(func() { r.put("a", "s3cret, still") }, hideGreeting); strings.Contains(said, "purge") {
			t.Errorf("after the purge: %s", said)
		}
		r.path = path
		changes := r.changes()
		if len(changes) != 2 || !strings.HasPrefix(changes[0], "updated a") || !strings.HasPrefix(changes[1], "updated a") {
			t.Errorf("got %q", changes)
		}
		r.disk(dir, "s3cret")
	})
}

// disk looks for a text in all files of a directory.
func (r *rig) disk(dir, text string) {
	r.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil && bytes.Contains(b, []byte(text)) {
			r.Errorf("%s has %q", f.Name(), text)
		}
	}
}

// TestKeptDamaged damages the last state of an object in the file: that is logged, the state is not used, its
// stream lists, and then it is complete again.
func TestKeptDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		r.put("a", "1")
		r.put("b", "1")
		if err := r.run(dir, func() {}); err != nil {
			t.Fatal(err)
		}
		r.path = filepath.Join(dir, "journal.db")
		harm(t, r.path)
		r.put("b", "2") // while no daemon records
		sink := &failing{}
		again := func() { // first, the unreadable state is requested again
			<-time.After(10 * time.Second)
			synctest.Wait()
			r.put("a", "2")
		}
		if err := r.run(dir, again, deliver.Options{Name: "s", Sink: sink}); err != nil {
			t.Fatal(err)
		}
		reader, err := journal.OpenReader(t.Context(), r.path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		var got []string
		for e, err := range reader.Rows(t.Context(), journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Op == event.Absent {
				continue
			}
			line := string(e.Op) + " " + e.Name
			if _, _, err := e.Contents(t.Context()); err != nil {
				var damage *journal.DamagedError
				if line += " (damaged)"; !errors.As(err, &damage) {
					t.Errorf("%s: %v", line, err)
				}
			}
			got = append(got, line)
		}
		if len(got) != 5 || len(sink.lines) != 3 {
			t.Fatalf("recorded %q, delivered %q", got, sink.lines)
		}
		slices.Sort(got[:2]) // the results of one list have no order
		// The version that is read again repairs the change that led to it.
		want := []string{"snapshot a", "snapshot b", "gap ", "updated b", "updated a"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[2:], sink.lines); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		j, err := journal.Open(t.Context(), r.path, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		n := 0
		for o, err := range j.Objects(t.Context(), journal.Stream{GroupResource: "configmaps"}) {
			if n++; err != nil || !bytes.Contains(o.JSON, []byte(`"k":"2"`)) {
				t.Errorf("%s: %s, %v", o.Name, o.JSON, err)
			}
		}
		if n != 2 {
			t.Errorf("%d objects", n)
		}
	})
}

// harm changes the last state of a, without the page checksums noticing.
func harm(t *testing.T, path string) {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Exec("UPDATE live SET content = substr(content, 1, 9) || x'ff' || substr(content, 11) WHERE object = (SELECT id FROM objects WHERE name = 'a')")
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestEarlierBuiltInRules: what was recorded under an earlier version of the built-in rules, which left credentials
// after a slash visible, is counted, and purged.
func TestEarlierBuiltInRules(t *testing.T) {
	redactor, err := redact.New(redact.NewRandomKey(), nil)
	if err != nil {
		t.Fatal(err)
	}
	version, rest, _ := strings.Cut(strings.TrimPrefix(redactor.Fingerprint(), "redact-"), "-")
	if n, err := strconv.Atoi(version); err != nil || n < 7 {
		t.Fatalf("the fingerprint is %s: the version of the rules must be above 6", redactor.Fingerprint())
	}
	j, err := journal.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	at := time.Unix(1_800_000_000, 0)
	record := func(rules, version string) journal.Uncovered {
		u, err := j.Rules(t.Context(), rules, at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(t.Context(), []journal.Batch{{
			Stream: journal.Stream{GroupResource: "configmaps"},
			Head:   journal.Head{Version: version, Live: true, EverLive: true, Pipeline: rules, At: at},
			Rows: []journal.Row{{After: []byte(`{"data":{"a":"x"}}`), Meta: journal.Meta{
				Op: event.Created, Kind: journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
				Namespace: "shop", Name: "a" + version, UID: "u" + version, ResourceVersion: version, Time: at, At: at,
			}}},
		}}); err != nil {
			t.Fatal(err)
		}
		return u
	}
	record("redact-6-"+rest, "1")
	if u := record(redactor.Fingerprint(), "2"); u.Changes != 1 {
		t.Errorf("%d changes are counted as recorded under other rules, want 1", u.Changes)
	}
	if err := j.Purge(t.Context(), journal.Purge{OtherRules: true}, nil); err != nil {
		t.Fatal(err)
	}
	if u, err := j.Rules(t.Context(), redactor.Fingerprint(), at); err != nil || u.Changes != 0 {
		t.Errorf("%d changes of other rules are left, %v", u.Changes, err)
	}
}
