package clientgo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// filled is an informer of n pods, which stops with the test.
func filled(t *testing.T, o Options, n int) (*Engine, cache.SharedIndexInformer, *server) {
	t.Helper()
	s := newServer()
	for i := range n {
		s.set(pod(fmt.Sprintf("a/p%d", i), fmt.Sprint(i), "n1"))
	}
	e := newEngine(o)
	i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
	start(t, i)
	return e, i, s
}

// whole tells whether the engine's only informer keeps everything decoded.
func whole(e *Engine) bool { return e.Stats().Informers[0].Whole }

func TestWhatIsReadWholeAndOftenStaysDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1}, 100)
		x := i.GetIndexer()
		x.List()
		if whole(e) {
			t.Error("once is not often")
		}
		if _, err := x.ByIndex("node", "n1"); err != nil {
			t.Fatal(err)
		}
		if !whole(e) || e.Stats().Whole == 0 {
			t.Fatal("what is read whole twice stays decoded")
		}
		first, _, _ := x.GetByKey("a/p7")
		if again, _, _ := x.GetByKey("a/p7"); first != again {
			t.Error("a read decoded what is kept")
		}
		s.modify(pod("a/p7", "7", "n2"))
		s.remove("a/p8")
		s.add(pod("a/p100", "100", "n1"))
		synctest.Wait()
		if objs := x.List(); len(objs) != 100 {
			t.Errorf("%d objects, want 100", len(objs))
		}
		for _, obj := range x.List() {
			p := obj.(*corev1.Pod)
			if same, ok, _ := x.GetByKey(podKey(p)); !ok || same != obj || p.Name == "p7" && p.Spec.NodeName != "n2" {
				t.Errorf("%s is read as %v", podKey(p), same)
			}
		}
		for range 5 {
			pass(while / 2)
			x.List()
		}
		if !whole(e) {
			t.Error("it is read on, and packed")
		}
		pass(2*while + time.Minute)
		if st := e.Stats(); st.Informers[0].Whole || st.Whole != 0 {
			t.Errorf("nobody reads it any more, and %d bytes are kept", st.Whole)
		}
		if p, ok, _ := x.GetByKey("a/p7"); !ok || p.(*corev1.Pod).Spec.NodeName != "n2" {
			t.Error("it is packed again, and current")
		}
	})
}

func TestReadsByKeyKeepLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Hot: 20 << 10}, 100)
		for range 5 {
			for n := range 100 {
				if _, ok, _ := i.GetStore().GetByKey(fmt.Sprintf("a/p%d", n)); !ok {
					t.Fatal("not found")
				}
			}
		}
		if st := e.Stats(); st.Informers[0].Whole || st.Decoded > 20<<10 {
			t.Errorf("%d bytes stay decoded", st.Decoded)
		}
		one, _, _ := i.GetStore().GetByKey("a/p1")
		if again, _, _ := i.GetStore().GetByKey("a/p1"); one != again {
			t.Error("what was just read is read again at no cost")
		}
	})
}

func TestThereIsRoomForSomuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1, Whole: 100 << 10}, 100)
		i.GetStore().List()
		i.GetStore().List()
		if !whole(e) {
			t.Fatalf("%d bytes are within the room", e.Stats().Whole)
		}
		for n := range 100 {
			s.add(pod(fmt.Sprintf("b/p%d", n), fmt.Sprint(n), "n1"))
		}
		synctest.Wait()
		if whole(e) || e.Stats().Whole != 0 {
			t.Error("what outgrows the room is packed again")
		}
		i.GetStore().List()
		i.GetStore().List()
		if got := len(i.GetStore().List()); whole(e) || got != 200 {
			t.Errorf("without room, all %d objects are read and packed, %v", got, whole(e))
		}
	})
}

func TestStorageByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Hot: 1, Storage: Live}, 3)
		if !whole(e) {
			t.Error("live storage keeps everything")
		}
		if a, b := i.GetStore().List(), i.GetStore().List(); a[0] != b[0] {
			t.Error("and hands out what it keeps")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Storage: Compact}, 3)
		i.GetStore().List()
		i.GetStore().List()
		i.GetStore().List()
		if whole(e) {
			t.Error("compact storage stays compact")
		}
	})
}

func TestManyObjectsAreReadByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5*scanEach + 7
		_, i, _ := filled(t, Options{Storage: Compact, Hot: 1}, n)
		seen := map[string]bool{}
		for _, obj := range i.GetStore().List() {
			seen[podKey(obj.(*corev1.Pod))] = true
		}
		objs, err := i.GetIndexer().ByIndex("node", "n1")
		if len(seen) != n || len(objs) != n || err != nil {
			t.Errorf("listed %d and found %d of %d, %v", len(seen), len(objs), n, err)
		}
	})
}
