package clientgo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// carryOn keeps panics from ending the process.
func carryOn(t *testing.T) {
	t.Helper()
	really := utilruntime.ReallyCrash
	t.Cleanup(func() { utilruntime.ReallyCrash = really })
	utilruntime.ReallyCrash = false
}

// bothLists runs a test with a server that lists in pages, and with one that lists in the form of a watch.
func bothLists(t *testing.T, f func(t *testing.T, s *server, lw cache.ListerWatcher)) {
	t.Helper()
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprint("streams ", streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(pod("a/good", "1", "n1"), pod("a/bad", "2", "bad"), pod("a/other", "3", "n1"))
				if streams {
					f(t, s, streamer{s})
				} else {
					f(t, s, s)
				}
			})
		})
	}
}

// names returns the names of an informer's objects.
func names(objs []any) (out []string) {
	for _, o := range objs {
		out = append(out, o.(*corev1.Pod).Name)
	}
	slices.Sort(out)
	return out
}

func TestAnIndexThatFailsLosesNothingElse(t *testing.T) {
	carryOn(t)
	for what, f := range map[string]cache.IndexFunc{
		"an error": func(obj any) ([]string, error) {
			if obj.(*corev1.Pod).Spec.NodeName == "bad" {
				return nil, errors.New("no node")
			}
			return byNode(obj)
		},
		"a panic": func(obj any) ([]string, error) {
			if obj.(*corev1.Pod).Spec.NodeName == "bad" {
				panic("no node")
			}
			return byNode(obj)
		},
	} {
		t.Run(what, func(t *testing.T) {
			bothLists(t, func(t *testing.T, s *server, lw cache.ListerWatcher) {
				i := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{"broken": f, "node": byNode})
				var l log
				r := handle(t, i, &l)
				start(t, i)
				if !i.HasSynced() || !r.HasSynced() {
					t.Error("not synced")
				}
				got := l.take()
				slices.Sort(got)
				expect(t, "all are delivered", got, "initial a/bad(2 on bad)", "initial a/good(1 on n1)", "initial a/other(3 on n1)")
				expect(t, "and stored", names(i.GetStore().List()), "bad", "good", "other")
				check := func(what, index, value string, want ...string) {
					t.Helper()
					objs, err := i.GetIndexer().ByIndex(index, value)
					if err != nil {
						t.Error(err)
					}
					expect(t, what, names(objs), want...)
				}
				check("the index has the others", "broken", "n1", "good", "other")
				check("but not that", "broken", "bad")
				check("another has it", "node", "bad", "bad")
				s.modify(pod("a/good", "1", "bad"))
				s.modify(pod("a/bad", "2", "n1"))
				s.add(pod("a/new", "4", "bad"))
				expect(t, "changes are delivered", l.take(), "update a/good(1 on n1) -> a/good(1 on bad)",
					"update a/bad(2 on bad) -> a/bad(2 on n1)", "add a/new(4 on bad)")
				check("failed objects have left it", "broken", "n1", "bad", "other")
				check("another has them", "node", "bad", "good", "new")
				s.remove("a/good")
				expect(t, "the end, too", l.take(), "delete a/good(1 on bad)")
			})
		})
	}
}

func TestWhoWritesByHandHearsOfIndexesThatFail(t *testing.T) {
	carryOn(t)
	eachMaker(t, func(t *testing.T, m maker) {
		i := m(newServer(), &corev1.Pod{}, 0, cache.Indexers{"broken": func(any) ([]string, error) { return nil, errors.New("broken") }})
		defer func() {
			if r := fmt.Sprint(recover()); !strings.Contains(r, `unable to calculate an index entry for key "a/one" on index "broken"`) {
				t.Errorf("panicked with %v", r)
			}
		}()
		t.Errorf("no panic, but %v", i.GetStore().Add(pod("a/one", "1", "n1")))
	})
}

func TestAListIsNotSyncedWithoutWhatATransformFailsOn(t *testing.T) {
	carryOn(t)
	for what, fail := range map[string]func() error{
		"an error": func() error { return errors.New("not now") },
		"a panic":  func() error { panic("not now") },
	} {
		t.Run(what, func(t *testing.T) {
			bothLists(t, func(t *testing.T, s *server, lw cache.ListerWatcher) {
				i := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
				var works atomic.Bool
				failures := make(chan string, 100)
				err := errors.Join(i.SetTransform(func(obj any) (any, error) {
					if obj.(*corev1.Pod).Name == "bad" && !works.Load() {
						return nil, fail()
					}
					return obj, nil
				}), i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failures <- err.Error() }))
				if err != nil {
					t.Fatal(err)
				}
				var l log
				r := handle(t, i, &l)
				start(t, i)
				pass(time.Minute)
				if i.HasSynced() || r.HasSynced() || len(i.GetStore().List()) > 0 {
					t.Errorf("synced with %v", names(i.GetStore().List()))
				}
				if what == "an error" {
					if first := <-failures; !strings.Contains(first, "transform a/bad: not now") {
						t.Errorf("the watch error handler got %q", first)
					}
				}
				works.Store(true)
				pass(2 * time.Minute)
				if !i.HasSynced() || !r.HasSynced() {
					t.Error("not synced")
				}
				expect(t, "all is there", names(i.GetStore().List()), "bad", "good", "other")
				if got := l.take(); len(got) != 3 {
					t.Errorf("got %q", got)
				}
				works.Store(false)
				s.modify(pod("a/bad", "2", "n2"))
				pass(2 * time.Second)
				expect(t, "an object that cannot be transformed keeps its last state", names(i.GetStore().List()), "bad", "good", "other")
				works.Store(true)
				pass(2 * time.Minute)
				s.modify(pod("a/bad", "2", "n3"))
				synctest.Wait()
				if p, ok, _ := i.GetStore().GetByKey("a/bad"); !ok || p.(*corev1.Pod).Spec.NodeName != "n3" {
					t.Errorf("it is %v", p)
				}
				works.Store(false)
				if s.remove("a/bad"); what == "an error" {
					synctest.Wait()
					expect(t, "but when it is deleted, it goes", names(i.GetStore().List()), "good", "other")
				}
				works.Store(true)
				pass(2 * time.Minute)
				expect(t, "in any case", names(i.GetStore().List()), "good", "other")
			})
		})
	}
}

func TestWhatATransformMakesNothingOfIsLeftOut(t *testing.T) {
	for what, nothing := range map[string]any{"nil": nil, "a nil pointer": (*corev1.Pod)(nil)} {
		t.Run(what, func(t *testing.T) {
			bothLists(t, func(t *testing.T, s *server, lw cache.ListerWatcher) {
				e := newEngine(Options{})
				i := e.NewInformer(lw, &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
				if err := i.SetTransform(func(obj any) (any, error) {
					if obj.(*corev1.Pod).Spec.NodeName == "bad" {
						return nothing, nil
					}
					return obj, nil
				}); err != nil {
					t.Fatal(err)
				}
				var l log
				r := handle(t, i, &l)
				start(t, i)
				if !i.HasSynced() || !r.HasSynced() {
					t.Error("not synced")
				}
				expect(t, "the others are there", names(i.GetStore().List()), "good", "other")
				l.take()
				s.remove("a/bad")
				s.add(pod("a/worse", "5", "bad"))
				expect(t, "objects that are left out are not delivered", l.take())
				s.modify(pod("a/good", "1", "bad"))
				expect(t, "an object that is now left out is deleted", l.take(), "missed a/good a/good(1 on n1)")
				s.modify(pod("a/worse", "5", "n1"))
				expect(t, "and one no longer left out is added", l.take(), "add a/worse(5 on n1)")
				expect(t, "which the cache shows", names(i.GetStore().List()), "other", "worse")
				if n := e.Stats().Informers[0].LeftOut; n != 3 {
					t.Errorf("%d objects were left out, want 3", n)
				}
			})
		})
	}
}
