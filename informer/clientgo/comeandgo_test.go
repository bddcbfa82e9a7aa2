package clientgo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
)

// BenchmarkHandlersComeAndGo has a hundred goroutines that add and remove handlers during 1,000 changes, as
// client-go's TestSharedInformerHandlerAbuse does. That test stops the informer at the last change; here the informer
// has to deliver it.
func BenchmarkHandlersComeAndGo(b *testing.B) {
	for name, m := range map[string]maker{"client-go": cache.NewSharedIndexInformer, "here": NewSharedIndexInformer} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				comeAndGo(b, m)
			}
		})
	}
}

func comeAndGo(b *testing.B, m maker) {
	source := fcache.NewFakeControllerSource()
	defer source.Shutdown()
	i := m(source, &corev1.Pod{}, time.Second, cache.Indexers{})
	ctx, cancel := context.WithCancel(b.Context())
	running, stop := context.WithCancel(b.Context())
	var informer, workers sync.WaitGroup
	all := make(chan struct{})
	last := func(obj any) {
		if obj.(*corev1.Pod).Name == "last" {
			close(all)
		}
	}
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: last}); err != nil {
		b.Fatal(err)
	}
	informer.Go(func() { i.RunWithContext(running) })
	<-i.HasSyncedChecker().Done()
	added := make([]int, 100)
	var delivered atomic.Int64
	counts := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { delivered.Add(1) },
		UpdateFunc: func(_, _ any) { delivered.Add(1) },
		DeleteFunc: func(any) { delivered.Add(1) },
	}
	for w := range 100 {
		workers.Go(func() {
			var handles []cache.ResourceEventHandlerRegistration
			for ctx.Err() == nil {
				if rand.IntN(2) == 0 {
					h, err := i.AddEventHandlerWithResyncPeriod(counts, time.Second)
					if err != nil {
						return
					}
					added[w]++
					handles = append(handles, h)
				} else if len(handles) > 0 {
					at := rand.IntN(len(handles))
					if i.RemoveEventHandler(handles[at]) != nil {
						return
					}
					handles = append(handles[:at], handles[at+1:]...)
				}
			}
		})
	}
	var objs []*corev1.Pod
	add := func(n int) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod", n)}}
		objs = append(objs, p)
		source.Add(p.DeepCopy())
	}
	for n := range 1000 {
		if len(objs) == 0 {
			add(n)
		}
		switch at := rand.IntN(len(objs)); rand.IntN(3) {
		case 0:
			add(n)
		case 1:
			source.Modify(objs[at].DeepCopy())
		case 2:
			source.Delete(objs[at].DeepCopy())
			objs = append(objs[:at], objs[at+1:]...)
		}
	}
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "last"}})
	<-all
	stop()
	informer.Wait()
	cancel()
	workers.Wait()
	total := 0
	for _, n := range added {
		total += n
	}
	b.ReportMetric(float64(total), "handlers")
	b.ReportMetric(float64(delivered.Load()), "notifications")
}

// BenchmarkLateHandler adds a handler to an informer of 5,000 pods. It measures the call, the time until the handler
// has all objects, and the removal.
func BenchmarkLateHandler(b *testing.B) {
	for name, m := range map[string]maker{"client-go": cache.NewSharedIndexInformer, "here": NewSharedIndexInformer} {
		b.Run(name, func(b *testing.B) {
			s := newServer()
			for n := range 5000 {
				s.set(pod(fmt.Sprintf("a/p%d", n), fmt.Sprint(n), "n0"))
			}
			i := m(s, &corev1.Pod{}, 0, cache.Indexers{})
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { i.RunWithContext(ctx) })
			<-i.HasSyncedChecker().Done()
			var call, sync, remove time.Duration
			for b.Loop() {
				start := time.Now()
				h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
				if err != nil {
					b.Fatal(err)
				}
				call += time.Since(start)
				<-h.HasSyncedChecker().Done()
				sync += time.Since(start)
				start = time.Now()
				if err := i.RemoveEventHandler(h); err != nil {
					b.Fatal(err)
				}
				remove += time.Since(start)
			}
			for what, d := range map[string]time.Duration{"call": call, "sync": sync, "removal": remove} {
				b.ReportMetric(float64(d.Microseconds())/float64(b.N), what+"-µs")
			}
			cancel()
			running.Wait()
		})
	}
}
