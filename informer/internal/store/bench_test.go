package store

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// filled returns a live store of n objects in 1,000 namespaces, and its items.
func filled(n int) (*Store, []Change) {
	s := New(0)
	s.Begin(false, 0)
	all := make([]Change, n)
	for i := range all {
		all[i] = Change{
			Key: Key{Namespace: "namespace-" + strconv.Itoa(i%1000), Name: "pod-" + strconv.Itoa(i)},
			V:   pack(wire.JSON, "u"+strconv.Itoa(i), "x0", nil),
		}
	}
	s.Commit(Commit{Changes: all, Version: "1", Sweep: true})
	return s, all
}

// successors returns two more versions of each object, to alternate between.
func successors(all []Change) [2][]Change {
	var next [2][]Change
	for i := range next {
		for _, c := range all {
			c.V = pack(wire.JSON, c.V.UID(), "x"+strconv.Itoa(i+1), nil)
			next[i] = append(next[i], c)
		}
	}
	return next
}

const (
	fanOut  = 10
	objects = 10_000
)

// BenchmarkFanOut measures one update that 10 queues get and as many goroutines drain, over 10,000 objects. The peer
// is a buffered channel each, without a bound or any memory of objects.
func BenchmarkFanOut(b *testing.B) {
	for _, mode := range []QueueOptions{{Latest: true}, {Budget: 32 << 20}} {
		name := map[bool]string{true: "latest", false: "every"}[mode.Latest]
		b.Run(name, func(b *testing.B) {
			s, all := filled(objects)
			next := successors(all)
			var readers sync.WaitGroup
			var taken [fanOut]int
			var queues []*Queue
			for i := range fanOut {
				q := NewQueue(1, mode)
				s.Subscribe(q, time.Now())
				queues = append(queues, q)
				readers.Go(func() {
					for {
						batch, err := q.Next(context.Background())
						if err != nil {
							return
						}
						taken[i] += len(batch.Deltas)
					}
				})
			}
			at := time.Now()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				c := next[i/objects%2][i%objects : i%objects+1]
				s.Commit(Commit{Changes: c, Version: "1", At: at})
			}
			for _, q := range queues {
				q.Finish()
			}
			readers.Wait()
			b.ReportMetric(float64(taken[0])/float64(b.N), "taken/op")
		})
	}
	b.Run("channels", func(b *testing.B) {
		_, all := filled(objects)
		next := successors(all)
		var readers sync.WaitGroup
		var taken [fanOut]int
		var channels []chan Delta
		for i := range fanOut {
			ch := make(chan Delta, 1024)
			channels = append(channels, ch)
			readers.Go(func() {
				for range ch {
					taken[i]++
				}
			})
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			c := &next[i/objects%2][i%objects]
			for _, ch := range channels {
				ch <- Delta{Op: Updated, Key: c.Key, New: c.V}
			}
		}
		for _, ch := range channels {
			close(ch)
		}
		readers.Wait()
	})
}

// BenchmarkStuck measures one update that a stuck queue in mode Latest folds, over 10,000 objects.
func BenchmarkStuck(b *testing.B) {
	s, all := filled(objects)
	next := successors(all)
	q := NewQueue(1, QueueOptions{Latest: true, SkipInitial: true})
	s.Subscribe(q, time.Now())
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.Commit(Commit{Changes: next[i/objects%2][i%objects : i%objects+1], Version: "1"})
	}
	b.ReportMetric(float64(q.Lag().Bytes), "lag-bytes")
}

// BenchmarkSubscribe measures how long a queue that joins a store of 1,000,000 objects blocks the writer, and how
// long it takes per object to deliver the initial state.
func BenchmarkSubscribe(b *testing.B) {
	s, _ := filled(1_000_000)
	b.Run("join", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q := NewQueue(1, QueueOptions{Latest: true})
			s.Subscribe(q, time.Time{})
			s.Unsubscribe(q)
		}
	})
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		taken := 0
		for b.Loop() {
			b.StopTimer()
			q := NewQueue(1, QueueOptions{Latest: true})
			s.Subscribe(q, time.Time{})
			b.StartTimer()
			for {
				batch, ok, _ := q.take()
				if !ok {
					break
				}
				taken += len(batch.Deltas)
			}
			s.Unsubscribe(q)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(taken), "ns/object")
	})
}

// BenchmarkTable measures the table's memory without names and versions, at several sizes between two doublings.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{500_000, 600_000, 700_000, 800_000, 900_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := make([]Key, n)
			for i := range keys {
				keys[i] = Key{"namespace-" + strconv.Itoa(i%1000), "pod-" + strconv.Itoa(i)}
			}
			v := &compact.Version{}
			for b.Loop() {
				before := heap()
				t := newTable()
				for _, k := range keys {
					t.add(k, v, 0)
				}
				b.ReportMetric(float64(heap()-before)/float64(n), "B/object")
				runtime.KeepAlive(t)
			}
			runtime.KeepAlive(keys)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRelist measures a relist of 10,000 unchanged objects.
func BenchmarkRelist(b *testing.B) {
	s, all := filled(objects)
	b.ReportAllocs()
	for b.Loop() {
		s.Begin(false, 0)
		for i := range all {
			if !known(s, all[i]) {
				b.Fatal("unknown")
			}
		}
		s.Commit(Commit{Version: "20000", Sweep: true})
	}
}

// BenchmarkGet measures a read without writers.
func BenchmarkGet(b *testing.B) {
	s, all := filled(objects)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if s.Get(all[i%objects].Key) == nil {
				b.Error("gone")
			}
		}
	})
}
