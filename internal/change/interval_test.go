package change

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestCut has random histories of an object that is deleted while nothing watches: the interval contains the true moment, to
// the second, and is no wider than what is known.
func TestCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	begin := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for range 20_000 {
		// The moments of the history, in order.
		at := begin
		next := func() time.Time {
			at = at.Add(time.Duration(random.IntN(4000)) * time.Millisecond)
			return at
		}
		second := func(t time.Time) string { return t.Truncate(time.Second).Format(time.RFC3339) }
		born, known := next(), []time.Time{}
		object := func(requested bool) map[string]any {
			meta := map[string]any{"creationTimestamp": second(born)}
			var entries []any
			for range random.IntN(3) {
				w := next()
				known = append(known, w)
				entries = append(entries, map[string]any{"manager": "m", "operation": "Update", "time": second(w)})
			}
			meta["managedFields"] = entries
			if requested {
				w, grace := next(), int64(random.IntN(60))
				known = append(known, w)
				meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = second(w.Add(time.Duration(grace)*time.Second)), grace
			}
			return map[string]any{"metadata": meta}
		}
		c := Change{Meta: Meta{Op: event.Deleted}}
		known = append(known, born)
		early := random.IntN(2) == 0 // a watch that is late showed versions after the stream was last current
		if early {
			c.Since = next()
		}
		before := object(random.IntN(3) == 0)
		if !early {
			c.Since = next()
		}
		if random.IntN(3) == 0 {
			c.Known = append(c.Known, object(true))
		}
		since, truth := c.Since, next()
		end := time.Time{}
		if random.IntN(2) == 0 {
			end = next()
			c.Successor = map[string]any{"metadata": map[string]any{"creationTimestamp": second(end)}}
		}
		c.At = next().Add(time.Second)
		(&Builder{}).Build(&c, before, nil, nil)

		from, to := c.Span()
		if truth.Before(from) || truth.Truncate(time.Second).After(to) {
			t.Fatalf("it was gone at %v, and the interval is from %v to %v", truth, from, to)
		}
		for _, k := range append(known, since) {
			if from.Before(k.Truncate(time.Second)) {
				t.Fatalf("it was there at %v, and the interval begins at %v", k, from)
			}
		}
		if to.After(c.At) || !end.IsZero() && to.After(end) {
			t.Fatalf("the next one was there at %v, seen at %v, and the interval ends at %v", end, c.At, to)
		}
		if !c.Time.Equal(to) || c.Known != nil || c.Successor != nil {
			t.Fatalf("the time is %v, the end %v", c.Time, to)
		}
	}
}
