package informertest_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestHistory: the events of a watch from 1001 with bookmarks, after each scenario.
func TestHistory(t *testing.T) {
	for _, c := range []struct {
		why  string
		do   func(*informertest.Server)
		want string
	}{
		{"an object recreated under its name is another one", func(s *informertest.Server) { s.Delete(pods, "n", "b"); s.Put(pods, "n", "b", nil) },
			"A b 1002, D b 1003, A b 1004, BOOKMARK 1004"},
		{"writes to other kinds only increase the version", func(s *informertest.Server) { s.Put(widgets, "n", "w", nil) }, "A b 1002, BOOKMARK 1003"},
		{"a missing object is not deleted", func(s *informertest.Server) { s.Delete(pods, "n", "x") }, "A b 1002, BOOKMARK 1002"},
		{"compacted", (*informertest.Server).Compact, "ERROR 410"},
		{"from the future", func(s *informertest.Server) { s.SetVersion(5000); s.Put(pods, "n", "c", nil) }, "A b 1002, A c 5001, BOOKMARK 5001"},
		{"a version from the past: the watch is ahead and receives nothing", func(s *informertest.Server) { s.SetVersion(900); s.Put(pods, "n", "c", nil) }, ""},
		{"until it overtakes us", func(s *informertest.Server) {
			s.SetVersion(1000)
			s.Put(pods, "n", "c", nil)
			s.Put(pods, "n", "d", nil)
		},
			"A d 1002, BOOKMARK 1002"},
		{"another history", func(s *informertest.Server) {
			backup := s.Snapshot()
			s.Put(pods, "n", "c", nil)
			s.Restore(backup)
			s.Put(pods, "n", "d", nil)
		}, "ERROR 410"},
		{"a bounded history that is long enough", func(s *informertest.Server) { s.KeepHistory(3); put(s, 2) }, "A b 1002, A p 1003, M p 1004, BOOKMARK 1004"},
		{"or not", func(s *informertest.Server) { s.KeepHistory(3); put(s, 100) }, "ERROR 410"},
	} {
		t.Run(c.why, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				c.do(s)
				uri := "/api/v1/pods?watch=1&timeoutSeconds=5&allowWatchBookmarks=1&resourceVersion=1001"
				check(t, "a watch", events(t, s, uri, accept), c.want)
			})
		})
	}
}

// put updates a pod n times.
func put(s *informertest.Server, n int) {
	for range n {
		s.Put(pods, "n", "p", nil)
	}
}

// TestRestore: objects are back, with their UIDs; objects created since are gone.
func TestRestore(t *testing.T) {
	s := two()
	backup := s.Snapshot()
	s.Delete(pods, "n", "a")
	s.Put(pods, "n", "b", nil)
	s.Put(widgets, "n", "w", nil)
	s.Restore(backup)
	if got, want := s.Version(), "1002"; got != want {
		t.Errorf("version %s, want %s", got, want)
	}
	for key, want := range map[string]string{"n/a": "uid-1 1001", "n/b": "uid-2 1002"} {
		m := s.Objects(pods)[key]["metadata"].(map[string]any)
		if got := fmt.Sprint(m["uid"], " ", m["resourceVersion"]); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if n := len(s.Objects(widgets)); n != 0 {
		t.Errorf("%d widgets, want none", n)
	}
}

// TestBoundedHistoryKeepsOpenWatches: a watch that keeps up receives everything, however short the history.
func TestBoundedHistoryKeepsOpenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.KeepHistory(1)
		go func() {
			for range 100 {
				synctest.Wait()
				s.Put(pods, "n", "a", nil)
			}
		}()
		got := events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", "")
		if n := strings.Count(got, "M a "); n != 100 || strings.Contains(got, "ERROR") {
			t.Errorf("%d events: %s", n, got)
		}
	})
}

// TestCompactedBeneathAWatch: a watch that has sent everything is not behind, whatever kind was written last,
// and continues; any other is expired.
func TestCompactedBeneathAWatch(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		go func() {
			s.Put(pods, "n", "a", nil)
			s.Put(widgets, "n", "w", nil)
			synctest.Wait()
			s.Compact()
			synctest.Wait()
			s.Put(pods, "n", "a", nil)
			synctest.Wait()
			s.Skip(1) // sends nothing
			s.Compact()
		}()
		got := events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", accept)
		check(t, "a watch", got, "M a 1003, M a 1005, ERROR 410")
	})
}

// TestCompactedAtOnce: it does not matter whether a watch has run between a write to another kind and the
// compaction: none of its events was forgotten.
func TestCompactedAtOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		go func() {
			synctest.Wait()
			s.Mute(true) // so that it cannot have sent anything
			s.Put(widgets, "n", "w", nil)
			s.Compact()
			s.Mute(false)
			synctest.Wait()
			s.Put(pods, "n", "a", nil)
		}()
		check(t, "a watch", events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", accept), "M a 1004")
	})
}

// TestMoveHasNoHistory: events under the old version are not sent under the new one, and a watch that requests
// them gets an error.
func TestMoveHasNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.Put(pods, "n", "a", nil)
		s.Move(pods, "v2")
		s.Put(pods.GroupResource().WithVersion("v2"), "n", "b", nil)
		check(t, "from before", events(t, s, "/api/v2/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", ""), "ERROR 410")
		check(t, "from then", events(t, s, "/api/v2/pods?watch=1&timeoutSeconds=5&resourceVersion=1003", ""), "M b 1004")
	})
}

// TestSetBackBeneathAWatch: if the server goes back to an older version before a watch has sent the last
// change, the watch is silent until the server overtakes it.
func TestSetBackBeneathAWatch(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		go func() {
			synctest.Wait()
			s.Mute(true)
			s.Put(pods, "n", "a", nil)
			s.SetVersion(900)
			s.Mute(false)
			synctest.Wait()
			s.Put(pods, "n", "b", nil)
			synctest.Wait()
			s.SetVersion(1999)
			s.Put(pods, "n", "a", nil)
		}()
		check(t, "a watch", events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", accept), "M a 2000")
	})
}

// TestWatchFromTheFuture receives nothing before its version.
func TestWatchFromTheFuture(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		go func() {
			synctest.Wait()
			s.Put(pods, "n", "a", nil)
			s.Bookmark()
			synctest.Wait()
			s.SetVersion(2000)
			s.Put(pods, "n", "b", nil)
		}()
		check(t, "a watch", events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=2000", accept), "M b 2001")
	})
}

// TestServeGenerated: objects that the server does not store can be listed, watched and changed.
func TestServeGenerated(t *testing.T) {
	inBothForms(t, func(t *testing.T, _ *informertest.Server, accept string) {
		s := informertest.NewServer()
		var made atomic.Int32
		s.ServeGenerated(pods, "Pod", 3, func(i int) runtime.Object {
			made.Add(1)
			return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "x"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("p", i), Labels: map[string]string{"i": fmt.Sprint(i)}}}
		})
		for range 2 {
			made.Store(0)
			b := body(t, s, "/api/v1/pods", accept, accept)
			if n := made.Load(); n != 3 || bytes.Contains(b, []byte(`"kind":"x"`)) {
				t.Errorf("a list made %d objects, want 3 each time: %q", n, b)
			}
		}
		all := events(t, s, "/api/v1/pods"+streamingList, accept)
		if want := "A p1 1002, A p0 1001, A p2 1003, END 1003, BOOKMARK 1003"; all != want {
			t.Errorf("got %s\nwant %s", all, want)
		}
		check(t, "by label", events(t, s, "/api/v1/pods"+streamingList+"&labelSelector=i%3D1", accept), "A p1 1002, END 1003, BOOKMARK 1003")
		go func() {
			synctest.Wait()
			s.Put(pods, "n", "p0", nil)
			s.Delete(pods, "n", "p1")
		}()
		check(t, "changes", events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1003", accept), "M p0 1004, D p1 1005")
		check(t, "from before", events(t, s, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", accept), "ERROR 410")
		want := string(body(t, s, "/api/v1/pods", accept, accept))
		page := string(body(t, s, "/api/v1/pods?limit=1", accept, accept))
		if !strings.Contains(want, "p2") || strings.Contains(want, "p1") || strings.Contains(page, "p2") || !strings.Contains(page, "uid-1") {
			t.Errorf("listed %q, its first page %q", want, page)
		}
	})
}

// TestPutObject: the stored object, and invalid objects.
func TestPutObject(t *testing.T) {
	s := two()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "x"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "own"}}
	}
	s.PutObject(pods, pod("new"))
	s.PutObject(pods, pod("a"))
	s.PutObject(widgets, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "n", "name": "w"}, "spec": "s"}})
	for _, c := range []struct{ why, key, want string }{
		{"a new object has its own UID", "n/new", "v1 Pod own 1003"},
		{"an existing object keeps its UID", "n/a", "v1 Pod uid-1 1004"},
		{"a custom resource", "n/w", "example.com/v1 Widget uid-3 1005"},
	} {
		o := s.Objects(pods)[c.key]
		if o == nil {
			o = s.Objects(widgets)[c.key]
		}
		m := o["metadata"].(map[string]any)
		if got := fmt.Sprint(o["apiVersion"], " ", o["kind"], " ", m["uid"], " ", m["resourceVersion"]); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
	for name, o := range map[string]runtime.Object{"of another kind": &corev1.Service{}, "a list": &corev1.PodList{}, "a status": &metav1.Status{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted as a pod", name)
				}
			}()
			s.PutObject(pods, o)
		}()
	}
}

// TestServeTyped: a kind unknown to client-go has protobuf if its type has.
func TestServeTyped(t *testing.T) {
	s := informertest.NewServer()
	s.ServeTyped(widgets, "Widget", func() runtime.Object { return &corev1.ConfigMap{} })
	s.PutObject(widgets, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w"}, Data: map[string]string{"k": "v"}})
	var u runtime.Unknown
	if err := u.Unmarshal(body(t, s, "/apis/example.com/v1/widgets", acceptProtobuf, acceptProtobuf)[4:]); err != nil {
		t.Fatal(err)
	}
	var l corev1.ConfigMapList
	if err := l.Unmarshal(u.Raw); err != nil {
		t.Fatal(err)
	}
	if u.APIVersion != "example.com/v1" || u.Kind != "WidgetList" || len(l.Items) != 1 || l.Items[0].Data["k"] != "v" {
		t.Errorf("got a %s %s: %v", u.APIVersion, u.Kind, l)
	}
	s.ServeTyped(widgets, "Widget", func() runtime.Object { return &unstructured.Unstructured{} })
	if got := answer(t, s, "/apis/example.com/v1/widgets", acceptProtobuf); !strings.HasPrefix(got, "406") {
		t.Errorf("a type without protobuf: %s", got)
	}
}

// TestConcurrency: concurrent writers, watchers and listers; everyone ends with the final state.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.KeepHistory(50)
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				for i := range 50 {
					name := fmt.Sprintf("p-%d-%d", w, i%5)
					s.Put(pods, "n", name, nil)
					if i%3 == 0 {
						s.Delete(pods, "n", name)
					}
				}
			})
		}
		for i := range 4 {
			accept := []string{"application/json", acceptProtobuf}[i%2]
			all.Go(func() {
				got := events(t, s, "/api/v1/pods"+streamingList, accept)
				for strings.Contains(got, "ERROR 410") { // too slow until the writers end
					got = events(t, s, "/api/v1/pods"+streamingList, accept)
				}
				names := map[string]bool{}
				for e := range strings.SplitSeq(got, ", ") {
					switch f := strings.Fields(e); f[0] {
					case "A", "M":
						names[f[1]] = true
					case "D":
						delete(names, f[1])
					}
				}
				if want := len(s.Objects(pods)); len(names) != want {
					t.Errorf("received %d objects, want %d: %s", len(names), want, got)
				}
			})
			all.Go(func() {
				for range 20 {
					answer(t, s, "/api/v1/pods?limit=3", accept)
				}
			})
		}
		all.Wait()
	})
}
