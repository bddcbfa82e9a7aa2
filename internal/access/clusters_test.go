package access

import (
	"context"
	"math"
	"testing"
	"time"
)

// few is an Access with a limited number of reviews.
type few struct{ left int }

func (few) May(_ context.Context, targets []Target) ([]bool, error) {
	return make([]bool, len(targets)), nil
}
func (few) Created(context.Context, []Namespace) ([]time.Time, error) { return nil, nil }
func (f few) Left() int                                               { return f.left }

// TestMapKeepsLimit: a page narrows itself to what the viewer's reviews suffice for, also with other names of clusters.
func TestMapKeepsLimit(t *testing.T) {
	same := func(cluster string) string { return cluster }
	if got := left(Map(With(t.Context(), few{7}), same)); got != 7 {
		t.Errorf("%d reviews are left, want 7", got)
	}
	unlimited := &some{}
	if got := left(Map(With(t.Context(), unlimited), same)); got != math.MaxInt {
		t.Errorf("%d reviews are left, want no limit", got)
	}
	if got := left(t.Context()); got != math.MaxInt {
		t.Errorf("without a viewer, %d reviews are left", got)
	}
}
