package clientgo

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestProbeWrites: what a ListerWatcher writes when it is asked arrives, and such a one is asked each time.
func TestProbeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		e := must[*Engine](t)(New(s.Config(), Options{}))
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(s.Config(), e.HTTPClient()))
		var posts int
		s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				posts++
			}
			return false
		})
		var once sync.Once
		lw := ListWatch(client.CoreV1().Pods("shop"))
		list := lw.ListWithContextFunc
		lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			once.Do(func() {
				_, _ = client.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lock"}}, metav1.CreateOptions{})
			})
			return list(ctx, o)
		}
		i := e.NewInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		start(t, i)
		pass(time.Minute)
		if posts != 1 || !i.HasSynced() || e.Stats().Informers[0].Raw {
			t.Errorf("%d posts, synced %v, %+v", posts, i.HasSynced(), e.Stats())
		}
	})
}

// TestDecodedOf: where a kind's ListerWatcher must be asked, it is.
func TestDecodedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		isPod := func(example runtime.Object) bool { _, ok := example.(*corev1.Pod); return ok }
		for _, decoded := range []bool{true, false} {
			e := must[*Engine](t)(New(s.Config(), Options{DecodedOf: func(example runtime.Object) bool { return decoded && isPod(example) }}))
			client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(s.Config(), e.HTTPClient()))
			i := e.NewInformer(ListWatch(client.CoreV1().Pods("shop")), &corev1.Pod{}, 0, cache.Indexers{})
			start(t, i)
			pass(time.Minute)
			if got := e.Stats().Informers[0].Raw; got == decoded {
				t.Errorf("DecodedOf says %v, and it is raw: %v", decoded, got)
			}
		}
	})
}
