package clientgo

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"
)

// streamer is a server that lists in the form of a watch.
type streamer struct{ *server }

func (streamer) IsWatchListSemanticsUnSupported() bool { return false }

func (s streamer) Watch(o metav1.ListOptions) (watch.Interface, error) {
	w, err := s.server.Watch(o)
	if err != nil || o.SendInitialEvents == nil || !*o.SendInitialEvents {
		return w, err
	}
	f := w.(*watch.FakeWatcher)
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.objs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		f.Add(s.objs[k].DeepCopy())
	}
	if p := s.objs["a/fleeting"]; p != nil { // deleted during the list
		f.Delete(p.DeepCopy())
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(s.version),
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	f.Action(watch.Bookmark, end)
	return f, nil
}

func TestStreamingList(t *testing.T) {
	eachMaker(t, func(t *testing.T, m maker) {
		s := streamer{newServer(pod("a/one", "1", "n1"), pod("a/two", "2", "n1"), pod("a/fleeting", "3", "n1"))}
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
		if err := i.SetTransform(func(obj any) (any, error) {
			obj.(*corev1.Pod).Labels = map[string]string{"transformed": "yes"}
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		var l log
		r := handle(t, i, &l)
		start(t, i)
		got := l.take()
		slices.Sort(got)
		expect(t, "the list", got, "initial a/one(1 on n1)", "initial a/two(2 on n1)")
		if !r.HasSynced() || i.LastSyncResourceVersion() != "103" || s.lists != 0 {
			t.Errorf("synced %v at %q with %d lists", r.HasSynced(), i.LastSyncResourceVersion(), s.lists)
		}
		for _, obj := range i.GetStore().List() {
			if obj.(*corev1.Pod).Labels["transformed"] != "yes" {
				t.Errorf("%s is not transformed", show(obj))
			}
		}
		s.modify(pod("a/one", "1", "n2"))
		expect(t, "the same watch continues", l.take(), "update a/one(1 on n1) -> a/one(1 on n2)")
		s.lose("a/two")
		s.relist()
		got = l.take()
		expect(t, "what was missed", got[:1], "missed a/two a/two(2 on n1)")
	})
}

func TestTransformsAreCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewSharedIndexInformer(streamer{newServer(pod("a/one", "1", "n1"))}, &corev1.Pod{}, 0, cache.Indexers{})
		var calls atomic.Int32
		if err := i.SetTransform(func(obj any) (any, error) {
			calls.Add(1)
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		if n := calls.Load(); n != 1 {
			t.Errorf("called %d times", n)
		}
	})
}

// TestConsistencyDetector: the comparison of streaming lists with lists gets objects, not packed ones.
func TestConsistencyDetector(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	synctest.Test(t, func(t *testing.T) {
		i := NewSharedIndexInformer(streamer{newServer(pod("a/one", "1", "n1"))}, &corev1.Pod{}, 0, cache.Indexers{})
		start(t, i)
		if !i.HasSynced() || len(i.GetStore().List()) != 1 {
			t.Error("not synced")
		}
	})
}

func TestAHandlerThatPanicsIsCalledAgainAfterASecond(t *testing.T) {
	defer func(really bool) { utilruntime.ReallyCrash = really }(utilruntime.ReallyCrash)
	utilruntime.ReallyCrash = false
	eachMaker(t, func(t *testing.T, m maker) {
		s := newServer(pod("a/one", "1", "n1"))
		i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
		var l log
		handle(t, i, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { l.OnAdd(obj, false) },
			UpdateFunc: func(any, any) { panic("no updates, please") },
		})
		start(t, i)
		s.modify(pod("a/one", "1", "n2"))
		s.add(pod("a/two", "2", "n1"))
		expect(t, "it pauses for a second", l.take(), "add a/one(1 on n1)")
		pass(minPeriod)
		expect(t, "and gets the next notification", l.take(), "add a/two(2 on n1)")
	})
}
