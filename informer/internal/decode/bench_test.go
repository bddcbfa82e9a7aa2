package decode

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// How to run these, and what they measure.
//
//	go test ./informer/internal/decode -run '^$' -bench BenchmarkDecode -benchtime 3x
//	go test ./informer/internal/decode -run '^$' -bench BenchmarkRatios -benchtime 5x
//
// In both, an op is one object: the average over whole passes through the data. A pass keeps its objects, and has a new
// table. CPU-ns/op includes the garbage collector. Live-B/object is the heap of the objects with all that they share, and of
// the table.
//
// In BenchmarkRatios the decoders take turns on one data set, so that the machine's other work slows down all of them.

// stream is a list of objects, and updates that each replace one of them.
type stream struct {
	typ     reflect.Type
	list    [][]byte
	updates []update
}

type update struct {
	at  int
	raw []byte
}

// data are the streams, made on first use.
var data = []struct {
	name string
	make func() *stream
}{
	{"pods-200x100/shuffled", sync.OnceValue(func() *stream {
		return listed[corev1.Pod](samples.Shuffled(samples.New(1).Pods(wire.Protobuf, 200, 100)))
	})},
	{"pods-2000x10/list", sync.OnceValue(func() *stream { return listed[corev1.Pod](samples.New(1).Pods(wire.Protobuf, 2000, 10)) })},
	{"pods-2000x10/shuffled", sync.OnceValue(func() *stream {
		return listed[corev1.Pod](samples.Shuffled(samples.New(1).Pods(wire.Protobuf, 2000, 10)))
	})},
	{"replicasets-500x10/list", sync.OnceValue(func() *stream { return listed[appsv1.ReplicaSet](samples.New(1).ReplicaSets(wire.Protobuf, 500, 10)) })},
	{"updates-200x10", sync.OnceValue(func() *stream { return kubelet(200, 10, 4) })},
}

func listed[T any](items []samples.Item) *stream {
	s := &stream{typ: reflect.TypeFor[T]()}
	for _, it := range items {
		s.list = append(s.list, it.Raw)
	}
	return s
}

// kubelet is a list of pods and the kubelet's later updates: a probe fails, a container restarts and becomes ready
// again. Each update writes the status and the kubelet's entry of managedFields only.
func kubelet(apps, each, steps int) *stream {
	g := samples.New(1)
	s := &stream{typ: reflect.TypeFor[corev1.Pod]()}
	var pods []*corev1.Pod
	for i := range apps {
		a := g.App(i)
		for j := range each {
			pods = append(pods, g.Pod(a, j))
		}
	}
	for _, p := range pods {
		s.list = append(s.list, samples.Encode(wire.Protobuf, p).Raw)
	}
	now := time.Unix(1_793_500_000, 0).UTC()
	for step := range steps {
		for _, at := range g.Perm(len(pods)) {
			now = now.Add(time.Duration(g.IntN(3)) * time.Second)
			kubeletStep(g.Rand, pods[at], step, metav1.NewTime(now))
			pods[at].ResourceVersion = fmt.Sprint(50_000_000 + 10*len(s.updates))
			s.updates = append(s.updates, update{at, samples.Encode(wire.Protobuf, pods[at]).Raw})
		}
	}
	return s
}

func kubeletStep(rnd *rand.Rand, p *corev1.Pod, step int, now metav1.Time) {
	ready := step%2 == 1
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != corev1.PodReady && c.Type != corev1.ContainersReady {
			continue
		}
		c.Status, c.Reason, c.Message, c.LastTransitionTime = "True", "", "", now
		if !ready {
			c.Status, c.Reason, c.Message = "False", "ContainersNotReady", "containers with unready status: ["+p.Spec.Containers[0].Name+"]"
		}
	}
	cs := &p.Status.ContainerStatuses[0]
	if cs.Ready = ready; ready {
		cs.RestartCount++
		cs.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: cs.State.Running.StartedAt, FinishedAt: now, ContainerID: cs.ContainerID}
		cs.ContainerID = fmt.Sprintf("containerd://%016x%016x%016x%016x", rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
		cs.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	}
	last := len(p.ManagedFields) - 1
	p.ManagedFields[last].Time = &now
}

// contender is a decoder under test. Make is called for each pass, which keeps the results.
type contender struct {
	name string
	make func(typ reflect.Type) (decode decode, keep any)
}

var contenders = []contender{
	{"generated", func(reflect.Type) (decode, any) {
		return func(raw []byte, obj any) (bool, bool) { return false, obj.(unmarshaler).Unmarshal(raw) == nil }, nil
	}},
	{"plan", func(typ reflect.Type) (decode, any) { return planOf(typ, false), nil }},
	{"plan-table", func(typ reflect.Type) (decode, any) {
		plan, table := For(typ), NewTable(64<<20) // as a source has where objects are kept decoded
		return func(raw []byte, obj any) (bool, bool) {
			r, ok := plan.Decode(table, raw, obj)
			return r.Lossy, ok
		}, table
	}},
}

// spent is the cost of several passes.
type spent struct {
	ops           int
	wall, cpu     time.Duration
	bytes, allocs uint64
	live          float64 // of the last pass
}

func (c *spent) report(b *testing.B) {
	n := float64(c.ops)
	b.ReportMetric(float64(c.wall.Nanoseconds())/n, "ns/op")
	b.ReportMetric(float64(c.cpu.Nanoseconds())/n, "cpu-ns/op")
	b.ReportMetric(float64(c.bytes)/n, "B/op")
	b.ReportMetric(float64(c.allocs)/n, "allocs/op")
	b.ReportMetric(c.live, "live-B/object")
}

// pass decodes a stream once. If there are updates, only they are measured.
func (c *spent) pass(b *testing.B, s *stream, way contender, measureLive bool) {
	b.Helper()
	runtime.GC()
	runtime.GC()
	before := heap()
	decode, table := way.make(s.typ)
	objs := make([]any, len(s.list))
	put := func(at int, raw []byte) {
		obj := reflect.New(s.typ).Interface()
		if _, ok := decode(raw, obj); !ok {
			b.Fatal("the plan refuses the bytes")
		}
		objs[at] = obj
	}
	timed := func(n int, f func()) {
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		cpu, wall := cpuTime(), time.Now()
		f()
		c.cpu += cpuTime() - cpu
		c.wall += time.Since(wall)
		runtime.ReadMemStats(&to)
		c.bytes, c.allocs, c.ops = c.bytes+to.TotalAlloc-from.TotalAlloc, c.allocs+to.Mallocs-from.Mallocs, c.ops+n
	}
	list := func() {
		for i, raw := range s.list {
			put(i, raw)
		}
	}
	if len(s.updates) == 0 {
		timed(len(s.list), list)
	} else {
		list()
		timed(len(s.updates), func() {
			for _, u := range s.updates {
				put(u.at, u.raw)
			}
		})
	}
	if measureLive {
		runtime.GC()
		runtime.GC()
		c.live = (float64(heap()) - float64(before)) / float64(len(objs))
	}
	runtime.KeepAlive(objs)
	runtime.KeepAlive(table)
}

func BenchmarkDecode(b *testing.B) {
	for _, d := range data {
		for _, way := range contenders {
			b.Run(d.name+"/"+way.name, func(b *testing.B) {
				s, c := d.make(), spent{}
				b.ReportAllocs()
				for b.Loop() {
					c.pass(b, s, way, true)
				}
				c.report(b)
			})
		}
	}
}

// BenchmarkRatios reports the CPU time of the generated code divided by ours.
func BenchmarkRatios(b *testing.B) {
	for _, d := range data {
		b.Run(d.name, func(b *testing.B) {
			s, costs := d.make(), make([]spent, len(contenders))
			for b.Loop() {
				for i, way := range contenders {
					costs[i].pass(b, s, way, false)
				}
			}
			cpu := map[string]float64{}
			for i, way := range contenders {
				cpu[way.name] = float64(costs[i].cpu)
			}
			for _, way := range contenders[1:] {
				b.ReportMetric(cpu["generated"]/cpu[way.name], "generated/"+way.name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
