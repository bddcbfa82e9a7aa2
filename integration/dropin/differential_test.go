package dropin

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestJudge compares client-go's informer with itself.
func TestJudge(t *testing.T) { differ(t, theirs, max(4, here.steps/4)) }

func differ(t *testing.T, other candidate, steps int) {
	w := &world{T: t, rng: rand.New(rand.NewPCG(here.seed, 0))}
	for range 20 {
		w.write()
	}
	w.mark()
	for _, f := range forms {
		w.pairs = append(w.pairs, newPair(t, f, other))
	}
	w.each(func(s *side) { s.run(t) })
	w.awaitAll()
	w.compare(true, true) // the marks were in the first list, or came after it
	for range steps {
		w.step()
	}
}

// step does one random thing and compares the results.
func (w *world) step() {
	switch n := w.rng.IntN(16); n {
	case 0, 1:
		w.note("a handler is added")
		w.each(func(s *side) { s.add(w.T) })
		w.awaitAll()
		w.compare(false, false)
	case 2:
		if n := w.rng.IntN(len(w.pairs[0].theirs.handlers)); n > 0 && !w.pairs[0].theirs.handlers[n].removed {
			w.note("handler %d is removed", n)
			w.each(func(s *side) { s.remove(w.T, n) })
		}
	case 3, 4:
		w.note("cut")
		w.each(func(s *side) { s.line.cut() })
		w.awaitAll()
		w.compare(true, false)
	case 5:
		w.note("cut, and refused for a while")
		w.each(func(s *side) { s.line.refuse(true); s.line.cut() })
		w.writes(20)
		<-time.After(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
		w.each(func(s *side) { s.line.refuse(false) })
		w.awaitAll()
		w.compare(true, true)
	case 6:
		w.restart(w.rng.IntN(2) == 0)
	default:
		w.writes(1 + w.rng.IntN(30))
		w.awaitAll()
		w.compare(false, false)
	}
}

func (w *world) writes(n int) {
	for range n {
		w.write()
	}
}

// restart restarts the API server, and compacts its history if forgets is set.
func (w *world) restart(forgets bool) {
	w.note("the API server restarts, and forgets: %t", forgets)
	w.each(func(s *side) { s.line.refuse(true); s.line.cut() })
	w.writes(10)
	var err error
	if forgets {
		err = here.Compact(w.Context())
	}
	err = errors.Join(err, here.KillAPIServer(), here.StartAPIServer(w.Context()))
	if err != nil {
		w.fail("restart: %v", err)
	}
	w.each(func(s *side) { s.line.refuse(false) })
	w.awaitAll()
	w.compare(true, true)
}
