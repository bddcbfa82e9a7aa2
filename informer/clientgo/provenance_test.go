package clientgo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestProvenance: the type of a client decides whether its responses are taken undecoded.
func TestProvenance(t *testing.T) {
	cfg := &rest.Config{Host: "http://nowhere.invalid"}
	typed := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(cfg))
	dyn := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(cfg)).Resource(pods)
	meta := must[metadata.Interface](t)(metadata.NewForConfig(cfg)).Resource(pods)
	fakeDyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"}).Resource(pods)
	fakeMeta := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()).Resource(pods)
	for _, tc := range []struct {
		why                    string
		lw                     cache.ListerWatcher
		passesThrough, streams bool
	}{
		{"typed", ListWatch(typed.CoreV1().Pods("shop")), true, true},
		{"typed, of another group", ListWatch(typed.AppsV1().Deployments("")), true, true},
		{"dynamic", ListWatch(dyn), true, true},
		{"dynamic, in a namespace", ListWatch(dyn.Namespace("shop")), true, true},
		{"metadata", ListWatch(meta.Namespace("shop")), true, true},
		{"fake", ListWatch(fake.NewClientset().CoreV1().Pods("")), false, false},
		{"fake, dynamic", ListWatch(fakeDyn), false, false},
		{"fake, metadata", ListWatch(fakeMeta), false, false},
		{"a client around one of client-go's", ListWatch(&leaving{typed.CoreV1().Pods("")}), false, true},
		{"the program's own ListerWatcher", &cache.ListWatch{}, false, true},
		{"one of ours within it", cache.ToListWatcherWithWatchListSemantics(wrapped(ListWatch(dyn), nil, nil), dyn), false, true},
	} {
		i := newEngine(Options{}).newInformer(tc.lw, unknown, &corev1.Pod{}, cache.SharedIndexInformerOptions{})
		if _, _, got := i.passesThrough(); got != tc.passesThrough {
			t.Errorf("%s: passes on what the server sends: %v", tc.why, got)
		}
		says, ok := tc.lw.(interface{ IsWatchListSemanticsUnSupported() bool })
		if got := !ok || !says.IsWatchListSemanticsUnSupported(); got != tc.streams {
			t.Errorf("%s: has streaming lists: %v", tc.why, got)
		}
	}
}

// leaving is a client that leaves out objects.
type leaving struct{ Client[*corev1.PodList] }

func (l *leaving) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	all, err := l.Client.List(ctx, o)
	if err == nil {
		all.Items = slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return p.Name == "a" })
	}
	return all, err
}

// modifyingListerWatcher is a ListerWatcher that does more than pass on what the server sends.
type modifyingListerWatcher struct {
	why   string
	lw    func(t *testing.T, client kubernetes.Interface) cache.ListerWatcher
	paged bool
	has   []string // the objects at the end
	// random: client-go's requests depend on its random backoff after a short watch.
	random bool
}

// graceful returns a defaulted field that real pods always have.
func graceful(obj runtime.Object) bool {
	p, ok := obj.(*corev1.Pod)
	return !ok || *p.Spec.TerminationGracePeriodSeconds > 0
}

// ours reports whether a shard contains an object.
func ours(obj runtime.Object) bool {
	p, ok := obj.(*corev1.Pod)
	if !ok || p.UID == "" {
		return true
	}
	h := fnv.New32()
	_, _ = h.Write([]byte(p.UID))
	return h.Sum32()%3 == 0
}

var modifyingListerWatchers = []modifyingListerWatcher{
	{why: "a filter that reads a defaulted field", lw: func(_ *testing.T, c kubernetes.Interface) cache.ListerWatcher {
		return wrapped(ListWatch(c.CoreV1().Pods("shop")), nil, func(ev watch.Event) (watch.Event, bool) {
			return ev, ev.Type == watch.Bookmark || graceful(ev.Object)
		})
	}, has: []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}},
	{why: "a shard by the hash of the UID", lw: func(_ *testing.T, c kubernetes.Interface) cache.ListerWatcher {
		return wrapped(ListWatch(c.CoreV1().Pods("shop")),
			func(l *corev1.PodList) {
				l.Items = slices.DeleteFunc(l.Items, func(p corev1.Pod) bool { return !ours(&p) })
			},
			func(ev watch.Event) (watch.Event, bool) { return ev, ours(ev.Object) })
	}, paged: true},
	{why: "a watch that the ListerWatcher ends", lw: func(t *testing.T, c kubernetes.Interface) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(ListWatch(c.CoreV1().Pods("shop")))
		return &cache.ListWatch{
			ListWithContextFunc: lw.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := lw.WatchWithContext(ctx, o)
				if err == nil {
					stop := time.AfterFunc(20*time.Second, w.Stop)
					t.Cleanup(func() { stop.Stop() })
				}
				return w, err
			},
		}
	}, paged: true, random: true, has: []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}},
	{why: "events altered after a list", lw: func(_ *testing.T, c kubernetes.Interface) cache.ListerWatcher {
		return wrapped(ListWatch(c.CoreV1().Pods("shop")), nil, func(ev watch.Event) (watch.Event, bool) {
			stripped(ev.Object)
			return ev, true
		})
	}, paged: true, has: []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}},
}

// TestModifyingListerWatchers: a program's own ListerWatcher gets real objects, its changes take effect, and it is
// called as often and with the same options as by client-go.
func TestModifyingListerWatchers(t *testing.T) {
	for _, m := range modifyingListerWatchers {
		t.Run(m.why, func(t *testing.T) {
			quiet(t)
			has, asked := meddle(t, m, cache.NewSharedIndexInformer)
			if m.has != nil && !slices.Equal(has, m.has) || m.has == nil && (len(has) == 0 || len(has) == 10) {
				t.Errorf("client-go's has %q", has)
			}
			oursHas, oursAsked := meddle(t, m, nil)
			expect(t, "it has", oursHas, has...)
			if m.random {
				if len(oursAsked) < 5 || len(asked) < 5 {
					t.Errorf("asked %q, client-go's %q: does the watch end?", oursAsked, asked)
				}
				return
			}
			expect(t, "it asks", oursAsked, asked...)
		})
	}
}

func meddle(t *testing.T, m modifyingListerWatcher, mk maker) (has, asked []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		put := func(n int) {
			s.Put(pods, "shop", fmt.Sprint("p", n), map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": 30}})
		}
		for n := range 9 {
			put(n)
		}
		if m.paged {
			s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		}
		e := must[*Engine](t)(New(s.Config(), Options{}))
		if mk == nil {
			mk = e.NewInformer
		}
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(s.Config(), e.HTTPClient()))
		i := mk(m.lw(t, client), &corev1.Pod{}, 0, nil)
		stop := start(t, i)
		pass(2 * time.Minute)
		put(9)
		pass(2 * time.Minute)
		for _, obj := range i.GetStore().List() {
			has = append(has, obj.(*corev1.Pod).Name)
		}
		slices.Sort(has)
		for _, r := range s.Recorded() {
			r.Query.Del("timeoutSeconds")
			r.Query.Del("timeout")
			asked = append(asked, r.Path+"?"+r.Query.Encode())
		}
		stop()
	})
	return has, asked
}

// flight shares one list between concurrent callers.
type flight struct {
	cache.ListerWatcherWithContext

	mu    sync.Mutex
	under chan struct{} // closed once the list has arrived; nil: none in progress
	list  runtime.Object
	err   error
}

func (f *flight) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	if under := f.under; under != nil {
		f.mu.Unlock()
		<-under
		return f.list.DeepCopyObject(), f.err
	}
	under := make(chan struct{})
	f.under = under
	f.mu.Unlock()
	<-time.After(time.Second) // lets others join
	f.list, f.err = f.ListerWatcherWithContext.ListWithContext(ctx, o)
	f.mu.Lock()
	f.under = nil
	f.mu.Unlock()
	close(under)
	return f.list.DeepCopyObject(), f.err
}

// TestSingleflight: two informers that share a list both have exactly the server's objects.
func TestSingleflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		e := must[*Engine](t)(New(s.Config(), Options{}))
		f := &flight{ListerWatcherWithContext: cache.ToListerWatcherWithContext(plain(t, s.Config(), e.HTTPClient()))}
		lw := &cache.ListWatch{ListWithContextFunc: f.ListWithContext, WatchFuncWithContext: f.WatchWithContext}
		both := []cache.SharedIndexInformer{e.NewInformer(lw, &corev1.Pod{}, 0, nil), e.NewInformer(lw, &corev1.Pod{}, 0, nil)}
		for _, i := range both {
			start(t, i)
		}
		pass(time.Minute)
		for n, i := range both {
			expect(t, fmt.Sprint("informer ", n), i.GetStore().ListKeys(), "shop/a")
		}
		if lists := slices.DeleteFunc(s.Recorded(), func(r informertest.Request) bool { return r.Query.Get("watch") != "" }); len(lists) != 1 {
			t.Errorf("%d lists", len(lists))
		}
	})
}

// TestUnrelatedLists: additional lists with the context of the call are answered by the server, whether the program's
// ListerWatcher sends them or a transport around ours.
func TestUnrelatedLists(t *testing.T) {
	for _, raw := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(pods, "Pod")
			s.Serve(widgets, "Widget")
			s.Put(pods, "shop", "a", nil)
			s.Put(widgets, "shop", "w", nil)
			e := must[*Engine](t)(New(s.Config(), Options{}))
			other := must[*dynamic.DynamicClient](t)(dynamic.NewForConfigAndClient(s.Config(), e.HTTPClient())).Resource(widgets)
			var seen []int
			look := func(ctx context.Context) {
				l, err := other.List(ctx, metav1.ListOptions{ResourceVersion: "0", Limit: 7})
				if err != nil {
					t.Error(err)
					return
				}
				seen = append(seen, len(l.Items))
			}
			lw := cache.ToListerWatcherWithContext(plain(t, s.Config(), e.HTTPClient()))
			var from cache.ListerWatcher = &cache.ListWatch{
				ListWithContextFunc: lw.ListWithContext,
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					look(ctx)
					return lw.WatchWithContext(ctx, o)
				},
			}
			if raw {
				around := *e.HTTPClient()
				around.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
					look(r.Context())
					return e.HTTPClient().Transport.RoundTrip(r)
				})
				from = plain(t, s.Config(), &around)
			}
			i := e.NewInformer(from, &corev1.Pod{}, 0, nil)
			start(t, i)
			pass(10 * time.Second)
			if keys := i.GetStore().ListKeys(); !slices.Equal(keys, []string{"shop/a"}) || e.Stats().Informers[0].Raw != raw {
				t.Errorf("raw: %v, it has %q", e.Stats().Informers[0].Raw, keys)
			}
			if !slices.Equal(seen, []int{1}) {
				t.Errorf("raw: %v, other lists have %v", raw, seen)
			}
		})
	}
}

// TestUnexpected: if a ListerWatcher that must pass on what the server sends does not, the watch error handler gets
// an error. The informer does not sync, and has only objects that the server sent.
func TestUnexpected(t *testing.T) {
	elsewhere := func(t *testing.T, cfg *rest.Config, _ *http.Client) cache.ListerWatcher {
		return plain(t, cfg, &http.Client{Transport: cfg.Transport})
	}
	twice := func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(plain(t, cfg, c))
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				_, _ = lw.ListWithContext(ctx, o)
				return lw.ListWithContext(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if w, err := lw.WatchWithContext(ctx, o); err == nil {
					w.Stop()
				}
				return lw.WatchWithContext(ctx, o)
			},
		}
	}
	adds := func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(plain(t, cfg, c))
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				l, err := lw.ListWithContext(ctx, o)
				if l, ok := l.(*corev1.PodList); ok && err == nil {
					l.Items = append(l.Items, *pod("shop/more", "1", ""))
				}
				return l, err
			},
			WatchFuncWithContext: lw.WatchWithContext,
		}
	}
	speaks := func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(plain(t, cfg, c))
		return &cache.ListWatch{
			ListWithContextFunc: lw.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := lw.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				w.Stop()
				also := watch.NewFakeWithChanSize(1, false)
				also.Add(pod("shop/more", "1", ""))
				return also, nil
			},
		}
	}
	for _, tc := range []struct {
		why   string
		lw    func(*testing.T, *rest.Config, *http.Client) cache.ListerWatcher
		paged bool
		want  error
	}{
		{"another connection", elsewhere, false, errElsewhere},
		{"another connection, in pages", elsewhere, true, errElsewhere},
		{"several requests", twice, false, errSeveral},
		{"several requests, in pages", twice, true, errSeveral},
		{"a list with more", adds, true, errAltered},
		{"a watch with an event", speaks, false, nil}, // logged by the Reflector
	} {
		t.Run(tc.why, func(t *testing.T) {
			quiet(t)
			synctest.Test(t, func(t *testing.T) {
				s := informertest.NewServer()
				s.Serve(pods, "Pod")
				s.Put(pods, "shop", "a", nil)
				if tc.paged {
					s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
				}
				e := must[*Engine](t)(New(s.Config(), Options{}))
				i := e.NewCacheInformer(tc.lw(t, s.Config(), e.HTTPClient()), &corev1.Pod{}, 0, nil)
				var heard []error
				if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { heard = append(heard, err) }); err != nil {
					t.Fatal(err)
				}
				start(t, i)
				pass(time.Minute)
				if tc.want != nil && !slices.ContainsFunc(heard, func(err error) bool {
					return errors.Is(err, tc.want) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), tc.want.Error())
				}) {
					t.Errorf("errors %v", heard)
				}
				for _, key := range i.GetStore().ListKeys() {
					if key != "shop/a" {
						t.Errorf("it has %s", key)
					}
				}
			})
		})
	}
}

// TestFakes: informers of fake clients sync, however the engine was made.
func TestFakes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := pod("shop/a", "1", "n1")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "a"}}}
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: p.ObjectMeta}
	metaScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metaScheme); err != nil {
		t.Fatal(err)
	}
	for why, tc := range map[string]struct {
		lw      cache.ListerWatcher
		example runtime.Object
	}{
		"typed":    {ListWatch(fake.NewClientset(p).CoreV1().Pods("")), &corev1.Pod{}},
		"dynamic":  {ListWatch(dynamicfake.NewSimpleDynamicClient(scheme, u).Resource(pods)), &unstructured.Unstructured{}},
		"metadata": {ListWatch(metadatafake.NewSimpleMetadataClient(metaScheme, m).Resource(pods)), &metav1.PartialObjectMetadata{}},
	} {
		for _, cfg := range []*rest.Config{nil, {Host: "http://nowhere.invalid"}} {
			synctest.Test(t, func(t *testing.T) {
				e := must[*Engine](t)(New(cfg, Options{}))
				i := e.NewInformer(tc.lw, tc.example, 0, nil)
				start(t, i)
				pass(time.Minute)
				if !i.HasSynced() || !slices.Equal(i.GetStore().ListKeys(), []string{"shop/a"}) {
					t.Errorf("%s: synced: %v, it has %q", why, i.HasSynced(), i.GetStore().ListKeys())
				}
			})
		}
	}
}
