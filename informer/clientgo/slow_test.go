package clientgo

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestASlowHandlerCostsItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var folding []string
		e := newEngine(Options{HandlerBudget: 32 << 10, Hooks: Hooks{Folding: func(i, h string) { folding = append(folding, i+", "+h) }}})
		s := newServer()
		i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		slow := log{gate: make(chan struct{})}
		var quick log
		handle(t, i, &slow)
		handle(t, i, &quick)
		start(t, i)
		s.add(pod("a/hot", "1", "n0"))
		for n := range 300 {
			s.modify(pod("a/hot", "1", fmt.Sprintf("n%d", n+1)))
			s.add(pod(fmt.Sprintf("a/short%d", n), "s", "n"))
			s.remove(fmt.Sprintf("a/short%d", n))
			synctest.Wait()
		}
		if got := len(quick.take()); got != 901 {
			t.Errorf("the fast handler was notified %d times, want 901", got)
		}
		h := e.Stats().Informers[0].Handlers
		if h[0].Bytes > 32<<10 || h[0].Folded < 300 || h[1].Folded != 0 {
			t.Errorf("%+v", h)
		}
		want := "SharedIndexInformer *v1.Pod, github.com/tattler-dev/tattler/informer/clientgo.log"
		expect(t, "the hook is called once", folding, want)
		close(slow.gate)
		got := slow.take()
		if last := got[len(got)-1]; len(got) > 3 && last == "" {
			t.Error(last)
		}
		expect(t, "it got the first version, and ends with the last", []string{got[0], show(s.objs["a/hot"])},
			"add a/hot(1 on n0)", "a/hot(1 on n300)")
		s.modify(pod("a/hot", "1", "x"))
		s.modify(pod("a/hot", "1", "y"))
		expect(t, "after catching up, it gets every version", slow.take(),
			"update a/hot(1 on n300) -> a/hot(1 on x)", "update a/hot(1 on x) -> a/hot(1 on y)")
	})
}

func TestCoalesceAndRecreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(Options{Coalesce: true, Recreate: true})
		s := newServer(pod("a/one", "1", "n1"))
		i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		l := log{gate: make(chan struct{})}
		handle(t, i, &l)
		start(t, i)
		for _, node := range []string{"n2", "n3", "n4"} {
			s.modify(pod("a/one", "1", node))
		}
		s.modify(pod("a/one", "2", "n1"))
		synctest.Wait()
		close(l.gate)
		expect(t, "the current state, and a recreated object as two notifications", l.take(),
			"initial a/one(1 on n1)", "delete a/one(1 on n4)", "add a/one(2 on n1)")
	})
}
