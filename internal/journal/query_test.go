package journal

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// wanted evaluates a query, one change at a time.
func wanted(q Query, r *modelRow) bool {
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	matches := func(glob string) bool {
		ok, _ := path.Match(glob, r.Namespace)
		return ok || r.Op == event.Gap && r.Namespace == ""
	}
	from := r.Time
	if !r.Since.IsZero() && r.Time.Equal(r.At) {
		from = r.Since
	}
	byObject := len(q.Names) > 0 || q.UID != ""
	switch {
	case r.Quiet && !q.Quiet, q.After != 0 && r.seq <= q.After, q.Before != 0 && r.seq >= q.Before,
		!q.Since.IsZero() && r.Time.Before(q.Since), !q.Until.IsZero() && !from.Before(q.Until),
		!in(q.Resources, r.Kind.GroupResource()), len(q.Namespaces) > 0 && !slices.ContainsFunc(q.Namespaces, matches), !in(q.Managers, r.Manager),
		byObject && r.Op == event.Gap, !in(q.Names, r.Name), q.UID != "" && r.UID != q.UID,
		len(q.Ops) > 0 && !slices.Contains(q.Ops, r.Op), len(q.Ops) == 0 && r.Op == event.Snapshot && !q.Snapshots:
		return false
	}
	return true
}

// TestQueries compares random queries with wanted.
func TestQueries(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		path := filepath.Join(t.TempDir(), "journal.db")
		h := newHistory(seed)
		j := open(t, path)
		for range 350 {
			batches, _ := h.next()
			if _, err := j.Append(t.Context(), batches); err != nil {
				t.Fatal(err)
			}
		}
		r, err := OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			h.query(t, r)
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("replay with JOURNAL_SEED=%d", seed)
		}
	}
}

func (h *history) query(t *testing.T, r *Reader) {
	t.Helper()
	some := func() *modelRow { return &h.rows[h.IntN(len(h.rows))] }
	q := Query{Quiet: h.IntN(2) == 0, Snapshots: h.IntN(2) == 0, OldestFirst: h.IntN(2) == 0}
	for _, set := range []func(){
		func() { q.After = some().seq },
		func() { q.Before = some().seq },
		func() { q.Since = some().Time.Truncate(time.Second) },
		func() { q.Until = some().Time.Truncate(time.Second) },
		func() { q.Resources = []string{some().Kind.GroupResource(), "unheard.of"} },
		func() { q.Namespaces = []string{some().Namespace} },
		func() { q.Namespaces = []string{"s*", "none"} },
		func() { q.Names = []string{some().Name, some().Name, "nobody"} },
		func() { q.UID = some().UID },
		func() { q.Ops = []event.Op{some().Op, event.Gap} },
		func() { q.Managers = []string{"manager-1", "nobody"} },
		func() { q.Limit = 1 + h.IntN(400) },
	} {
		if h.IntN(5) == 0 {
			set()
		}
	}
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
