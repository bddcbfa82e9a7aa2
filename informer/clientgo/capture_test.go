package clientgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/textlogger"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// wrapped is a ListerWatcher whose results functions modify.
func wrapped(lw cache.ListerWatcher, list func(*corev1.PodList), event func(watch.Event) (watch.Event, bool)) *cache.ListWatch {
	both := cache.ToListerWatcherWithContext(lw)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l, err := both.ListWithContext(ctx, o)
			if pods, ok := l.(*corev1.PodList); ok && err == nil && list != nil {
				list(pods)
			}
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := both.WatchWithContext(ctx, o)
			if err != nil || event == nil {
				return w, err
			}
			return filter(w, event), nil
		},
	}
}

// filter is watch.Filter, whose goroutine ends with it.
func filter(w watch.Interface, f func(watch.Event) (watch.Event, bool)) watch.Interface {
	events := make(chan watch.Event)
	p := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			var ev watch.Event
			var ok bool
			select {
			case ev, ok = <-w.ResultChan():
			case <-p.StopChan():
			}
			if !ok {
				return
			}
			if ev, ok = f(ev); !ok {
				continue
			}
			select {
			case events <- ev:
			case <-p.StopChan():
				return
			}
		}
	}()
	return p
}

// stripped removes a part of each pod.
func stripped(obj runtime.Object) {
	if p, ok := obj.(*corev1.Pod); ok {
		p.Spec.Containers = nil
	}
}

// roundTripper is a transport around another one.
type roundTripper struct {
	f    func(*http.Request)
	next http.RoundTripper
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	r.f(req)
	return r.next.RoundTrip(req)
}

// way is one of the ways to list and watch pods.
type way struct {
	why string
	lw  func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher
	// decoded is the reason why responses cannot be taken undecoded; empty: they can.
	decoded string
	o       Options
	// paged means that the server has no streaming lists.
	paged bool
}

// plain is the usual ListerWatcher.
func plain(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
	t.Helper()
	return accesses[0].lw(t, cfg, c)
}

var ways = []way{
	{why: "the usual one", lw: plain},
	{why: "with pages", lw: plain, paged: true},
	{why: "a patient client", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		cfg = rest.CopyConfig(cfg)
		cfg.QPS, cfg.Burst = 0.01, 1
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c))
		_, _ = client.CoreV1().Pods("shop").Get(t.Context(), "a", metav1.GetOptions{}) // uses up the client's rate limit
		return ListWatch(client.CoreV1().Pods("shop"))
	}, paged: true},
	{why: "headers of a transport around", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		mine := *c
		mine.Transport = roundTripper{func(r *http.Request) { r.Header.Set("Accept", r.Header.Get("Accept")+", application/foreign") }, c.Transport}
		return plain(t, cfg, &mine)
	}},
	{why: "other selectors of lists and watches", decoded: decodedAsUsual, lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		all := plain(t, cfg, c)
		some := ListWatch(must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c)).CoreV1().Pods("shop"),
			func(o *metav1.ListOptions) { o.LabelSelector = "app=b" })
		return &cache.ListWatch{
			ListWithContextFunc:  cache.ToListerWatcherWithContext(some).ListWithContext,
			WatchFuncWithContext: cache.ToListerWatcherWithContext(all).WatchWithContext,
		}
	}, paged: true},
	{why: "selectors that change", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		n := 0
		return ListWatch(must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c)).CoreV1().Pods("shop"),
			func(o *metav1.ListOptions) { o.LabelSelector = fmt.Sprint("app!=", n); n++ })
	}},
	{why: "another connection", lw: func(t *testing.T, cfg *rest.Config, _ *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, &http.Client{Transport: cfg.Transport}), nil, nil)
	}, decoded: decodedAsUsual},
	{why: "functions without context", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := plain(t, cfg, c)
		return &cache.ListWatch{ListFunc: lw.List, WatchFunc: lw.Watch} //nolint:staticcheck // as old programs do
	}, decoded: decodedAsUsual},
	{why: "functions without context, in pages", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := plain(t, cfg, c)
		return &cache.ListWatch{ListFunc: lw.List, WatchFunc: lw.Watch} //nolint:staticcheck // as old programs do
	}, paged: true, decoded: decodedAsUsual},
	{why: "the options ask for decoding", lw: plain, o: Options{Decoded: true}, decoded: decodedByOptions},
	{why: "lists that are stripped", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, c), func(l *corev1.PodList) {
			for i := range l.Items {
				stripped(&l.Items[i])
			}
		}, nil)
	}, paged: true, decoded: decodedAsUsual},
	{why: "lists without some", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, c), func(l *corev1.PodList) {
			l.Items = slices.DeleteFunc(l.Items, func(p corev1.Pod) bool { return p.Labels["app"] == "" })
		}, nil)
	}, paged: true, decoded: decodedAsUsual},
	{why: "events that are stripped", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, c), nil, func(ev watch.Event) (watch.Event, bool) {
			stripped(ev.Object)
			return ev, true
		})
	}, decoded: decodedAsUsual},
	{why: "events that are stripped after a list", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, c), nil, func(ev watch.Event) (watch.Event, bool) {
			stripped(ev.Object)
			return ev, true
		})
	}, paged: true, decoded: decodedAsUsual},
	{why: "events left out", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return wrapped(plain(t, cfg, c), nil, func(ev watch.Event) (watch.Event, bool) { return ev, ev.Type != watch.Deleted })
	}, decoded: decodedAsUsual},
	{why: "two lists in one", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(plain(t, cfg, c))
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if _, err := lw.ListWithContext(ctx, o); err != nil {
					return nil, err
				}
				return lw.ListWithContext(ctx, o)
			},
			WatchFuncWithContext: lw.WatchWithContext,
		}
	}, paged: true, decoded: decodedAsUsual},
	{why: "a list before each watch", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		lw := cache.ToListerWatcherWithContext(plain(t, cfg, c))
		return &cache.ListWatch{
			ListWithContextFunc: lw.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); err != nil {
					return nil, err
				}
				return lw.WatchWithContext(ctx, o)
			},
		}
	}, decoded: decodedAsUsual},
	{why: "writes", lw: func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c))
		lw := cache.ToListerWatcherWithContext(ListWatch(client.CoreV1().Pods("shop")))
		return &cache.ListWatch{
			ListWithContextFunc: lw.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lock"}}
				_, _ = client.CoreV1().ConfigMaps("shop").Create(ctx, lock, metav1.CreateOptions{})
				return lw.WatchWithContext(ctx, o)
			},
		}
	}, decoded: decodedAsUsual},
}

// TestWays: whatever a ListerWatcher does, our informer has the same cache as client-go's, sends the same requests,
// and logs nothing.
func TestWays(t *testing.T) {
	for _, w := range ways {
		t.Run(w.why, func(t *testing.T) {
			var lines bytes.Buffer
			log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&lines)))
			w.o.Log = &log
			theirs, asked := runVariant(t, w, false)
			ours, alsoAsked := runVariant(t, w, true)
			if !reflect.DeepEqual(ours, theirs) {
				t.Errorf("ours has %v, client-go's %v", ours, theirs)
			}
			if !slices.Equal(asked, alsoAsked) {
				t.Errorf("asked %q,\nclient-go's %q", alsoAsked, asked)
			}
			if lines.Len() > 0 {
				t.Errorf("logged %q", &lines)
			}
		})
	}
}

// runVariant runs an informer in one of the ways, and returns its cache and the requests that the server got.
func runVariant(t *testing.T, w way, ours bool) (objs map[string]any, asked []string) {
	t.Helper()
	objs = map[string]any{}
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		put := func(name string, labels map[string]any) {
			s.Put(pods, "shop", name, map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main"}}},
			})
		}
		put("a", nil)
		put("b", map[string]any{"app": "b"})
		var mu sync.Mutex
		s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			q := r.URL.Query()
			q.Del("timeoutSeconds")
			q.Del("timeout")
			asked = append(asked, fmt.Sprint(r.Method, " ", r.URL.Path, "?", q.Encode(), " ", r.Header.Get("Accept")))
			return false
		})
		if w.paged {
			s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		}
		e := must[*Engine](t)(New(s.Config(), w.o))
		m, c := e.NewInformer, e.HTTPClient()
		if !ours {
			m, c = cache.NewSharedIndexInformer, &http.Client{Transport: s.Config().Transport}
		}
		i := m(w.lw(t, s.Config(), c), &corev1.Pod{}, 0, nil)
		start(t, i)
		pass(3 * time.Minute)
		put("b", map[string]any{"app": "b", "more": "yes"})
		put("c", map[string]any{"app": "b"})
		s.Delete(pods, "shop", "a")
		pass(time.Minute)
		for _, obj := range i.GetStore().List() {
			key, _ := cache.MetaNamespaceKeyFunc(obj)
			objs[key] = obj
		}
		if !ours {
			return
		}
		if st := e.Stats().Informers[0]; st.Raw != (w.decoded == "") || st.Decoded != w.decoded {
			t.Errorf("raw is %v: %s", st.Raw, st.Decoded)
		}
	})
	return objs, asked
}

// TestCollections: isCollection accepts only paths of collections.
func TestCollections(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods": true, "/api/v1/namespaces/shop/pods": true, "/api/v1/namespaces": true,
		"/apis/apps/v1/deployments": true, "/apis/apps/v1/namespaces/shop/deployments": true,
		"/api/v1/namespaces/shop": false, "/api/v1/namespaces/shop/pods/a": false, "/api/v1/nodes/n1": false,
		"/apis": false, "/apis/apps/v1": false, "/api/v1": false, "/version": false, "/": false, "": false,
	} {
		if got := isCollection(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
		if got := isCollection(belowBase("/clusters/one"+path, "/clusters/one/")); got != want {
			t.Errorf("%q behind a path: %v", path, got)
		}
	}
}

// TestDecodedOf: Options.DecodedOf decides per kind whether the ListerWatcher decodes.
func TestDecodedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		isPod := func(example runtime.Object) bool { _, ok := example.(*corev1.Pod); return ok }
		for _, decoded := range []bool{true, false} {
			e := must[*Engine](t)(New(s.Config(), Options{DecodedOf: func(example runtime.Object) bool { return decoded && isPod(example) }}))
			i := e.NewInformer(plain(t, s.Config(), e.HTTPClient()), &corev1.Pod{}, 0, cache.Indexers{})
			start(t, i)
			pass(time.Minute)
			if got := e.Stats().Informers[0].Raw; got == decoded {
				t.Errorf("DecodedOf says %v, and it is raw: %v", decoded, got)
			}
		}
	})
}

// TestTimeout: the program's request timeout ends an intercepted watch, as with client-go.
func TestTimeout(t *testing.T) {
	var asked [2]int
	for n := range asked {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(pods, "Pod")
			s.Put(pods, "shop", "a", nil)
			cfg := s.Config()
			cfg.Timeout = 10 * time.Second
			e := must[*Engine](t)(New(cfg, Options{}))
			if e.HTTPClient().Timeout != cfg.Timeout {
				t.Errorf("the program's requests may take %v", e.HTTPClient().Timeout)
			}
			m := e.NewInformer
			if n == 0 {
				m = cache.NewSharedIndexInformer
			}
			i := m(plain(t, cfg, e.HTTPClient()), &corev1.Pod{}, 0, nil)
			if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
				t.Fatal(err)
			}
			start(t, i)
			pass(4 * time.Minute)
			s.Put(pods, "shop", "b", nil)
			pass(2 * time.Minute) // the Reflector backs off for at most a minute
			if len(i.GetStore().ListKeys()) != 2 {
				t.Errorf("has %v", i.GetStore().ListKeys())
			}
			asked[n] = len(s.Requests())
		})
	}
	if asked[0] < 10 || asked[1] < 10 { // client-go backs off for random intervals
		t.Errorf("%d requests, client-go %d", asked[1], asked[0])
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestReadLate: a list that is read after its List call has returned does not reach the informer.
func TestReadLate(t *testing.T) {
	c := newTap(metav1.ListOptions{}, false)
	if err := c.record(func() {}); err != nil {
		t.Error(err)
	}
	_ = c.end()
	if err := c.record(func() { t.Error("noted") }); !errors.Is(err, errReadLate) {
		t.Error(err)
	}
}

// TestSilenceEnds: a read of an intercepted watch's body ends with its request.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := newSilentBody(ctx, io.NopCloser(nil)).Read(nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s := newSilentBody(t.Context(), io.NopCloser(nil))
		go func() { _ = s.Close() }()
		if _, err := s.Read(nil); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}
