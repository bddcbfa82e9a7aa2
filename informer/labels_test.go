package informer_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestListBySelector: additions, changes and deletions after the first selector are visible to the next one.
func TestListBySelector(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		want := func(why, namespace, selector, keysWanted string) {
			t.Helper()
			synctest.Wait()
			if got := keys(all.List(namespace, must(labels.Parse(selector))(t))); got != keysWanted {
				t.Errorf("%s: %q in %q selects %q, want %q", why, selector, namespace, got, keysWanted)
			}
		}
		want("existing objects", "", "app in (one,two)", "a/one a/two b/one")
		want("again", "", "app", "a/one a/two b/one")
		server.Put(pods, "a", "one", podFields("late", "node-1"))
		server.Put(pods, "b", "new", podFields("late", "node-1"))
		want("labels that changed, and a new object", "", "app=late", "a/one b/new")
		want("the labels from before", "", "app=one", "b/one")
		want("in a namespace", "b", "app=late", "b/new")
		want("in none", "c", "app=late", "")
		want("all but", "", "app!=late", "a/two b/one")
		server.Put(pods, "b", "new", map[string]any{"spec": map[string]any{"nodeName": "node-1"}})
		want("labels removed", "", "!app", "b/new")
		server.Delete(pods, "a", "one")
		want("deleted", "", "app=late", "")
		server.Put(pods, "a", "one", podFields("one", "node-1"))
		want("the same name with a new UID", "", "app=one", "a/one b/one")
		server.Compact()
		server.CloseWatches()
		server.Put(pods, "c", "relisted", podFields("one", "node-1"))
		want("through a list", "", "app=one", "a/one b/one c/relisted")
	})
}

// TestListBySelectorIsAtomic: a selector of two labels finds an object that moves between them, exactly once.
func TestListBySelectorIsAtomic(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		server.Put(pods, "m", "moves", podFields("here", "n"))
		synctest.Wait()
		var readers sync.WaitGroup
		for _, text := range []string{"app in (here,there)", "app notin (one,two)", "app,app!=one,app!=two"} {
			selector := must(labels.Parse(text))(t)
			readers.Go(func() {
				for range 300 {
					if got := keys(all.List("", selector)); got != "m/moves" {
						t.Errorf("%s: %q", text, got)
						return
					}
					runtime.Gosched()
				}
			})
		}
		for i := range 150 {
			server.Put(pods, "m", "moves", podFields([]string{"there", "here"}[i%2], "n"))
			runtime.Gosched()
		}
		readers.Wait()
	})
}

// somePod is a pod of some 3 KB of JSON.
func somePod(i, apps int) map[string]any {
	app := fmt.Sprint("app-", i%apps)
	var containers []any
	for _, name := range []string{"main", "proxy"} {
		var env []any
		for j := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprint("SETTING_", j), "value": fmt.Sprintf("http://%s.%s.svc.cluster.local:80%d", app, name, j)})
		}
		containers = append(containers, map[string]any{"name": name, "image": "registry.example.com/" + app + "/" + name + ":1.2.3", "env": env,
			"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "256Mi"}}})
	}
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": app, "pod-template-hash": fmt.Sprintf("5d7f%04d", i%apps), "team": fmt.Sprint("team-", i%7)},
			"annotations": map[string]any{"note": strings.Repeat("some text ", 20)}},
		"spec":   map[string]any{"nodeName": fmt.Sprint("node-", i%500), "serviceAccountName": app, "containers": containers},
		"status": map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.0.%d.%d", i/250, i%250)},
	}
}

// BenchmarkListSelector selects 1 % of 20,000 pods: from a view, from a shared view, and by client-go's lister, which
// returns shared objects as well.
func BenchmarkListSelector(b *testing.B) {
	const n, apps = 20_000, 100
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	for i := range n {
		server.Put(pods, fmt.Sprint("ns-", i%10), fmt.Sprint("p", i), somePod(i, apps))
	}
	c, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
	if err != nil {
		b.Fatal(err)
	}
	view, err := informer.For[*corev1.Pod](c)
	if err != nil {
		b.Fatal(err)
	}
	defer start(c)()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for p, err := range view.All() {
		if err != nil || indexer.Add(p) != nil {
			b.Fatal(err)
		}
	}
	lister := corelisters.NewPodLister(indexer)
	list := func(i *informer.Informer[*corev1.Pod], s labels.Selector) int {
		found, err := informer.Collect(i.List("", s))
		if err != nil {
			b.Fatal(err)
		}
		return len(found)
	}
	for _, text := range []string{"app=app-7", "app in (app-7),team!=none", "app in (app-7),!nothing"} {
		s, err := labels.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		for name, f := range map[string]func() int{
			"private": func() int { return list(view, s) },
			"shared":  func() int { return list(view.Shared(), s) },
			"client-go": func() int {
				found, err := lister.List(s)
				if err != nil {
					b.Fatal(err)
				}
				return len(found)
			},
		} {
			b.Run(text+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if got := f(); got != n/apps {
						b.Fatalf("%d pods", got)
					}
				}
			})
		}
	}
}
