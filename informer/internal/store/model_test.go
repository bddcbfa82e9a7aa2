package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestModel applies random writes and faults to stores, and checks them and their queues after every step against a
// simple reference. INFORMER_SEED replays one run; INFORMER_SEEDS is the number of runs.
func TestModel(t *testing.T) {
	first, runs := uint64(time.Now().UnixNano()), number(t, "INFORMER_SEEDS", 400)
	if seed := number(t, "INFORMER_SEED", 0); seed != 0 {
		first, runs = seed, 1
	}
	for seed := first; seed < first+runs; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { model(t, seed) }) {
			t.Fatalf("replay with INFORMER_SEED=%d", seed)
		}
	}
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func model(t *testing.T, seed uint64) {
	w := &world{T: t, rand: rand.New(rand.NewPCG(seed, seed))}
	for i := range 1 + w.rand.IntN(2) {
		w.sources = append(w.sources, newSource(w, i))
	}
	for range 4 {
		if w.rand.IntN(2) == 0 {
			w.join()
		}
	}
	for _, s := range w.sources {
		s.open()
	}
	for range 60 {
		w.act()
		for _, c := range w.consumers {
			c.pace()
		}
	}
	for _, s := range w.sources { // no faults from now on
		s.relist(false, false, false)
		s.compareTruth()
	}
	for _, c := range w.consumers {
		c.drain()
		c.idle()
	}
}

// world is several streams and their consumers.
type world struct {
	*testing.T
	rand      *rand.Rand
	sources   []*source
	consumers []*consumer
	clock     int64
}

func (w *world) now() time.Time {
	w.clock++
	return time.Unix(w.clock, 0)
}

// one returns true once in n calls.
func (w *world) one(n int) bool { return w.rand.IntN(n) == 0 }

// act performs one random step.
func (w *world) act() {
	s := w.sources[w.rand.IntN(len(w.sources))]
	switch n := w.rand.IntN(40); n {
	case 0:
		w.join()
	case 1:
		w.leave()
	case 2: // a hot key
		k := s.anyKey()
		for range 20 {
			s.put(k)
			s.deliver(1)
		}
	case 3: // an endless number of short-lived names
		for range 10 {
			k := Key{"n1", fmt.Sprintf("short%d", w.rand.Uint32())}
			s.put(k)
			if w.one(2) {
				s.deliver(1)
			}
			s.drop(k)
			s.deliver(2)
		}
	case 4, 5:
		s.repeat()
	case 6:
		s.bookmark()
	case 7, 8:
		s.write()
		s.relist(w.one(4), w.one(4), w.one(3))
	case 9:
		s.restore()
	case 10:
		s.back = s.save()
	case 11:
		s.gap()
	case 12:
		s.index.add()
	case 13:
		s.index.drop()
	case 14, 15, 16:
		s.index.fill()
	case 17:
		s.changeForm()
	case 18:
		s.reform()
	default:
		for range 1 + w.rand.IntN(4) {
			s.write()
		}
		s.deliver(w.rand.IntN(6))
	}
	s.check()
}

// join adds a queue to every stream.
func (w *world) join() {
	c := newConsumer(w)
	w.consumers = append(w.consumers, c)
	for _, s := range w.sources {
		c.refs[s.id].start(s, w.now())
		s.store.Subscribe(c.queue, time.Unix(w.clock, 0))
	}
}

// leave removes a consumer: at once, or after it has taken everything queued.
func (w *world) leave() {
	if len(w.consumers) == 0 {
		return
	}
	i := w.rand.IntN(len(w.consumers))
	c := w.consumers[i]
	if c.ending {
		return
	}
	if w.one(2) {
		c.queue.Finish()
		c.ending = true // it continues to take
		for _, r := range c.refs {
			r.freeze()
		}
	} else {
		c.queue.Close()
		w.consumers = append(w.consumers[:i], w.consumers[i+1:]...)
	}
	for _, s := range w.sources {
		s.store.Unsubscribe(c.queue)
	}
}
