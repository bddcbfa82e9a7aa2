package clientgo

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// large returns a pod of about this many bytes that packs well.
func large(key, node string, bytes int) *corev1.Pod {
	p := pod(key, "1", node)
	p.Annotations = map[string]string{"large": strings.Repeat(node, bytes/len(node))}
	return p
}

// births counts the transformed objects that are still in memory.
type births struct{ of []weak.Pointer[corev1.Pod] }

func (b *births) note(obj any) (any, error) {
	b.of = append(b.of, weak.Make(obj.(*corev1.Pod)))
	return obj, nil
}

func (b *births) alive() (n int) {
	runtime.GC()
	for _, p := range b.of {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

func TestWhatIsAtHandCountsAgainstTheBudget(t *testing.T) {
	for _, deletions := range []bool{false, true} {
		testAtHand(t, deletions)
	}
}

func testAtHand(t *testing.T, deletions bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const size, budget, n = 64 << 10, 1 << 20, maxDecodedNotes / 4
		e := newEngine(Options{HandlerBudget: budget, Storage: Compact, Hot: 1})
		s := newServer()
		i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		var born births
		if err := i.SetTransform(born.note); err != nil {
			t.Fatal(err)
		}
		slow := log{gate: make(chan struct{})}
		handle(t, i, &slow)
		start(t, i)
		var want []string
		s.add(large("a/p", "n1000", size))
		want = append(want, "add a/p(1 on n1000)")
		for k := range n {
			s.modify(large("a/p", fmt.Sprint("n", 1001+k), size))
			want = append(want, fmt.Sprintf("update a/p(1 on n%d) -> a/p(1 on n%d)", 1000+k, 1001+k))
			if deletions {
				gone := fmt.Sprint("a/gone", k)
				s.add(large(gone, "n2000", size))
				s.remove(gone)
				want = append(want, fmt.Sprintf("add %s(1 on n2000)", gone), fmt.Sprintf("delete %s(1 on n2000)", gone))
			}
			synctest.Wait()
			if h := e.Stats().Informers[0].Handlers[0]; h.Bytes > budget || h.Folded > 0 {
				t.Fatalf("after %d: %+v", k, h)
			}
		}
		if alive := born.alive(); alive > budget/size+4 { // the stored objects and those of the handler's current call
			t.Errorf("%d of %d objects are kept for one slow handler", alive, len(born.of))
		}
		close(slow.gate)
		expect(t, "every version is delivered", slow.take(), want...)
	})
}

func TestWhatIsKeptAsItIsCountsWhatItCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, budget = 64 << 10, 1 << 20
		e := newEngine(Options{HandlerBudget: budget, Storage: Live})
		s := newServer()
		i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		var born births
		if err := i.SetTransform(born.note); err != nil {
			t.Fatal(err)
		}
		slow := log{gate: make(chan struct{})}
		handle(t, i, &slow)
		start(t, i)
		s.add(large("a/p", "n1000", size))
		for k := range 60 {
			s.modify(large("a/p", fmt.Sprint("n", 1001+k), size))
			synctest.Wait()
		}
		st := e.Stats().Informers[0]
		if h := st.Handlers[0]; h.Bytes > budget || h.Folded == 0 {
			t.Errorf("%+v", h)
		}
		if st.Bytes < size {
			t.Errorf("an object of %d bytes counts %d", size, st.Bytes)
		}
		if alive := born.alive(); alive > budget/size+4 {
			t.Errorf("%d of %d objects are kept for one slow handler", alive, len(born.of))
		}
		close(slow.gate)
		slow.take()
	})
}

// TestWeigh: estimates are close to the measured heap size.
func TestWeigh(t *testing.T) {
	words := func(r *rand.Rand, n int) map[string]string {
		m := map[string]string{}
		for range n {
			m[fmt.Sprint("key-", r.Uint64())] = strings.Repeat("x", r.IntN(200))
		}
		return m
	}
	for _, tc := range []struct {
		why  string
		make func(*rand.Rand) any
	}{
		{"a pod with text", func(r *rand.Rand) any {
			p := pod("a/one", "1", "n1")
			p.Annotations = words(r, 100)
			return p
		}},
		{"unstructured", func(r *rand.Rand) any {
			list, m := []any{}, map[string]any{}
			for k, v := range words(r, 100) {
				list, m[k] = append(list, v, int64(r.IntN(1e9)), map[string]any{"a": v, "b": 0.5}), v
			}
			return &unstructured.Unstructured{Object: map[string]any{"list": list, "map": m}}
		}},
		{"a Go type", func(r *rand.Rand) any {
			w := &widget{}
			w.Annotations = words(r, 100)
			for range 100 {
				w.Children = append(w.Children, widgetPart{Name: fmt.Sprint("child-", r.Uint64())})
			}
			return w
		}},
		{"bytes", func(*rand.Rand) any { return &plainBytes{B: make([]byte, 100<<10)} }},
	} {
		const n = 50
		rng, objs := rand.New(rand.NewPCG(1, 1)), make([]any, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // it empties the pools, which belong to no object here
		runtime.ReadMemStats(&before)
		for i := range objs {
			objs[i] = tc.make(rng)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		is, said := (int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, weigh(objs[0])
		if said < is/2 || said > 2*is {
			t.Errorf("%s: %d bytes are estimated as %d", tc.why, is, said)
		}
		runtime.KeepAlive(objs)
	}
	round := &ring{}
	round.Next, round.Other = round, round
	if w := weigh(round); w > maxWeighed*int64(unsafe.Sizeof(ring{})) {
		t.Errorf("a cyclic value weighs %d", w)
	}
	if w := weigh((*corev1.Pod)(nil)); w != 0 {
		t.Errorf("nil weighs %d", w)
	}
}

var typeOfPod = reflect.TypeFor[*corev1.Pod]()

type plainBytes struct{ B []byte }

type ring struct{ Next, Other *ring }
