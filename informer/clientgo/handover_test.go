package clientgo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// later is a ListerWatcher whose watches begin once they have been returned, with the context of the call.
func later(lw cache.ListerWatcher) *cache.ListWatch {
	both := cache.ToListerWatcherWithContext(lw)
	return &cache.ListWatch{
		ListWithContextFunc: both.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events := make(chan watch.Event)
			p := watch.NewProxyWatcher(events)
			go func() {
				defer close(events)
				select {
				case <-time.After(time.Second):
				case <-p.StopChan():
					return
				}
				w, err := both.WatchWithContext(ctx, o)
				if err != nil {
					return
				}
				defer w.Stop()
				for {
					select {
					case ev, ok := <-w.ResultChan():
						if !ok {
							return
						}
						select {
						case events <- ev:
						case <-p.StopChan():
							return
						}
					case <-p.StopChan():
						return
					}
				}
			}()
			return p, nil
		},
	}
}

// TestAskedLater: what a ListerWatcher asks on a goroutine that it leaves behind is answered by the server, and
// handlers hear of nothing that is made up.
func TestAskedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		e := must[*Engine](t)(New(s.Config(), Options{}))
		i := e.NewInformer(later(plain(t, s.Config(), e.HTTPClient())), &corev1.Pod{}, 0, nil)
		var told []string
		must[cache.ResourceEventHandlerRegistration](t)(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { told = append(told, obj.(*corev1.Pod).Name) },
		}))
		start(t, i)
		pass(time.Minute)
		s.Put(pods, "shop", "b", nil)
		pass(time.Minute)
		if !slices.Equal(told, []string{"a", "b"}) || len(s.Requests()) != 1 {
			t.Errorf("told of %q, asked %q", told, s.Requests())
		}
	})
}

// TestReadLater: a list that is read after the call that it was asked in is not read into an informer.
func TestReadLater(t *testing.T) {
	c := &tap{ctx: t.Context()}
	if err := c.note(func() {}); err != nil {
		t.Error(err)
	}
	_ = c.end()
	if err := c.note(func() { t.Error("noted") }); !errors.Is(err, errOver) {
		t.Error(err)
	}
}

// TestHandedOnce: of a list that was handed over, nothing stays once it is in the cache.
func TestHandedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("shop/a", "1", ""))
		var first weak.Pointer[corev1.PodList]
		lw := &cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (kruntime.Object, error) {
				l, err := s.List(o)
				if first == (weak.Pointer[corev1.PodList]{}) {
					first = weak.Make(l.(*corev1.PodList))
				}
				return l, err
			},
			WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) { return s.Watch(o) },
		}
		e := must[*Engine](t)(New(&rest.Config{Host: "http://nowhere.invalid"}, Options{}))
		i := e.NewInformer(cache.ToListWatcherWithWatchListSemantics(lw, s), &corev1.Pod{}, 0, nil)
		start(t, i)
		pass(time.Minute)
		if len(i.GetStore().ListKeys()) != 1 || s.lists != 1 {
			t.Errorf("has %v after %d lists", i.GetStore().ListKeys(), s.lists)
		}
		runtime.GC()
		runtime.GC()
		if first.Value() != nil {
			t.Error("the list is kept, with all objects")
		}
	})
}

// TestHandedToNobody: a watch that comes when the informer ends is stopped.
func TestHandedToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var open []*watch.FakeWatcher
		e := must[*Engine](t)(New(&rest.Config{Host: "http://nowhere.invalid"}, Options{}))
		i := e.NewInformer(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (kruntime.Object, error) {
				return nil, errors.New("it is not asked for")
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				cancel()
				open = append(open, watch.NewFake())
				return open[len(open)-1], nil
			},
		}, &corev1.Pod{}, 0, nil)
		i.RunWithContext(ctx)
		if len(open) != 1 || !open[0].IsStopped() {
			t.Errorf("%d watches, or one goes on", len(open))
		}
	})
}

// TestBrokenThenUnfit: a request that failed does not make an informer believe that the answer to the next one is
// none.
func TestBrokenThenUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		fail := true
		cfg := s.Config()
		next := cfg.Transport
		cfg.Transport = transportFunc(func(req *http.Request) (*http.Response, error) {
			if fail {
				fail = false
				return nil, io.ErrUnexpectedEOF
			}
			return next.RoundTrip(req)
		})
		e := must[*Engine](t)(New(cfg, Options{}))
		i := e.NewInformer(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (kruntime.Object, error) {
				return nil, errors.New("it is not asked for")
			},
			WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					req := must[*http.Request](t)(http.NewRequestWithContext(ctx, method, cfg.Host+"/api/v1/pods?watch=true", nil))
					if resp, err := e.HTTPClient().Do(req); err == nil {
						_ = resp.Body.Close()
					}
				}
				w := watch.NewFakeWithChanSize(2, false)
				w.Add(pod("shop/a", "1", ""))
				w.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				}})
				return w, nil
			},
		}, &corev1.Pod{}, 0, nil)
		start(t, i)
		pass(time.Second)
		if !i.HasSynced() || len(i.GetStore().ListKeys()) != 1 {
			t.Errorf("synced is %v, has %v", i.HasSynced(), i.GetStore().ListKeys())
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestSilenceEnds: who waits for a word of a watch that was taken waits no longer than the request lasts.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := newSilence(ctx).Read(nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s := newSilence(t.Context())
		go func() { _ = s.Close() }()
		if _, err := s.Read(nil); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}
