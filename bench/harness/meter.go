package harness

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// Meter measures this process relative to a baseline, the moment of its creation.
type Meter struct {
	start time.Time
	cpu   time.Duration
	heap  float64
	s     Sample
}

// NewMeter records the baseline.
func NewMeter() *Meter {
	m := &Meter{s: Sample{}}
	m.heap = liveHeap()
	m.cpu = cpuTime()
	m.start = time.Now()
	return m
}

// Set records a value.
func (m *Meter) Set(name string, v float64) { m.s[name] = v }

// Lap records the time and the CPU since the baseline, as "<name> s" and "<name> cpu s".
func (m *Meter) Lap(name string) {
	m.s[name+" s"] = time.Since(m.start).Seconds()
	m.s[name+" cpu s"] = (cpuTime() - m.cpu).Seconds()
}

// AwaitIdle waits until this process has finished deferred work: until it uses less than 4 ms of CPU
// in 200 ms, for at most ten seconds.
func (m *Meter) AwaitIdle(ctx context.Context) {
	const look, idle = 200 * time.Millisecond, 4 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for before := cpuTime(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(look):
		}
		now := cpuTime()
		if now-before < idle {
			return
		}
		before = now
	}
}

// Memory records the resident memory; then, after a collection, the live heap beyond the baseline; and
// the resident memory after unused memory was returned to the system: "<name> rss B",
// "<name> peak rss B", "<name> heap B", "<name> trimmed rss B".
func (m *Meter) Memory(name string) {
	now, peak := resident()
	m.s[name+" rss B"], m.s[name+" peak rss B"] = now, peak
	m.s[name+" heap B"] = liveHeap() - m.heap
	debug.FreeOSMemory()
	m.s[name+" trimmed rss B"], _ = resident()
}

// Collections records the duration of a forced garbage collection as "gc ns", the median of nine.
func (m *Meter) Collections() {
	var all []float64
	for range 9 {
		start := time.Now()
		runtime.GC()
		all = append(all, float64(time.Since(start)))
	}
	slices.Sort(all)
	m.s["gc ns"] = all[len(all)/2]
}

// Heap is the live heap beyond the baseline, after a collection; bytes.
func (m *Meter) Heap() float64 { return liveHeap() - m.heap }

// Sample returns the recorded values.
func (m *Meter) Sample() Sample { return m.s }

// liveHeap collects twice: the second collection frees what finalizers and pools released.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Usage is what a process has used so far.
type Usage struct {
	// CPU is in user and system mode.
	CPU time.Duration
	// Allocs and Bytes count allocations.
	Allocs, Bytes float64
}

// Used returns what this process has used.
func Used() Usage {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return Usage{cpuTime(), float64(s.Mallocs), float64(s.TotalAlloc)}
}

// Peak watches memory during an operation.
type Peak struct {
	m    *Meter
	stop chan struct{}
	done chan struct{}
	heap float64
}

// WatchHeap collects repeatedly until End and keeps the largest live heap that a collection found.
// The result does not depend on the collector's pace. It occupies a processor.
func (m *Meter) WatchHeap() *Peak {
	p := &Peak{m: m, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			select {
			case <-p.stop:
				return
			default:
			}
			runtime.GC()
			metrics.Read(live)
			p.heap = max(p.heap, float64(live[0].Value.Uint64()))
		}
	}()
	return p
}

// End ends the watch and returns the largest live heap beyond the baseline, bytes.
func (p *Peak) End() float64 {
	close(p.stop)
	<-p.done
	return p.heap - p.m.heap
}

// TrimRSS returns unused memory to the system, makes the remaining resident memory the new peak, and
// returns it, bytes.
func TrimRSS() (float64, error) {
	debug.FreeOSMemory()
	err := resetPeak()
	now, _ := resident()
	return now, err
}

// PeakRSS is the maximum of resident memory since [TrimRSS], bytes.
func PeakRSS() float64 {
	_, peak := resident()
	return peak
}

// Time calls do with 0, 1, 2… for half a second or longer and records the time and the allocations of
// a call: "<name> ns", "<name> allocs", "<name> alloc B". A first round warms up.
func (m *Meter) Time(ctx context.Context, name string, do func(i int) error) error {
	const enough = 500 * time.Millisecond
	for n := 1; ; n *= 2 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		for i := range n {
			if err := do(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", name, context.Cause(ctx))
		}
		if took >= enough {
			m.s[name+" ns"] = float64(took) / float64(n)
			m.s[name+" allocs"] = float64(after.Mallocs-before.Mallocs) / float64(n)
			m.s[name+" alloc B"] = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
			return nil
		}
	}
}
