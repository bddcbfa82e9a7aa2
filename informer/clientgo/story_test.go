package clientgo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// story is a handler that checks each notification against the previous ones.
type story struct {
	t     *testing.T
	seed  uint64
	known map[string]string
}

func (s *story) check(what string, obj any, want string) {
	if got := show(obj); got != want {
		s.t.Errorf("seed %d: %s %s, where %q was known", s.seed, what, got, want)
	}
}

func (s *story) OnAdd(obj any, _ bool) {
	key := podKey(obj.(*corev1.Pod))
	if known, ok := s.known[key]; ok {
		s.check("added", obj, known)
	}
	s.known[key] = show(obj)
}

func (s *story) OnUpdate(old, obj any) {
	key := podKey(obj.(*corev1.Pod))
	s.check("updated from", old, s.known[key])
	s.known[key] = show(obj)
}

func (s *story) OnDelete(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	key := podKey(obj.(*corev1.Pod))
	if _, ok := s.known[key]; !ok {
		s.t.Errorf("seed %d: deleted %s, which was not known", s.seed, key)
	}
	delete(s.known, key)
}

// TestFoldedNotificationsFit: whatever is folded, and whichever decoded objects are dropped, a handler's
// notifications are consistent with each other and end with the current state.
func TestFoldedNotificationsFit(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tb := newTable(newEngine(Options{Hot: 1}), []Storage{Compact, Live}[rng.IntN(2)], nil, nil)
		budget, always := []int64{-1, 2 << 10, 8 << 10, 64 << 10}[rng.IntN(4)], rng.IntN(4) == 0
		q := newQueue(budget, always, func(*notification) {}, tb.packing.item)
		h := &story{t: t, seed: seed, known: map[string]string{}}
		is := map[string]*corev1.Pod{}
		for step := range 400 {
			q.push(happens(rng, tb, is, step))
			if bytes := q.bytes + q.decodedBytes; budget >= 0 && !always && !q.folding && bytes > budget && q.waiting() > 1 {
				t.Errorf("seed %d: %d bytes are queued", seed, bytes)
			}
			for rng.IntN(3) == 0 && q.waiting() > 0 {
				n, _ := q.next()
				n.deliver(h, tb)
			}
			if rng.IntN(400) == 0 {
				runtime.GC() // clears weak references
			}
		}
		for q.waiting() > 0 {
			n, _ := q.next()
			n.deliver(h, tb)
		}
		want := map[string]string{}
		for key, p := range is {
			want[key] = show(p)
		}
		if !maps.Equal(h.known, want) || q.bytes != 0 || q.decodedBytes != 0 || q.decoded != 0 {
			t.Errorf("seed %d: ends with %v, want %v; the empty queue has %d and %d bytes", seed, h.known, want, q.bytes, q.decodedBytes)
		}
		if t.Failed() {
			return
		}
	}
}

// happens makes a random change of an object and returns its notification.
func happens(rng *rand.Rand, tb *table, is map[string]*corev1.Pod, step int) *notification {
	key := fmt.Sprint("a/p", rng.IntN(4))
	old, now := is[key], pod(key, "1", fmt.Sprint("n", step))
	n := &notification{key: key}
	if old != nil {
		n.old = tb.packing.item(old)
	}
	switch what := rng.IntN(4); {
	case old == nil:
		n.op, n.new = added, tb.packing.item(now)
	case what == 0:
		n.op, n.missed, now = deleted, rng.IntN(2) == 0, nil
	case what == 1:
		n.op, n.old, n.new, now = resynced, nil, n.old, old
	default:
		n.op, n.new = updated, tb.packing.item(now)
	}
	if rng.IntN(2) == 0 { // with decoded objects
		if n.old != nil {
			n.oldObj = old
		}
		if n.new != nil {
			n.newObj = now
		}
		if n.op == deleted {
			n.old = held(old)
		}
	}
	if is[key] = now; now == nil {
		delete(is, key)
	}
	return n
}
