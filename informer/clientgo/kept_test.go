package clientgo

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// filled returns an informer of n pods, which stops with the test.
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

// kept returns the number of objects that the engine's only informer keeps decoded because they are read often.
func kept(e *Engine) int { return e.Stats().Informers[0].Kept }

func TestWhatIsReadOftenStaysDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1}, 100)
		x := i.GetIndexer()
		for range readsToKeep - 1 {
			x.List()
			if kept(e) > 0 {
				t.Error("kept after too few reads")
			}
		}
		x.List()
		if kept(e) != 100 || e.Stats().Kept == 0 {
			t.Fatalf("%d objects that are read often stay decoded", kept(e))
		}
		first, _, _ := x.GetByKey("a/p7")
		if again, _, _ := x.GetByKey("a/p7"); first != again {
			t.Error("a read decoded what is kept")
		}
		s.modify(pod("a/p7", "7", "n2"))
		s.remove("a/p8")
		s.add(pod("a/p100", "100", "n1"))
		synctest.Wait()
		for range readsToKeep {
			if objs := x.List(); len(objs) != 100 {
				t.Errorf("%d objects, want 100", len(objs))
			}
		}
		for _, obj := range x.List() {
			p := obj.(*corev1.Pod)
			if same, ok, _ := x.GetByKey(podKey(p)); !ok || same != obj || p.Name == "p7" && p.Spec.NodeName != "n2" {
				t.Errorf("%s is read as %v", podKey(p), same)
			}
		}
		s.relist()
		if kept(e) != 100 {
			t.Errorf("after a list, %d objects are kept", kept(e))
		}
		for range 5 {
			pass(packUnreadEvery / 2)
			x.List()
		}
		if kept(e) != 100 {
			t.Error("packed although it is read")
		}
		for n := range 30 { // changes do not count as reads
			s.modify(pod("a/p7", "7", fmt.Sprint("n", n)))
			pass(packUnreadEvery / 10)
		}
		s.modify(pod("a/p7", "7", "n2"))
		synctest.Wait()
		if st := e.Stats(); st.Informers[0].Kept != 0 || st.Kept != 0 {
			t.Errorf("unread, but %d objects of %d bytes are kept", st.Informers[0].Kept, st.Kept)
		}
		if p, ok, _ := x.GetByKey("a/p7"); !ok || p.(*corev1.Pod).Spec.NodeName != "n2" {
			t.Error("the packed object must be current")
		}
	})
}

// TestIndexLookupsKeepWhatTheyFind: lookups by an index keep only the found objects decoded, however many there are.
func TestIndexLookupsKeepWhatTheyFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1}, 100)
		for n := range 5 {
			s.modify(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n2"))
		}
		synctest.Wait()
		for range 1000 {
			if objs, err := i.GetIndexer().ByIndex("node", "n2"); err != nil || len(objs) != 5 {
				t.Fatalf("found %d, %v", len(objs), err)
			}
		}
		if kept(e) != 5 {
			t.Errorf("%d objects are kept decoded", kept(e))
		}
		s.modify(pod("a/p1", "1", "n2"))
		synctest.Wait()
		obj, _, _ := i.GetStore().GetByKey("a/p1")
		if objs, _ := i.GetIndexer().ByIndex("node", "n2"); kept(e) != 5 || !slices.Contains(objs, obj) {
			t.Errorf("after a change, %d are kept", kept(e))
		}
	})
}

func TestReadsByKeyKeepLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Hot: 20 << 10}, 100)
		for range readsToKeep - 1 {
			for n := range 100 {
				if _, ok, _ := i.GetStore().GetByKey(fmt.Sprintf("a/p%d", n)); !ok {
					t.Fatal("not found")
				}
			}
		}
		if st := e.Stats(); st.Informers[0].Kept > 0 || st.Decoded > 20<<10 {
			t.Errorf("%d bytes stay decoded", st.Decoded)
		}
		one, _, _ := i.GetStore().GetByKey("a/p1")
		if again, _, _ := i.GetStore().GetByKey("a/p1"); one != again {
			t.Error("a second read decodes again")
		}
	})
}

func TestKeptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, s := filled(t, Options{Hot: 1, Kept: 64 << 10}, 1000)
		for range 2 * readsToKeep {
			i.GetStore().List()
		}
		if n := kept(e); n == 0 || n == 1000 || e.Stats().Kept > 64<<10 {
			t.Errorf("%d objects of %d bytes are kept", n, e.Stats().Kept)
		}
		for n := range 1000 {
			s.modify(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n2"))
		}
		synctest.Wait()
		if got := len(i.GetStore().List()); e.Stats().Kept > 66<<10 || got != 1000 {
			t.Errorf("%d bytes are kept, and %d objects read", e.Stats().Kept, got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Hot: 1, Kept: -1}, 10)
		for range 2 * readsToKeep {
			i.GetStore().List()
		}
		if kept(e) > 0 {
			t.Error("nothing is to be kept")
		}
	})
}

// TestEqualPartsAreShared: equal parts of decoded objects are held once.
func TestEqualPartsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, _ := filled(t, Options{Hot: 1}, 100)
		for range readsToKeep {
			i.GetStore().List()
		}
		arrays := map[*corev1.Container]bool{}
		for _, obj := range i.GetStore().List() {
			arrays[&obj.(*corev1.Pod).Spec.Containers[0]] = true
		}
		if len(arrays) > 20 {
			t.Errorf("100 equal lists of containers are %d", len(arrays))
		}
	})
}

func TestStorageByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, _ := filled(t, Options{Hot: 1, Storage: Live}, 3)
		if a, b := i.GetStore().List(), i.GetStore().List(); a[0] != b[0] {
			t.Error("a read must return the kept object")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Storage: Compact}, 3)
		for range 2 * readsToKeep {
			i.GetStore().List()
		}
		if kept(e) > 0 {
			t.Error("compact storage stays compact")
		}
	})
}

func TestManyObjectsAreReadByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5*minScan + 7
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
