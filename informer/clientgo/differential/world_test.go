package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/tattler-dev/tattler/internal/informerdiff"
)

// world is a source and two informers that follow it.
type world struct {
	*testing.T
	rng          *rand.Rand
	kind         kind
	uids         bool // objects have UIDs
	transform    string
	resync       time.Duration
	faulty       bool // lists and watches fail sometimes
	writes       bool // the program writes into the store
	source       *fcache.FakeControllerSource
	objects      map[string]runtime.Object // the source's objects
	made         int                       // number of objects made so far
	theirs, ours *side
	registered   int
	trace        []string

	// resyncsDiffer is set once a failure has shifted one side's resyncs against the other's.
	resyncsDiffer bool
	// unlike is how the calls of this step may differ.
	unlike leeway
}

// leeway is what client-go's contract leaves open about the calls of one step.
type leeway struct {
	// relisted: the calls may come from a list, which has no order.
	relisted bool
	// repeats: only one side may have listed, and so repeated known objects.
	repeats bool
}

func newWorld(t *testing.T, seed uint64, ours constructor) *world {
	w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 0)), source: fcache.NewFakeControllerSource(), objects: map[string]runtime.Object{}}
	w.kind = kinds[w.rng.IntN(len(kinds))]
	w.uids = w.rng.IntN(3) > 0
	w.faulty = w.rng.IntN(4) > 0
	w.writes = w.rng.IntN(4) == 0
	if w.rng.IntN(3) == 0 {
		w.resync = time.Duration(1+w.rng.IntN(5)) * time.Second
	}
	names := slices.Sorted(maps.Keys(transforms))
	w.transform = names[w.rng.IntN(len(names))]
	if w.transform == "forgets versions" && w.resync > 0 {
		w.transform = "none" // without versions every update looks like a resync, and its recipients depend on the last resync
	}
	streams := w.rng.IntN(2) == 0
	w.note("%s, UIDs %t, transform: %s, resync %v, faults %t, streamed lists %t, writes %t", w.kind.name, w.uids, w.transform, w.resync, w.faulty, streams, w.writes)
	w.theirs = w.side("client-go", cache.NewSharedIndexInformer, streams)
	w.ours = w.side("ours", ours, streams)
	return w
}

func (w *world) side(name string, build constructor, streams bool) *side {
	s := &side{name: name, handlers: map[int]*handler{}}
	s.line = &line{source: w.source, example: w.kind.example(), streams: streams}
	s.informer = build(s.line, w.kind.example(), w.resync, w.kind.indexers(cache.NamespaceIndex, "labels"))
	return s
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// fail ends the test with the steps so far.
func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nafter:\n  %s", fmt.Sprintf(format, args...), strings.Join(w.trace, "\n  "))
}

// both calls f on both sides and compares the results.
func (w *world) both(what string, do func(*side) error) {
	w.Helper()
	a, b := fmt.Sprint(do(w.theirs)), fmt.Sprint(do(w.ours))
	if a != b {
		w.fail("%s: client-go says %s, ours %s", what, a, b)
	}
}

// waitForBoth waits until both sides have processed all of the source's events. It advances the clock in steps that avoid
// the instants of resyncs.
func (w *world) waitForBoth() {
	w.Helper()
	synctest.Wait()
	w.sleep(tick)
	for range 600 {
		if w.theirs.line.following() && w.ours.line.following() {
			return
		}
		w.sleep(time.Second)
	}
	w.fail("ten minutes after a failure: client-go follows %t, ours %t", w.theirs.line.following(), w.ours.line.following())
}

const tick = 100 * time.Millisecond

func (w *world) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// compare compares the results of a step.
func (w *world) compare(thorough bool) {
	w.Helper()
	w.lists()
	for _, n := range w.theirs.numbers() {
		a, b := w.theirs.handlers[n], w.ours.handlers[n]
		if a.slow {
			continue
		}
		theirs, ours := a.Take(), b.Take()
		if w.resyncsDiffer && !w.unlike.repeats {
			if d := resyncs(theirs, ours); d != "" {
				w.fail("handler %d with period %v: %s", n, a.period, d)
			}
		}
		if w.unlike.repeats || w.resyncsDiffer {
			theirs, ours = informerdiff.News(theirs), informerdiff.News(ours)
		}
		if d := informerdiff.Differ(theirs, ours, w.unlike.relisted); d != "" {
			w.fail("handler %d: %s", n, d)
		}
	}
	if a, b := w.theirs.state(), w.ours.state(); a != b {
		w.fail("client-go: %s\nours:      %s", a, b)
	}
	if thorough {
		w.read()
	}
	w.unlike = leeway{}
}

// lists checks which sides listed in this step: a list repeats known objects and has no order.
func (w *world) lists() {
	w.Helper()
	a, b := w.theirs.line.listed(), w.ours.line.listed()
	if b > a {
		w.fail("client-go has listed %d times, ours %d times", a, b)
	}
	w.unlike.relisted = a > 0 || b > 0
	w.unlike.repeats = w.unlike.repeats || a != b
}

// resyncs compares how often objects were repeated: two timers may differ in phase, but not in period.
func resyncs(theirs, ours []informerdiff.Call) string {
	count := func(calls []informerdiff.Call) map[string]int {
		n := map[string]int{}
		for _, c := range calls {
			if c.Resync {
				n[c.Key]++
			}
		}
		return n
	}
	a, b := count(theirs), count(ours)
	for key := range a {
		b[key] += 0
	}
	for key := range b {
		if d := a[key] - b[key]; d < -1 || d > 1 {
			return fmt.Sprintf("client-go repeats %s %d times, ours %d times", key, a[key], b[key])
		}
	}
	return ""
}

// read compares everything readable.
func (w *world) read() {
	w.Helper()
	probes := []any{w.kind.object("n9", "never", "", 0, w.rng)}
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if w.rng.IntN(4) == 0 {
			probes = append(probes, w.objects[key])
		}
	}
	if d := informerdiff.Views(w.theirs.informer.GetIndexer(), w.ours.informer.GetIndexer(), probes...); d != "" {
		w.fail("the stores differ: %s", d)
	}
}

// end compares the slow handlers, and the informers after their end.
func (w *world) end() {
	w.Helper()
	w.note("the end")
	if w.resync == 0 {
		w.sleep(4 * time.Hour) // enough for every handler to catch up
	}
	w.waitForBoth()
	w.compare(true)
	for _, n := range w.theirs.numbers() {
		a, b := w.theirs.handlers[n], w.ours.handlers[n]
		if !a.slow || a.removed {
			continue
		}
		theirs, ours := informerdiff.PerKey(informerdiff.News(a.Take())), informerdiff.PerKey(informerdiff.News(b.Take()))
		if d := informerdiff.Differ(theirs, ours, false); d != "" {
			w.fail("slow handler %d: %s", n, d)
		}
	}
	w.stop()
	w.both("AddEventHandler after the end", func(s *side) error { return s.add(-1, form{}, 0) })
	w.both("AddIndexers after the end", func(s *side) error { return s.informer.AddIndexers(w.kind.indexers("managed")) })
	w.both("RemoveEventHandler after the end", func(s *side) error {
		for _, n := range s.numbers() {
			if err := s.remove(n, false); err != nil {
				return err
			}
		}
		return nil
	})
	if a, b := w.theirs.informer.IsStopped(), w.ours.informer.IsStopped(); a != b {
		w.fail("client-go is stopped: %t, ours: %t", a, b)
	}
	w.read()
}

// stop ends both informers and the source.
func (w *world) stop() {
	for _, s := range []*side{w.theirs, w.ours} {
		s.cancel()
		<-s.done
	}
	w.source.Shutdown()
}
