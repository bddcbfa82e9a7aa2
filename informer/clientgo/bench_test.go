package clientgo

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// BenchmarkHandlers notifies ten handlers of updates of a thousand pods.
func BenchmarkHandlers(b *testing.B) {
	for name, m := range map[string]maker{"client-go": cache.NewSharedIndexInformer, "here": NewSharedIndexInformer} {
		b.Run(name, func(b *testing.B) {
			const pods, handlers = 1000, 10
			s := newServer()
			for n := range pods {
				s.set(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n0"))
			}
			i := m(s, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			var delivered atomic.Int64
			all := make(chan struct{})
			for range handlers {
				if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
					if delivered.Add(1) == int64(b.N*handlers) {
						close(all)
					}
				}}); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				i.RunWithContext(ctx)
			}()
			<-i.HasSyncedChecker().Done()
			var w *watch.FakeWatcher
			for w == nil {
				s.mu.Lock()
				if len(s.watches) > 0 {
					w = s.watches[0]
				}
				s.mu.Unlock()
			}
			updates := make([]*corev1.Pod, b.N)
			for n := range updates {
				updates[n] = pod(fmt.Sprintf("a/p%d", n%pods), fmt.Sprint(n%pods), fmt.Sprint("n", n))
				updates[n].ResourceVersion = fmt.Sprint(1000 + n)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, p := range updates {
				w.Modify(p)
			}
			<-all
			b.StopTimer()
			cancel()
			<-ended
		})
	}
}

// BenchmarkReads reads a thousand pods by key, one by one and all at once.
func BenchmarkReads(b *testing.B) {
	for name, m := range map[string]maker{"client-go": cache.NewSharedIndexInformer, "here": NewSharedIndexInformer} {
		i := m(newServer(), &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		var keys []string
		for n := range 1000 {
			p := pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n0")
			keys = append(keys, podKey(p))
			var err error
			if s, ok := i.(*sharedInformer); ok {
				s.table.apply([]change{{key: podKey(p), item: s.table.packing.item(p), obj: p}}, false, nil)
			} else {
				err = i.GetIndexer().Add(p)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		x := i.GetIndexer()
		b.Run("by key/"+name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if _, ok, _ := x.GetByKey(keys[n%len(keys)]); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run("all/"+name, func(b *testing.B) {
			for b.Loop() {
				if len(x.List()) != len(keys) {
					b.Fatal("not all")
				}
			}
		})
		b.Run("by namespace/"+name, func(b *testing.B) {
			for b.Loop() {
				if objs, err := x.ByIndex(cache.NamespaceIndex, "a"); err != nil || len(objs) != len(keys) {
					b.Fatal("not all")
				}
			}
		})
	}
}
