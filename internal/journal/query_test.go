package journal

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/selection"
)

// wanted evaluates a query, one change at a time.
func wanted(q Query, r *modelRow) bool {
	return r.seq > q.After && (q.Before == 0 || r.seq < q.Before) && q.Has(&r.Meta, "prod")
}

// TestQueries: for random queries and changes, a journal finds what Query.Has matches in memory, and the same objects.
func TestQueries(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		path := filepath.Join(t.TempDir(), "journal.db")
		h := newHistory(seed)
		h.addCluster()
		j := open(t, path)
		for i := range 350 {
			batches, _ := h.next()
			if i%100 == 50 {
				batches = append(batches, h.absence())
			}
			if _, err := j.Append(t.Context(), batches); err != nil {
				t.Fatal(err)
			}
		}
		r, err := OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			q := h.query()
			h.changes(t, r, q)
			h.states(t, r, q)
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("replay with JOURNAL_SEED=%d", seed)
		}
	}
}

// absence adds an absence.
func (h *history) absence() Batch {
	b := Batch{Rows: []Row{{Meta: Meta{
		Op: event.Absent, Kind: AbsenceKind, Severity: event.Warning, Since: h.clock.Add(-time.Minute), At: h.clock, Time: h.clock, Absence: &event.Absence{Reason: event.AbsenceStopped},
	}}}}
	h.append([]Batch{b})
	return b
}

// query returns a random query.
func (h *history) query() Query {
	some := func() *modelRow { return &h.rows[h.IntN(len(h.rows))] }
	q := Query{Quiet: h.IntN(2) == 0, Snapshots: h.IntN(2) == 0, OldestFirst: h.IntN(2) == 0}
	for _, set := range []func(){
		func() { q.After = some().seq },
		func() { q.Before = some().seq },
		func() { q.Since = some().Time.Truncate(time.Second) },
		func() { q.Until = some().Time.Truncate(time.Second) },
		func() { q.Resources = []string{some().Kind.GroupResource(), "unheard.of"} },
		func() { q.Clusters = [][]string{{"prod"}, {"staging", "unknown"}, {"unknown"}}[h.IntN(3)] },
		func() { q.Namespaces = []string{some().Namespace} },
		func() { q.Namespaces = []string{"s*", "none"} },
		func() { q.Without = [][]string{{some().Namespace}, {"*h*"}, {"none"}}[h.IntN(3)] },
		func() { q.Names = []string{some().Name, some().Name, "nobody"} },
		func() {
			q.Names = nil
			for range 1 + h.IntN(4) {
				q.Names = append(q.Names, some().Kind.GroupResource()+"/"+some().Name)
			}
		},
		func() { q.UID = some().UID },
		func() { q.Fields = append(q.Fields, selection.Field{Value: some().Name, Not: h.IntN(2) == 0}) },
		func() {
			q.Fields = append(q.Fields, selection.Field{Namespace: true, Value: []string{some().Namespace, "none"}[h.IntN(2)], Not: h.IntN(2) == 0})
		},
		func() { q.Ops = []event.Op{some().Op, event.Gap} },
		func() { q.Ops = []event.Op{event.Deleted} },
		func() { q.Severities = []event.Severity{event.Failure, event.Warning}[h.IntN(2):] },
		func() { q.Severities = append(q.Severities, severities[h.IntN(len(severities))]) },
		func() { q.Managers = [][]string{{"manager-1", "nobody"}, {"?"}, {"?", "*-2"}, {"m*"}}[h.IntN(4)] },
		func() { q.Limit = 1 + h.IntN(400) },
	} {
		if h.IntN(5) == 0 {
			set()
		}
	}
	return q
}

// states compares the objects that a query selects with those of which Has matches the names.
func (h *history) states(t *testing.T, r *Reader, q Query) {
	t.Helper()
	read := func(q Query, has func(*State) bool) (all []string) {
		for s, err := range r.At(t.Context(), q, h.clock) {
			if err != nil {
				t.Fatal(err)
			}
			if has(&s) {
				all = append(all, s.Kind.GroupResource()+" "+s.Namespace+"/"+s.Name+" "+s.UID)
			}
		}
		return all
	}
	of := Query{Resources: q.Resources, Clusters: q.Clusters, Namespaces: q.Namespaces, Without: q.Without, Names: q.Names, UID: q.UID, Fields: q.Fields}
	want := read(Query{}, func(s *State) bool {
		return of.Has(&Meta{Op: event.Updated, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: s.UID}, "prod")
	})
	if got := read(q, func(*State) bool { return true }); !slices.Equal(got, want) {
		t.Errorf("objects of %+v:\n got %v\nwant %v", of, got, want)
	}
}

func (h *history) changes(t *testing.T, r *Reader, q Query) {
	t.Helper()
	var want []int64
	for i := range h.rows {
		if wanted(q, &h.rows[i]) {
			want = append(want, h.rows[i].seq)
		}
	}
	if !q.OldestFirst {
		slices.Reverse(want)
	}
	if q.Limit > 0 {
		want = want[:min(len(want), q.Limit)]
	}
	var got []int64
	for e, err := range r.Rows(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v:\n got %v\nwant %v", q, got, want)
	}
}

func TestByID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h, _ := written(t, path, 120)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	id := h.rows[7].id
	for _, c := range []struct {
		why, prefix string
		err         error
	}{
		{"the id", id, nil},
		{"a prefix as long as blocks keep", id[:8], nil},
		{"a longer prefix", id[:13], nil},
		{"less", id[:7], nil},
		{"an id of no change", strings.Repeat("a", 26), ErrNotFound},
		{"an id with an invalid last character", id[:25] + "1", ErrNotFound},
		{"more than an id", id + "a", ErrNotFound},
		{"no id", "Deployment/web", ErrNotFound},
		{"nothing", "", ErrNotFound},
	} {
		e, err := r.ByID(t.Context(), c.prefix)
		if !errors.Is(err, c.err) || err == nil && e.ID != id {
			t.Errorf("%s: got %q, %v; want %v", c.why, e.ID, err, c.err)
		}
	}
	_, err = r.ByID(t.Context(), id[:1])
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || len(ambiguous.IDs) < 2 || !strings.Contains(err.Error(), ambiguous.IDs[1]) {
		t.Errorf("one letter: %v", err)
	}
}

// TestSlowReader reads during writes: it sees everything after what it has read, and delays no writer.
func TestSlowReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h, j := written(t, path, 200)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seqs []int64
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if seqs = append(seqs, e.Seq); len(seqs) > 3 && h.steps < 230 {
			batches, _ := h.next()
			if _, err := j.Append(t.Context(), batches); err != nil {
				t.Fatal(err)
			}
			// The whole log is copied into the file: no read transaction holds it.
			if n, err := j.db.integer("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil || n != 0 {
				t.Fatalf("the reader keeps the log back: %d, %v", n, err)
			}
		}
	}
	if len(seqs) != len(h.rows) || !slices.IsSorted(seqs) {
		t.Errorf("%d changes were read, want %d", len(seqs), len(h.rows))
	}
}

func TestRemovedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h, j := written(t, path, 60)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(t.Context(), Query{Ops: []event.Op{event.Updated}, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if got, err := j.Retain(t.Context(), h.clock, Retention{Age: 1}, e.Seq); err != nil || got.Removed == 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, _, err := e.Contents(t.Context()); !errors.Is(err, ErrNotFound) {
			t.Errorf("a change that retention has removed: %v", err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.Rows(ctx, Query{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	}
}

// TestReaderClosesLast: the last connection copies the log into the file, including pages that it has not read.
func TestReaderClosesLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, pod(event.Created, 1))
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	_, err = r.Last(t.Context())
	must(t, err)
	add(t, j, pod(event.Updated, 2))
	must(t, j.Close(), r.Close())
	verify(t, path)
}
