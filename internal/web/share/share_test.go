package share

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestPool: a viewer has its share at most, whoever waits gets a place that becomes free, and who leaves does not.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(3, 2)
		for i, tc := range []struct {
			who  string
			want bool
		}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}} { // a has its share, then all are taken
			if got := p.Try(tc.who); got != tc.want {
				t.Errorf("%d: %s has a place: %v", i, tc.who, got)
			}
		}
		entered := make(chan string)
		for _, who := range []string{"a", "c"} {
			go func() {
				if err := p.Enter(t.Context(), who); err != nil {
					t.Error(err)
				}
				entered <- who
			}()
		}
		gone, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- p.Enter(gone, "c") }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves: %v", err)
		}
		p.Leave("b")
		if who := <-entered; who != "c" { // a has its share
			t.Errorf("%s has the place", who)
		}
		p.Leave("a")
		if who := <-entered; who != "a" {
			t.Errorf("%s has the place", who)
		}
		for _, who := range []string{"a", "a", "c"} {
			p.Leave(who)
		}
		if p.taken != 0 || len(p.of) != 0 {
			t.Errorf("%d places are taken, by %v", p.taken, p.of)
		}
	})
}
