package access

import (
	"errors"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestCounts: a viewer's counts are those of the changes that the viewer may see.
func TestCounts(t *testing.T) {
	var s *Source
	for seed := range uint64(20) {
		w := newWorld(seed)
		if seed%5 == 0 { // five viewers of each journal
			w.fill()
			s = w.open(t, 0)
		}
		ctx := With(t.Context(), w.viewer)
		type key struct {
			op       event.Op
			kind, ns string
		}
		want, got := map[key]int{}, map[key]int{}
		for e, err := range s.Rows(ctx, journal.Query{Snapshots: true}) {
			if err != nil {
				t.Fatal(err)
			}
			want[key{e.Op, e.Kind.Resource, e.Namespace}]++
		}
		all, err := s.Counts(ctx, journal.Query{Snapshots: true, Since: start.Add(-time.Hour), Until: start.Add(time.Hour)}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range all {
			for _, n := range series.Counts {
				if n > 0 {
					got[key{series.Op, series.Kind.Resource, series.Namespace}] += n
				}
			}
		}
		for k, n := range got {
			if want[k] != n {
				t.Errorf("seed %d: %v: counted %d, may see %d", seed, k, n, want[k])
			}
		}
		for k, n := range want {
			if got[k] != n {
				t.Errorf("seed %d: %v: counted %d, may see %d", seed, k, got[k], n)
			}
		}
		if _, err := s.Counts(t.Context(), journal.Query{Since: start, Until: start.Add(time.Hour)}, time.Minute); !errors.Is(err, ErrNobody) {
			t.Errorf("without a viewer: %v", err)
		}
	}
}
