package journal

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// checkCounts compares the counts with the changes of a journal.
func (m *model) checkCounts(t *testing.T, r *Reader) {
	t.Helper()
	for _, q := range []Query{
		{Snapshots: true}, {}, {Resources: []string{"pods"}, Snapshots: true}, {Namespaces: []string{"s*"}}, {Ops: []event.Op{event.Updated, event.Gap}},
		{Severities: []event.Severity{event.Failure}}, {Severities: []event.Severity{event.Recovery, event.Warning}, Snapshots: true},
	} {
		want, oldest, newest := map[string]int{}, time.Time{}, time.Time{}
		for e, err := range r.Rows(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprint(e.Op, e.Kind, e.Namespace, e.Time.Unix())]++
			if oldest.IsZero() || e.Time.Before(oldest) {
				oldest = e.Time
			}
			if e.Time.After(newest) {
				newest = e.Time
			}
		}
		if len(want) == 0 {
			continue
		}
		q.Since, q.Until = oldest.Truncate(time.Second), newest.Truncate(time.Second).Add(time.Second)
		step := time.Duration(int64(q.Until.Sub(q.Since)/time.Second)/maxSteps+1) * time.Second
		all, err := r.Counts(t.Context(), q, step)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(from map[string]int) (n int) {
			for v := range maps.Values(from) {
				n += v
			}
			return n
		}
		got, total := map[string]int{}, 0
		for _, s := range all {
			for i, n := range s.Counts {
				total += n
				if n > 0 && step == time.Second {
					got[fmt.Sprint(s.Op, s.Kind, s.Namespace, q.Since.Unix()+int64(i))] += n
				}
			}
		}
		if total != sum(want) {
			t.Errorf("%+v: counted %d of %d changes", q, total, sum(want))
		}
		if d := cmp.Diff(want, got); d != "" && step == time.Second {
			t.Errorf("%+v: (-changes +counts)\n%s", q, d)
		}
	}
}

// TestCounts counts the changes of random histories with retention, purges and restarts between.
func TestCounts(t *testing.T) {
	h := newHistory(11)
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	for step := range 150 {
		batches, want := h.next()
		if got, err := j.Append(t.Context(), batches); err != nil || got != want {
			t.Fatalf("step %d: %+v, %v", step, got, err)
		}
		switch step {
		case 40, 100:
			h.retain(t, j)
		case 60, 149:
			h.purge(t, j)
		case 80:
			must(t, j.Close())
			j = open(t, path)
		}
	}
	must(t, j.Close())
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	h.checkCounts(t, r)
}

// BenchmarkCounts counts a million changes, of 20 kinds in 50 namespaces in a week, in 100 steps.
func BenchmarkCounts(b *testing.B) {
	const changes, kinds, namespaces = 1_000_000, 20, 50
	path := filepath.Join(b.TempDir(), "journal.db")
	j, err := Open(b.Context(), path, Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	interval := 7 * 24 * time.Hour / changes
	for n := 0; n < changes; {
		batch := Batch{Stream: Stream{GroupResource: "widgets"}, Head: Head{Version: fmt.Sprint(n), Epoch: 1, Live: true, EverLive: true, At: epoch}}
		for range 1000 {
			n++
			at := epoch.Add(time.Duration(n) * interval)
			k := Kind{Group: "example.com", Version: "v1", Resource: fmt.Sprint("widgets", n*7%kinds), Kind: "Widget", Namespaced: true}
			batch.Rows = append(batch.Rows, Row{Meta: Meta{
				Op: event.Created, Kind: k, Namespace: fmt.Sprint("team-", n*13%namespaces), Name: fmt.Sprint("w", n), UID: fmt.Sprint(n), ResourceVersion: fmt.Sprint(n), Time: at, At: at,
			}, After: []byte("{}")})
		}
		if _, err := j.Append(b.Context(), []Batch{batch}); err != nil {
			b.Fatal(err)
		}
	}
	size, err := j.db.integer("SELECT sum(length(counts)) FROM block_counts")
	if err := errors.Join(err, j.Close()); err != nil {
		b.Fatal(err)
	}
	r, err := OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	q := Query{Since: epoch, Until: epoch.Add(8 * 24 * time.Hour)}
	for b.Loop() {
		n := 0
		all, err := r.Counts(b.Context(), q, 2*time.Hour)
		for _, s := range all {
			for _, c := range s.Counts {
				n += c
			}
		}
		if err != nil || n != changes {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(size)/changes, "file-B/change")
}
