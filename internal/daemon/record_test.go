package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/sink"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// rig records the changes of a server into a journal.
type rig struct {
	*testing.T
	server   *informertest.Server
	path     string
	redactor *redact.Redactor
	rules    *quiet.Set

	namespaces selection.Namespaces
	labels     string
	recorded   func(seq int64, v capture.Version)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		T: t, server: informertest.NewServer(), path: filepath.Join(t.TempDir(), "journal.db"),
		recorded: func(int64, capture.Version) {},
	}
	r.server.Serve(configMaps, "ConfigMap")
	var err error
	if r.redactor, err = redact.New(redact.NewRandomKey(), nil); err != nil {
		t.Fatal(err)
	}
	if r.rules, err = quiet.New(); err != nil {
		t.Fatal(err)
	}
	return r
}

// put writes a ConfigMap.
func (r *rig) put(name, value string) {
	r.server.Put(configMaps, "shop", name, map[string]any{"data": map[string]any{"k": value}})
}

// during records while f runs, and until everything has settled.
func (r *rig) during(f func()) {
	r.Helper()
	r.with(func(*journal.Journal) { f() }, func(err error) { r.Error(err) })
}

// with is during for tests that inspect or break the journal.
func (r *rig) with(f func(*journal.Journal), failed func(error)) {
	r.Helper()
	j, err := journal.Open(r.Context(), r.path, journal.Options{Cluster: "test"})
	if err != nil {
		r.Fatal(err)
	}
	k, err := newKept(r.Context(), j, "", slog.New(slog.DiscardHandler))
	if err != nil {
		r.Fatal(err)
	}
	w, err := capture.New(capture.Options{Scopes: []capture.Scope{{Types: []string{"configmaps"}, Namespaces: r.namespaces, Labels: r.labels}}, Config: r.server.Config(), Redactor: r.redactor, Quiet: r.rules, Kept: k})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 2)
	rec := &recorder{journal: j, state: &state{}, recorded: r.recorded, onMessage: func(m capture.Message) {
		if m.Problem != nil {
			r.Error(m.Problem)
		}
	}}
	go func() { ended <- w.Run(ctx) }()
	go func() {
		rec.run(context.WithoutCancel(ctx), w.Messages(), failed)
		ended <- nil
	}()
	synctest.Wait()
	f(j)
	synctest.Wait()
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			r.Error(err)
		}
	}
	if err := j.Close(); err != nil {
		r.Error(err)
	}
}

// changes reads the journal, oldest first.
func (r *rig) changes() []string {
	r.Helper()
	reader, err := journal.OpenReader(r.Context(), r.path)
	if err != nil {
		r.Fatal(err)
	}
	defer reader.Close()
	tell := history.New(reader, r.rules)
	var lines []string
	for e, err := range reader.Rows(r.Context(), journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			r.Fatal(err)
		}
		c, err := tell.Change(r.Context(), &e)
		if err != nil {
			r.Fatal(err)
		}
		if c.Op == event.Absent {
			continue
		}
		line := string(c.Op) + " " + c.Name
		if c.Op == event.Gap {
			line += c.Gap.Reason
		}
		for _, f := range c.Fields {
			if !f.Quiet {
				line += fmt.Sprintf(" %s %v→%v", f.Path, f.From, f.To)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("a", "1")
		r.during(func() {
			r.put("a", "2")
			r.put("b", "1")
			r.server.Delete(configMaps, "shop", "b")
		})
		r.put("a", "3") // while no daemon records
		r.put("a", "4")
		r.during(func() { r.put("a", "5") })
		r.during(func() {})
		r.put("a", "6")
		r.put("a", "7")
		r.server.Compact()
		r.during(func() {})
		want := []string{
			"snapshot a", "updated a data.k 1→2", "created b", "deleted b",
			"updated a data.k 2→3", "updated a data.k 3→4", "updated a data.k 4→5",
			"gap expired", "updated a data.k 5→7",
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(r.changes(), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestReadyOnceWritten: a process that is killed right after Ready finds the existing objects in the journal.
func TestReadyOnceWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	ready, written := 0, 0
	rec := &recorder{journal: j, state: &state{}, recorded: func(int64, capture.Version) {}, onMessage: func(m capture.Message) {
		if m.Ready == nil {
			return
		}
		ready++
		reader, err := journal.OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		for _, err := range reader.Rows(t.Context(), journal.Query{Snapshots: true}) {
			if err != nil {
				t.Fatal(err)
			}
			written++
		}
	}}
	kind := change.Resource{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	batch := &capture.Batch{Stream: capture.Stream{Resource: kind}, Version: "5", Epoch: 1, Live: true, At: time.Unix(1_700_000_000, 0)}
	for i := range 3 {
		batch.Changes = append(batch.Changes, capture.Version{AfterJSON: []byte("{}"), Change: change.Change{
			Meta:  change.Meta{Op: event.Snapshot, Kind: kind.ID(), Namespace: "shop", Name: fmt.Sprint(i), UID: fmt.Sprint(i), ResourceVersion: "5", At: batch.At, Time: batch.At},
			Names: kind.Names(),
		}})
	}
	messages := make(chan capture.Message, 2)
	messages <- capture.Message{Batch: batch}
	messages <- capture.Message{Ready: &capture.Ready{Kinds: 1}}
	close(messages)
	rec.run(t.Context(), messages, func(err error) { t.Error(err) })
	if ready != 1 || written != 3 {
		t.Errorf("Ready came %d times, with %d objects in the journal, want once, with 3", ready, written)
	}
}

// TestOtherScope changes the watched kinds: known objects are not reported again, but their changes in between
// are.
func TestOtherScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		pay := func(name, value string) {
			r.server.Put(configMaps, "pay", name, map[string]any{"data": map[string]any{"k": value}})
		}
		r.put("a", "1")
		r.put("gone", "1")
		pay("b", "1")
		pay("same", "1")
		r.during(func() {})
		r.put("a", "2")
		pay("b", "2")
		pay("c", "1")
		r.server.Delete(configMaps, "shop", "gone")
		r.namespaces.Include = []string{"shop"}
		r.during(func() { r.put("a", "3") })
		r.put("a", "4")
		pay("b", "3")
		r.namespaces.Include = nil
		r.during(func() { r.put("a", "5") })
		r.during(func() { pay("b", "4") })
		want := []string{
			"snapshot b", "snapshot same", "snapshot a", "snapshot gone",
			"updated a data.k 1→2", "deleted gone", "updated a data.k 2→3", // continues without a gap
			"gap what is watched was changed", "updated b data.k 1→3", "snapshot c", "updated a data.k 3→4",
			"updated a data.k 4→5", "updated b data.k 3→4",
		}
		got := r.changes()
		if slices.Index(got, want[7]) > slices.Index(got, want[8]) {
			t.Error("the gap comes after the changes that it announces")
		}
		slices.Sort(want) // a list has no order
		slices.Sort(got)
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestGlobAndBack: a kind that a glob left out has another selection, with unknown state.
func TestGlobAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("a", "1")
		r.server.Put(configMaps, "kube-x", "hidden", map[string]any{"data": map[string]any{"k": "1"}})
		r.namespaces.Exclude = []string{"kube-*"}
		r.during(func() {})
		r.namespaces.Exclude = nil
		r.during(func() { r.server.Put(configMaps, "kube-x", "hidden", map[string]any{"data": map[string]any{"k": "2"}}) })
		if got := strings.Join(r.changes(), "\n"); !strings.Contains(got, "snapshot hidden\n") || !strings.HasSuffix(got, "updated hidden data.k 1→2") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestLabelsAndBack: a stream whose objects another one has taken over does not resume as if it had them.
func TestLabelsAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		labelled := func(name, value string) {
			r.server.Put(configMaps, "shop", name, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"tier": "web"}}, "data": map[string]any{"k": value}})
		}
		labelled("a", "1")
		labelled("gone", "1")
		r.put("b", "1")
		r.during(func() {})
		r.labels = "tier=web"
		r.during(func() {})
		r.labels = ""
		labelled("a", "2")
		r.server.Delete(configMaps, "shop", "gone")
		r.during(func() {})
		got := strings.Join(r.changes(), "\n")
		for _, want := range []string{"updated a data.k 1→2", "deleted gone", "gap what is watched was changed"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "created") {
			t.Errorf("something is said to be new:\n%s", got)
		}
	})
}

// TestTakenApart: a stream does not resume without the objects that a selection took from it.
func TestTakenApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		labelled := func(name, value string) {
			r.server.Put(configMaps, "shop", name, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"tier": "web"}}, "data": map[string]any{"k": value}})
		}
		labelled("a", "1")
		r.put("b", "1")
		r.put("gone", "1")
		r.during(func() {})
		r.labels = "tier=web"
		r.during(func() {})
		r.server.Delete(configMaps, "shop", "gone")
		r.put("b", "2")
		r.labels, r.namespaces.Include = "", []string{"shop"}
		r.during(func() {})
		got := strings.Join(r.changes(), "\n")
		for _, want := range []string{"updated b data.k 1→2", "deleted gone", "gap what is watched was changed"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
}

// TestTwoOfAll: each of two namespaces resumes where the whole cluster stood, and new objects in them were
// created.
func TestTwoOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		put := func(namespace, name string) {
			r.server.Put(configMaps, namespace, name, map[string]any{"data": map[string]any{"k": "1"}})
		}
		put("shop", "a")
		put("pay", "b")
		r.during(func() {})
		put("shop", "new-shop")
		put("pay", "new-pay")
		r.namespaces.Include = []string{"shop", "pay"}
		r.during(func() {})
		got := r.changes()
		slices.Sort(got)
		if want := []string{"created new-pay", "created new-shop", "snapshot a", "snapshot b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestNothingRead ends a watcher before its first request: the next one resumes where the previous one stood.
func TestNothingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("a", "1")
		r.during(func() {})
		r.put("a", "2")
		away := r.server.Misbehave(informertest.Fault{On: informertest.Lists | informertest.Watches | informertest.StreamingLists, Effect: informertest.Reject, Code: 503})
		r.during(func() { <-time.After(time.Minute) })
		away()
		r.put("a", "3")
		r.during(func() {})
		want := []string{"snapshot a", "updated a data.k 1→2", "updated a data.k 2→3"}
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(r.changes(), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestBeginsAnew: if the state of the newly watched objects is unknown, a gap reports since when, once, and
// existing objects are snapshots.
func TestBeginsAnew(t *testing.T) {
	labelled := func(r *rig, name, value string) {
		r.server.Put(configMaps, "shop", name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"tier": "web"}}, "data": map[string]any{"k": value}})
	}
	for _, tc := range []struct {
		why   string
		first func(*rig) // the first configuration
		then  func(*rig) // and the second
	}{
		{"a selector is added", func(*rig) {}, func(r *rig) { r.labels = "tier=web" }},
		{"a selector is another one", func(r *rig) { r.labels = "tier" }, func(r *rig) { r.labels = "tier=web" }},
		{"a glob is added", func(*rig) {}, func(r *rig) { r.namespaces.Exclude = []string{"kube-*"} }},
		{"it was left out for a while", func(*rig) {}, func(r *rig) { r.forget(journal.Stream{GroupResource: "configmaps"}) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			labelled(r, "a", "1")
			labelled(r, "gone", "1")
			tc.first(r)
			r.during(func() {})
			last := time.Now()
			<-time.After(time.Hour)
			labelled(r, "a", "2")
			r.server.Delete(configMaps, "shop", "gone")
			tc.then(r)
			r.during(func() { labelled(r, "a", "3") })
			r.during(func() { labelled(r, "a", "4") })
			want := []string{
				"snapshot a", "snapshot gone", "gap nothing is known since " + last.UTC().Format(time.RFC3339), "snapshot a",
				"updated a data.k 2→3", "updated a data.k 3→4",
			}
			got := r.changes()
			slices.Sort(got[:2]) // a list has no order
			if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// forget makes the journal drop a stream, as when the configuration leaves it out.
func (r *rig) forget(s journal.Stream) {
	r.Helper()
	j, err := journal.Open(r.Context(), r.path, journal.Options{})
	if err == nil {
		err = errors.Join(j.Forget(r.Context(), s), j.Close())
	}
	if err != nil {
		r.Fatal(err)
	}
}

// TestAnewInAnotherHistory: a stream that starts in a later epoch of the server is not confused with one of the
// first, in which the same version was another change.
func TestAnewInAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("a", "1")
		backup := r.server.Snapshot()
		r.during(func() { r.put("a", "lost") })
		r.server.Restore(backup)
		r.during(func() {})
		r.labels = "!nothing"
		r.during(func() { r.put("a", "2") })
		got := strings.Join(r.changes(), "\n")
		if !strings.HasSuffix(got, "updated a data.k 1→2") || !strings.Contains(got, "gap history-changed") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestRecordFails makes the journal fail for a while: the next watcher writes the missing changes.
func TestRecordFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("a", "1")
		failures := 0
		r.with(func(j *journal.Journal) {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			r.put("a", "2")
			synctest.Wait()
			r.put("a", "3")
		}, func(err error) {
			if failures++; !errors.Is(err, journal.ErrClosed) {
				t.Error(err)
			}
		})
		if failures != 1 {
			t.Errorf("it was said %d times", failures)
		}
		r.during(func() {})
		want := []string{"snapshot a", "updated a data.k 1→2", "updated a data.k 2→3"}
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(r.changes(), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// sent stores a sink's messages.
type sent struct {
	ids, lines []string
	absences   []event.Data
}

func (s *sent) String() string              { return "sent" }
func (s *sent) Close(context.Context) error { return nil }
func (s *sent) Send(_ context.Context, ms []sink.Message) (int, error) {
	for _, m := range ms {
		if m.Event.Data.Op == event.Absent {
			s.absences = append(s.absences, m.Event.Data)
			continue
		}
		s.ids = append(s.ids, m.ID)
		s.lines = append(s.lines, string(m.Event.Data.Op)+" "+m.Event.Data.Resource.Name)
	}
	return len(ms), nil
}

// TestDeliver has a pump read the recorded changes: each change once, from its cursor.
func TestDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, got := newRig(t), &sent{}
		run := func(f func()) {
			r.with(func(j *journal.Journal) {
				store, err := openStores(t.Context(), j, r.rules, &Options{Log: slog.New(slog.DiscardHandler), Sinks: make([]deliver.Options, 1)})
				if err != nil {
					t.Fatal(err)
				}
				defer store.close()
				p, err := deliver.New(deliver.Options{
					Name: "s", Sink: got, Store: store.outboxes[0], From: deliver.Beginning,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				f()
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}, func(err error) { t.Error(err) })
		}
		r.put("a", "1")
		run(func() { r.put("a", "2"); r.put("b", "1") })
		r.put("a", "3")
		run(func() { r.server.Delete(configMaps, "shop", "b") })
		want := []string{"updated a", "created b", "updated a", "deleted b"}
		if diff := cmp.Diff(want, got.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Sort(got.ids)
		if n := len(slices.Compact(got.ids)); n != len(want) {
			t.Errorf("%d ids of %d changes", n, len(want))
		}
	})
}
