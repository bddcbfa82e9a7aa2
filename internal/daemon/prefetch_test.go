package daemon

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// TestPrefetch: what is read ahead comes in its order, is bounded by number and by bytes, and nothing goes on once nobody
// takes it.
func TestPrefetch(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name  string
		size  int
		items int // that are there; then comes the error
		stop  int // after so many; 0: never
		ahead int // how many are read beyond the first at most
	}{
		{"small", 100, 1000, 0, prefetchItems + 1},
		{"large", 300 << 10, 20, 0, 4},
		{"huge", 50 << 20, 5, 0, 1},
		{"stopped", 100, 1000, 10, prefetchItems + 1},
		{"stopped at the first", 50 << 20, 5, 1, 1},
		{"nothing", 100, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := 0
				items := func(ctx context.Context) iter.Seq2[deliver.Item, error] {
					return func(yield func(deliver.Item, error) bool) {
						for read < tc.items && ctx.Err() == nil {
							read++
							if !yield(deliver.Item{Seq: int64(read), Size: tc.size}, nil) {
								return
							}
						}
						yield(deliver.Item{}, broken)
					}
				}
				got := 0
				var last error
				for item, err := range prefetch(t.Context(), items) {
					synctest.Wait()
					if got++; got == 1 && read-1 > tc.ahead {
						t.Errorf("%d are read ahead, want at most %d", read-1, tc.ahead)
					}
					if last = err; err == nil && item.Seq != int64(got) {
						t.Fatalf("%d comes as number %d", item.Seq, got)
					}
					if got == tc.stop {
						break
					}
				}
				switch {
				case tc.stop > 0 && got != tc.stop:
					t.Errorf("got %d, want %d", got, tc.stop)
				case tc.stop == 0 && (got != tc.items+1 || !errors.Is(last, broken)):
					t.Errorf("got %d, and %v", got, last)
				}
			}) // which fails if the goroutine is still there
		})
	}
}

// TestPrefetchEnds: the end of the context ends it.
func TestPrefetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		endless := func(ctx context.Context) iter.Seq2[deliver.Item, error] {
			return func(yield func(deliver.Item, error) bool) {
				for ctx.Err() == nil {
					if !yield(deliver.Item{Seq: 1}, nil) {
						return
					}
				}
				yield(deliver.Item{}, context.Cause(ctx))
			}
		}
		n := 0
		for range prefetch(ctx, endless) {
			if n++; n == 3 {
				cancel()
			}
		}
		if n > 3+prefetchItems+2 {
			t.Errorf("%d came after the end", n)
		}
	})
}
