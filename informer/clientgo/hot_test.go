package clientgo

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// favourites are the objects that a reader keeps reading.
func favourites(t *testing.T, i cache.SharedIndexInformer) (objs []any) {
	t.Helper()
	for n := range 5 {
		obj, ok, err := i.GetStore().GetByKey(fmt.Sprintf("a/p%d", n))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		objs = append(objs, obj)
	}
	return objs
}

// TestHandlersEvictNothing: objects read by key stay decoded while handlers process everything and lists arrive.
func TestHandlersEvictNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(Options{Storage: Compact, Hot: 20 << 10})
		s := newServer()
		for n := range 600 {
			s.set(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n1"))
		}
		i := e.NewInformer(s, &corev1.Pod{}, time.Minute, cache.Indexers{"node": byNode})
		var quick log
		handle(t, i, &quick)
		start(t, i)
		quick.take()
		kept := favourites(t, i)
		check := func(what string) {
			t.Helper()
			synctest.Wait()
			for n, obj := range favourites(t, i) {
				if obj != kept[n] {
					t.Errorf("%s: %s is decoded again", what, show(obj))
				}
			}
		}
		check("it is kept")
		for range 12 {
			pass(5 * time.Second)
			favourites(t, i) // unread objects are packed
		}
		pass(time.Second)
		if got := len(quick.take()); got != 600 {
			t.Errorf("resynced %d objects", got)
		}
		check("a resync")
		slow := log{gate: make(chan struct{})}
		handle(t, i, &slow)
		synctest.Wait()
		close(slow.gate)
		if got := len(slow.take()); got != 600 {
			t.Errorf("notified of %d objects", got)
		}
		check("a slow handler")
	})
}

// TestListsEvictNothing: index functions decode every object of a list once, without evicting others.
func TestListsEvictNothing(t *testing.T) {
	tb := newTable(newEngine(Options{Hot: 4 << 10}), Compact, cache.Indexers{"node": byNode}, nil)
	list := func(n int) (changes []change) {
		for k := range n {
			p := pod(fmt.Sprintf("a/p%d", k), fmt.Sprint(k), "n1")
			changes = append(changes, change{key: podKey(p), item: tb.packing.item(p)})
		}
		return changes
	}
	first := list(100)
	tb.apply(first, true, nil)
	one, _ := tb.get("a/p1")
	more := list(100)
	more[1] = change{key: "a/p1", item: first[1].item} // it did not change
	tb.apply(more, true, nil)
	if again, _ := tb.get("a/p1"); again != one {
		t.Error("a list evicted an object that is read")
	}
}

// TestOldVersionsAreNotKept: old versions decoded for handlers are not cached.
func TestOldVersionsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(Options{Storage: Compact, Hot: 1 << 20})
		s := newServer(pod("a/one", "1", "n0"))
		i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		slow := log{gate: make(chan struct{})}
		handle(t, i, &slow)
		start(t, i)
		for n := range 3 * maxDecodedNotes {
			s.modify(pod("a/one", "1", fmt.Sprint("n", n+1)))
		}
		synctest.Wait()
		runtime.GC() // no other references
		close(slow.gate)
		slow.take()
		if e.Stats().Decoded > 4<<10 {
			t.Errorf("%d bytes are kept decoded, of one small pod", e.Stats().Decoded)
		}
	})
}

func TestAnEndedInformerFreesWhatIsDecoded(t *testing.T) {
	for _, o := range []Options{{}, {Storage: Compact}} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			for n := range 100 {
				s.set(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n1"))
			}
			e := newEngine(o)
			i := e.NewInformer(s, &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
			handle(t, i, &log{})
			stop := start(t, i)
			s.modify(pod("a/p7", "7", "n2"))
			favourites(t, i)
			for range readsToKeep {
				i.GetStore().List()
			}
			var seen births
			for _, obj := range i.GetStore().List() {
				if _, err := seen.note(obj); err != nil {
					t.Fatal(err)
				}
			}
			if e.hot.Bytes()+e.keptBudget.used.Load() == 0 {
				t.Fatal("nothing was decoded")
			}
			stop()
			read := func() {
				t.Helper()
				if len(i.GetStore().List()) != 100 || len(favourites(t, i)) != 5 {
					t.Error("the cache must remain readable")
				}
			}
			for range 3 {
				read()
			}
			if hot, whole := e.hot.Bytes(), e.keptBudget.used.Load(); hot != 0 || whole != 0 {
				t.Errorf("%d and %d bytes are still decoded", hot, whole)
			}
			if n := seen.alive(); n > 0 {
				t.Errorf("%d objects are still in memory", n)
			}
			if x := i.(*sharedInformer).table.keeper; x != nil && (x.timer == nil || x.timer.Stop()) {
				t.Error("the timer still runs")
			}
			runtime.KeepAlive(i)
		})
	}
}

func TestUndecodableObjectsAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(Options{Hot: 1})
		tb := newTable(e, Auto, cache.Indexers{"node": byNode}, nil)
		m := &undecodableLog{informer: e.newInformer(nil, unknown, &corev1.Pod{}, cache.SharedIndexInformerOptions{})}
		decodes := 0
		c := *newCodec(typeOfPod, tb.packing.parts)
		f := &form{undecodable: m, codec: &codec{typ: c.typ, format: c.format, decode: func([]byte) (any, error) {
			decodes++
			return nil, errors.New("a list where a map should be")
		}}}
		const n = 10
		var changes []change
		for k := range n {
			key := fmt.Sprint("a/bad", k)
			changes = append(changes, change{key: key, item: &item{form: f, v: tb.packing.packer.Pack(wire.JSON, key, "1", []byte(`{}`))}})
		}
		before := complaints.Load()
		tb.apply(changes, true, nil)
		for range 5 {
			tb.all()
			tb.get("a/bad1")
			(&notification{op: resynced, key: "a/bad2", new: changes[2].item}).deliver(&log{}, tb)
			(&notification{op: deleted, key: "a/bad3", old: changes[3].item}).deliver(&log{}, tb)
		}
		if got := m.n.Load(); got != n || decodes != n {
			t.Errorf("%d objects were counted %d times, and decoded %d times", n, got, decodes)
		}
		if said := complaints.Load() - before; said != 1 {
			t.Errorf("logged %d times within a minute", said)
		}
		pass(logUndecodableEvery)
		tb.apply([]change{{key: "a/worse", item: &item{form: f, v: tb.packing.packer.Pack(wire.JSON, "w", "2", []byte(`{}`))}}}, false, nil)
		if said := complaints.Load() - before; said != 2 || m.n.Load() != n+1 {
			t.Errorf("logged %d times in two minutes, of %d", said, m.n.Load())
		}
	})
}

// TestUnreadObjectsArePacked: an object stays decoded while it is read now and then, and for less than a minute
// afterwards.
func TestUnreadObjectsArePacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{}, 10)
		x := i.GetStore()
		first, _, _ := x.GetByKey("a/p1")
		for range 10 {
			pass(ageEvery)
			if again, _, _ := x.GetByKey("a/p1"); first != again {
				t.Fatal("an object that is read now and then is decoded again")
			}
		}
		pass(time.Minute)
		if n := e.Stats().Decoded; n > 0 {
			t.Errorf("%d unread bytes stay decoded", n)
		}
		if _, ok, _ := x.GetByKey("a/p1"); !ok {
			t.Error("not found")
		}
	})
}
