package clientgo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Each test checks one guarantee of client-go's SharedInformer, and also runs against client-go's informer.

func TestHandlersHearInOrder(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var early, late log
		handle(t, i, &early)
		start(t, i)
		expect(t, "the first list", early.take(), "initial a/one(1 on n1)")
		s.add(pod("a/two", "2", "n1"))
		s.modify(pod("a/two", "2", "n2"))
		s.remove("a/one")
		expect(t, "changes", early.take(), "add a/two(2 on n1)", "update a/two(2 on n1) -> a/two(2 on n2)", "delete a/one(1 on n1)")
		handle(t, i, &late)
		expect(t, "a late handler starts with what is there", late.take(), "initial a/two(2 on n2)")
		s.modify(pod("a/two", "2", "n3"))
		want := "update a/two(2 on n2) -> a/two(2 on n3)"
		expect(t, "then receives changes", late.take(), want)
		expect(t, "as does the other", early.take(), want)
	})
}

func TestRelist(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/gone", "1", "n1"), pod("a/same", "2", "n1"), pod("a/moved", "3", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var l log
		handle(t, i, &l)
		start(t, i)
		l.take()
		s.lose("a/gone")
		s.set(pod("a/moved", "3", "n2"))
		s.set(pod("a/new", "4", "n1"))
		s.relist()
		got := l.take()
		expect(t, "deletions come first, with the last known state", got[:1], "missed a/gone a/gone(1 on n1)")
		slices.Sort(got)
		expect(t, "all of them; unchanged objects, too, before the first resync", got,
			"add a/new(4 on n1)", "missed a/gone a/gone(1 on n1)",
			"update a/moved(3 on n1) -> a/moved(3 on n2)", "update a/same(2 on n1) -> a/same(2 on n1)")
	})
}

func TestDeletedIsTheLastWord(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		versions := make(chan string, 1)
		handle(t, i, cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { versions <- obj.(*corev1.Pod).ResourceVersion }})
		start(t, i)
		s.remove("a/one")
		if v := <-versions; v != "102" {
			t.Errorf("a deletion has version %s, want that of the watch event", v)
		}
	})
}

func TestDeletionOfTheUnknownIsTold(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer()
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var l log
		handle(t, i, &l)
		start(t, i)
		s.notify(watch.Deleted, pod("a/never", "1", "n1"))
		expect(t, "client-go delivers the watch's last state", l.take(), "delete a/never(1 on n1)")
	})
}

func TestRecreatedIsAnUpdate(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var l log
		handle(t, i, &l)
		start(t, i)
		l.take()
		s.modify(pod("a/one", "2", "n1"))
		expect(t, "another UID", l.take(), "update a/one(1 on n1) -> a/one(2 on n1)")
	})
}

func TestVersionsAreNotJudged(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer()
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var l log
		handle(t, i, &l)
		start(t, i)
		for _, node := range []string{"n1", "n2", "n3"} {
			p := pod("a/one", "", node)
			p.ResourceVersion = map[string]string{"n1": "", "n2": "7", "n3": "5"}[node]
			s.notify(watch.Modified, p)
		}
		expect(t, "fakes leave UIDs and versions empty, or do not count", l.take(),
			"add a/one( on n1)", "update a/one( on n1) -> a/one( on n2)", "update a/one( on n2) -> a/one( on n3)")
	})
}

func TestResync(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, time.Minute, cache.Indexers{})
		var often, never log
		handle(t, i, &often)
		if _, err := i.AddEventHandlerWithResyncPeriod(&never, 0); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		expect(t, "both start alike", append(often.take(), never.take()...), "initial a/one(1 on n1)", "initial a/one(1 on n1)")
		pass(time.Minute + time.Second)
		expect(t, "a handler with a resync period is notified, with one pointer as old and new", often.take(), "same a/one(1 on n1)")
		expect(t, "a handler without one is not", never.take())
		s.relist()
		expect(t, "nor by a relist without differences", never.take())
	})
}

func TestRegistrationSyncsWithItsHandler(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"), pod("a/two", "2", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		l := log{gate: make(chan struct{})}
		r := handle(t, i, &l)
		if i.HasSynced() || r.HasSynced() {
			t.Error("synced before it ran")
		}
		start(t, i)
		if !i.HasSynced() || !cache.IsDone(i.HasSyncedChecker()) {
			t.Error("the informer has its list")
		}
		if r.HasSynced() {
			t.Error("the handler has received nothing yet")
		}
		l.gate <- struct{}{}
		synctest.Wait()
		if r.HasSynced() {
			t.Error("the handler has received half")
		}
		l.gate <- struct{}{}
		synctest.Wait()
		if !r.HasSynced() || !cache.IsDone(r.HasSyncedChecker()) {
			t.Error("the handler has received everything")
		}
		want := "SharedIndexInformer *v1.Pod + event handler github.com/tattler-dev/tattler/informer/clientgo.log"
		if got := r.HasSyncedChecker().Name(); got != want {
			t.Errorf("it is called %q, want %q", got, want)
		}
	})
}

func TestAnEmptyListIsASync(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		i := m(newServer(), &corev1.Pod{}, 0, cache.Indexers{})
		r := handle(t, i, &log{})
		start(t, i)
		if !i.HasSynced() || !r.HasSynced() {
			t.Error("not synced")
		}
	})
}

func TestRemoveEventHandler(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var kept, removed, early log
		handle(t, i, &kept)
		if r := handle(t, i, &early); i.RemoveEventHandler(r) != nil || cache.ShutDownEventHandler(i, r) != nil {
			t.Error("a handler can be removed, again and again, before the informer runs")
		}
		r := handle(t, i, &removed)
		start(t, i)
		kept.take()
		removed.take()
		if err := cache.ShutDownEventHandler(i, r); err != nil {
			t.Error(err)
		}
		s.add(pod("a/two", "2", "n1"))
		expect(t, "the others go on", kept.take(), "add a/two(2 on n1)")
		expect(t, "a removed one receives nothing", append(removed.take(), early.take()...))
		if err := i.RemoveEventHandler(r); err != nil {
			t.Errorf("removing it again must not fail: %v", err)
		}
		if err := i.RemoveEventHandler(nil); err == nil {
			t.Error("removing a foreign registration must fail")
		}
	})
}

func TestStop(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		stop := start(t, i)
		again := make(chan struct{})
		go func() {
			defer close(again)
			i.Run(nil)
		}()
		<-again // a second run does nothing
		if i.IsStopped() {
			t.Error("stopped while it runs")
		}
		stop()
		if !i.IsStopped() || !i.HasSynced() {
			t.Error("a stopped informer is stopped, and stays synced")
		}
		if _, err := i.AddEventHandler(&log{}); err == nil {
			t.Error("a handler joined a stopped informer")
		}
		if err := i.AddIndexers(cache.Indexers{"x": byNode}); err == nil {
			t.Error("an index was added to a stopped informer")
		}
		if _, ok, _ := i.GetStore().GetByKey("a/one"); !ok {
			t.Error("what was cached can still be read")
		}
	})
}

func TestSettingsAreForBeforeTheStart(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		s.fail = errors.New("no list today")
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var failed error
		errs := errors.Join(
			i.SetTransform(func(obj any) (any, error) {
				obj.(*corev1.Pod).Spec.NodeName = "hidden"
				return obj, nil
			}),
			i.SetWatchErrorHandler(func(*cache.Reflector, error) { t.Error("the last handler counts") }),
			i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { failed = err }),
		)
		if errs != nil {
			t.Fatal(errs)
		}
		var l log
		handle(t, i, &l)
		start(t, i)
		pass(time.Minute)
		if failed == nil || failed.Error() != "failed to list *v1.Pod: no list today" {
			t.Errorf("the error handler got %v", failed)
		}
		expect(t, "transformed", l.take(), "initial a/one(1 on hidden)")
		s.remove("a/one")
		expect(t, "deletions, too", l.take(), "delete a/one(1 on hidden)")
		for what, err := range map[string]error{
			"SetTransform":                    i.SetTransform(nil),
			"SetWatchErrorHandler":            i.SetWatchErrorHandler(nil),
			"SetWatchErrorHandlerWithContext": i.SetWatchErrorHandlerWithContext(nil),
		} {
			if err == nil || err.Error() != "informer has already started" {
				t.Errorf("%s of a running informer: %v", what, err)
			}
		}
	})
}

func TestVersions(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		if v := i.LastSyncResourceVersion(); v != "" {
			t.Errorf("version %q before it ran", v)
		}
		start(t, i)
		check := func(what, want string) {
			synctest.Wait()
			t.Helper()
			got := []string{i.LastSyncResourceVersion(), i.GetController().LastSyncResourceVersion(), i.GetStore().LastStoreSyncResourceVersion()}
			expect(t, what, got, want, want, want)
		}
		check("the list's", "101")
		s.add(pod("a/two", "2", "n1"))
		check("an event's", "102")
		s.remove("a/two")
		check("a deletion's", "103")
		b := &corev1.Pod{}
		b.ResourceVersion = "200"
		s.notify(watch.Bookmark, b)
		check("a bookmark's", "200")
	})
}

// byNode is an index function.
func byNode(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }

func TestIndexes(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"), pod("a/two", "2", "n2"), pod("b/three", "3", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := i.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		if err := i.AddIndexers(cache.Indexers{"late": byNode}); err != nil {
			t.Fatal(err)
		}
		if err := i.AddIndexers(cache.Indexers{"late": byNode, "other": byNode}); err == nil || err.Error() != "indexer conflict: map[late:{}]" {
			t.Errorf("an existing name: %v", err)
		}
		x := i.GetIndexer()
		check := func(what, index, value string, want ...string) {
			t.Helper()
			keys, err := x.IndexKeys(index, value)
			if err != nil {
				t.Error(err)
			}
			expect(t, what, keys, want...)
			objs, err := x.ByIndex(index, value)
			if err != nil {
				t.Error(err)
			}
			var got []string
			for _, o := range objs {
				got = append(got, podKey(o.(*corev1.Pod)))
			}
			slices.Sort(got)
			expect(t, what+", objects", got, want...)
		}
		check("the namespace's", cache.NamespaceIndex, "a", "a/one", "a/two")
		check("the node's", "node", "n1", "a/one", "b/three")
		check("of an index that came late", "late", "n1", "a/one", "b/three")
		s.modify(pod("a/one", "1", "n2"))
		s.remove("b/three")
		s.add(pod("c/four", "4", "n3"))
		synctest.Wait()
		check("it moved away", "node", "n1")
		check("and is there", "late", "n2", "a/one", "a/two")
		check("a namespace that is gone", cache.NamespaceIndex, "b")
		values := x.ListIndexFuncValues("node")
		slices.Sort(values)
		expect(t, "values", values, "n2", "n3")
		objs, err := x.Index("node", pod("x/y", "", "n3"))
		expect(t, "like another object", []string{fmt.Sprint(len(objs)), fmt.Sprint(err)}, "1", "<nil>")
		for _, f := range []func() error{
			func() error { _, err := x.ByIndex("no", ""); return err },
			func() error { _, err := x.IndexKeys("no", ""); return err },
			func() error { _, err := x.Index("no", pod("x/y", "", "")); return err },
		} {
			if err := f(); err == nil || err.Error() != "Index with name no does not exist" {
				t.Errorf("a missing index: %v", err)
			}
		}
		if got := len(x.GetIndexers()); got != 3 {
			t.Errorf("%d indexers, want 3", got)
		}
	})
}
