package daemon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// made counts how often each change is read.
type made struct {
	mu   sync.Mutex
	of   map[int64]int
	size int
}

func (m *made) item(t *testing.T, s *shelf, seq int64) {
	t.Helper()
	it, err := s.item(t.Context(), seq, func() (deliver.Item, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.of[seq]++
		return deliver.Item{Seq: seq, Size: m.size}, nil
	})
	if err != nil || it.Seq != seq {
		t.Errorf("change %d: %d, %v", seq, it.Seq, err)
	}
}

func shelvesOf(n, limit int) (*shelves, []*shelf) {
	all := newShelves(limit)
	var each []*shelf
	for range n {
		each = append(each, all.add())
	}
	return all, each
}

// TestShelvesShare: three sinks read the same changes at once, and each change is read once.
func TestShelvesShare(t *testing.T) {
	_, each := shelvesOf(3, 1<<20)
	m := &made{of: map[int64]int{}, size: 1000}
	var pumps sync.WaitGroup
	for _, s := range each {
		pumps.Go(func() {
			for seq := range int64(100) {
				m.item(t, s, seq)
			}
		})
	}
	pumps.Wait()
	for seq, n := range m.of {
		if n != 1 {
			t.Errorf("change %d was read %d times", seq, n)
		}
	}
}

// TestShelvesOfLaggard: one sink reads far behind two that follow each other closely. These still share, and
// the shelves stay within their limit.
func TestShelvesOfLaggard(t *testing.T) {
	all, each := shelvesOf(3, 64<<10)
	m := &made{of: map[int64]int{}, size: 1 << 10}
	for i := range int64(1000) {
		m.item(t, each[0], 10_000+i)
		for k := range int64(5) {
			m.item(t, each[2], 5*i+k)
		}
		m.item(t, each[1], 10_000+i)
		if all.size > all.limit {
			t.Fatalf("the shelves hold %d bytes of %d", all.size, all.limit)
		}
	}
	for i := range int64(1000) {
		if n := m.of[10_000+i]; n != 1 {
			t.Fatalf("change %d was read %d times", 10_000+i, n)
		}
	}
	sum := 0
	for _, s := range each {
		sum += len(s.order)
	}
	if sum != len(all.items) {
		t.Errorf("%d changes are known, %d are on shelves", len(all.items), sum)
	}
}

// TestShelvesError: if the sink that reads a change fails, the one that waits reads it itself, and one whose
// context ends does not wait.
func TestShelvesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, each := shelvesOf(3, 1<<20)
		fail, failed := make(chan struct{}), errors.New("no")
		go func() {
			_, err := each[0].item(t.Context(), 1, func() (deliver.Item, error) {
				<-fail
				return deliver.Item{}, failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("the reader gets %v", err)
			}
		}()
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := each[2].item(ended, 1, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that stops waiting gets %v", err)
		}
		got := make(chan deliver.Item, 1)
		go func() {
			it, err := each[1].item(t.Context(), 1, func() (deliver.Item, error) { return deliver.Item{Seq: 1}, nil })
			if err != nil {
				t.Error(err)
			}
			got <- it
		}()
		synctest.Wait()
		close(fail)
		if it := <-got; it.Seq != 1 {
			t.Errorf("the waiting caller gets change %d", it.Seq)
		}
		synctest.Wait()
		if len(all.items) != 0 {
			t.Errorf("%d changes are kept after an error", len(all.items))
		}
	})
}
