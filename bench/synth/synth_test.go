package synth

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tattler-dev/tattler/bench/gen"
)

const pods = 40

// rig is a server and its clients, one for each format.
type rig struct {
	gen     *gen.Generator
	control *Control
	core    map[string]typed.CoreV1Interface
}

func newRig(t *testing.T) rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan Address, 1), make(chan error, 1)
	dir := t.TempDir()
	go func() { done <- NewServer(gen.New(1), pods).Listen(ctx, dir, func(a Address) { ready <- a }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	r := rig{gen: gen.New(1), core: map[string]typed.CoreV1Interface{}}
	var a Address
	select {
	case a = <-ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	r.control = NewControl(a.Control)
	for _, format := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		cfg := &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: a.CAFile}, QPS: -1}
		cfg.ContentType = format
		c, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.core[format] = c.CoreV1()
	}
	return r
}

// each runs a test with a client and a server of each format.
func each(t *testing.T, f func(ctx context.Context, t *testing.T, r rig, c typed.PodInterface)) {
	for _, format := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := newRig(t)
			f(ctx, t, r, r.core[format].Pods(""))
		})
	}
}

// want returns pod i after some updates, at a version.
func (r rig) want(i, step int, version uint64) *corev1.Pod {
	p := r.gen.PodAfter(i, step)
	p.ResourceVersion = fmt.Sprint(version)
	return p
}

func same(t *testing.T, got, want *corev1.Pod) {
	t.Helper()
	got = got.DeepCopy()
	got.TypeMeta = metav1.TypeMeta{}
	a, b := gen.Encode(gen.JSON, got), gen.Encode(gen.JSON, want)
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Fatalf("the pod differs (-want, +got):\n%s", diff)
	}
}

func TestList(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, r rig, c typed.PodInterface) {
		if _, err := r.control.Update(ctx, 25, 10); err != nil { // pods 0 to 4 three times, 5 to 9 twice
			t.Fatal(err)
		}
		for _, limit := range []int64{0, 7} {
			o, n := metav1.ListOptions{Limit: limit}, 0
			for {
				list, err := c.List(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				if list.ResourceVersion != strconv.Itoa(firstVersion+25) {
					t.Errorf("the list's version is %s", list.ResourceVersion)
				}
				for i := range list.Items {
					want := r.want(n, 0, uint64(gen.FirstVersion+n))
					switch {
					case n < 5:
						want = r.want(n, 3, uint64(firstVersion+20+n+1))
					case n < 10:
						want = r.want(n, 2, uint64(firstVersion+10+n+1))
					}
					same(t, &list.Items[i], want)
					n++
				}
				if o.Continue = list.Continue; o.Continue == "" {
					break
				}
			}
			if n != pods {
				t.Errorf("with limit %d there are %d pods", limit, n)
			}
		}
	})
}

func next(ctx context.Context, t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-ctx.Done():
		t.Fatal("no event arrived")
		panic("unreachable")
	}
}

func TestWatch(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, r rig, c typed.PodInterface) {
		w, err := c.Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for i := range pods {
			e := next(ctx, t, w)
			if e.Type != watch.Added {
				t.Fatalf("event %d is %s", i, e.Type)
			}
			same(t, e.Object.(*corev1.Pod), r.want(i, 0, uint64(gen.FirstVersion+i)))
		}
		end := next(ctx, t, w)
		mark := end.Object.(*corev1.Pod)
		if end.Type != watch.Bookmark || mark.Annotations["k8s.io/initial-events-end"] != "true" || mark.ResourceVersion != strconv.Itoa(firstVersion) {
			t.Fatalf("the list ends with %+v", end)
		}
		if _, err := r.control.Update(ctx, 15, 10); err != nil {
			t.Fatal(err)
		}
		if _, err := r.control.Churn(ctx, 2); err != nil {
			t.Fatal(err)
		}
		from, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.Itoa(firstVersion + 3)})
		if err != nil {
			t.Fatal(err)
		}
		defer from.Stop()
		for n := range 19 {
			kind, i, step := watch.Modified, n%10, n/10+1
			if n >= 15 {
				kind, i, step = []watch.EventType{watch.Added, watch.Deleted}[(n-15)%2], pods+(n-15)/2, 0
			}
			watches := []watch.Interface{w}
			if n >= 3 {
				watches = append(watches, from)
			}
			for _, w := range watches {
				e := next(ctx, t, w)
				if e.Type != kind {
					t.Fatalf("event %d is %s, not %s", n, e.Type, kind)
				}
				same(t, e.Object.(*corev1.Pod), r.want(i, step, uint64(firstVersion+n+1)))
			}
		}
	})
}

func TestExpire(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, r rig, c typed.PodInterface) {
		w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.Itoa(firstVersion)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.control.Expire(ctx); err != nil {
			t.Fatal(err)
		}
		if e, ok := <-w.ResultChan(); ok {
			t.Fatalf("the watch sent %+v", e)
		}
		w, err = c.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.Itoa(firstVersion)})
		if err != nil {
			t.Fatal(err)
		}
		if err := apierrors.FromObject(next(ctx, t, w).Object); !apierrors.IsResourceExpired(err) {
			t.Errorf("the history was not dropped: %v", err)
		}
		list, err := c.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if w, err = c.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.control.Update(ctx, 1, 1); err != nil {
			t.Fatal(err)
		}
		if e := next(ctx, t, w); e.Type != watch.Modified {
			t.Errorf("after a list, the watch sent %s", e.Type)
		}
	})
}

func TestTimeout(t *testing.T) {
	each(t, func(ctx context.Context, t *testing.T, _ rig, c typed.PodInterface) {
		w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.Itoa(firstVersion), AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(1))})
		if err != nil {
			t.Fatal(err)
		}
		if e := next(ctx, t, w); e.Type != watch.Bookmark {
			t.Errorf("before its end the watch sent %s", e.Type)
		}
		if e, ok := <-w.ResultChan(); ok {
			t.Errorf("the watch continued with %+v", e)
		}
	})
}

func TestPod(t *testing.T) {
	for _, format := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := newRig(t)
			if _, err := r.control.Update(ctx, 12, 10); err != nil {
				t.Fatal(err)
			}
			ns, name := r.gen.Name(1)
			pod, err := r.core[format].Pods(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, pod, r.want(1, 2, firstVersion+12))
			if _, err := r.core[format].Pods(ns).Get(ctx, name+"b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("a pod that does not exist: %v", err)
			}
			got, err := r.control.Requests(ctx)
			want := []string{"/api/v1/namespaces/" + ns + "/pods/" + name, "/api/v1/namespaces/" + ns + "/pods/" + name + "b"}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the requests were %q, %v; want %q", got, err, want)
			}
		})
	}
}
