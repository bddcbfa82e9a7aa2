package clientgo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// pair is one handler, on client-go's informer and on ours.
type pair struct {
	theirs, ours *log
	theirR, ourR cache.ResourceEventHandlerRegistration
}

// world is client-go's informer and ours on one server, at random.
type world struct {
	*testing.T
	rng          *rand.Rand
	server       *server
	theirs, ours cache.SharedIndexInformer
	handlers     []*pair
	indexes      int
	// resync is the informers' period. A relist starts it anew, after a random delay, so that there is
	// either.
	resync time.Duration
}

// TestLikeClientGo does the same random things to client-go's informer and to ours: each handler is told
// the same, and what is read is equal. INFORMER_SEEDS says how many worlds there are.
func TestLikeClientGo(t *testing.T) {
	seeds := uint64(12)
	if n, err := strconv.ParseUint(os.Getenv("INFORMER_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	for seed := range seeds {
		for _, o := range []Options{{}, {Storage: Compact, Hot: 1}, {Storage: Live}} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, o)
				for step := range 80 {
					what := w.step()
					w.check(fmt.Sprintf("seed %d, %v, step %d (%s)", seed, o.Storage, step, what))
					if t.Failed() {
						return
					}
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

func newWorld(t *testing.T, seed uint64, o Options) *world {
	w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 1)), server: newServer()}
	for range w.rng.IntN(4) {
		w.server.set(w.pod())
	}
	w.resync = time.Duration(w.rng.IntN(2)) * time.Minute
	var lw cache.ListerWatcher = w.server
	if w.rng.IntN(2) == 0 {
		lw = streamer{w.server}
	}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	w.theirs = cache.NewSharedIndexInformer(lw, &corev1.Pod{}, w.resync, byNamespace)
	w.ours = newEngine(o).NewInformer(lw, &corev1.Pod{}, w.resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	w.join()
	start(t, w.theirs)
	start(t, w.ours)
	return w
}

func (w *world) pod() *corev1.Pod {
	key := fmt.Sprintf("%c/%c", 'a'+w.rng.IntN(2), 'p'+w.rng.IntN(4))
	p := pod(key, fmt.Sprint(w.rng.IntN(2)), fmt.Sprint("n", w.rng.IntN(3)))
	if w.rng.IntN(8) == 0 {
		p.Labels = map[string]string{} // what is not packed
	}
	return p
}

// some is the key of a pod that the server has; empty: it has none.
func (w *world) some() string {
	keys := []string{}
	for k := range w.server.objs {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return ""
	}
	slices.Sort(keys)
	return keys[w.rng.IntN(len(keys))]
}

func (w *world) step() string {
	switch n := w.rng.IntN(20); {
	case n < 8:
		p := w.pod()
		if w.server.objs[podKey(p)] == nil {
			w.server.add(p)
			return "add"
		}
		w.server.modify(p)
		return "modify"
	case n < 11:
		if k := w.some(); k != "" {
			w.server.remove(k)
		}
		return "remove"
	case n < 13 && w.resync == 0:
		for range w.rng.IntN(4) {
			if k := w.some(); k != "" && w.rng.IntN(2) == 0 {
				w.server.lose(k)
			} else {
				w.server.set(w.pod())
			}
		}
		w.server.relist()
		pass(3 * time.Minute) // until both have, whatever their delays
		return "relist"
	case n < 14:
		pass(time.Duration(w.rng.IntN(90)) * time.Second)
		return "time"
	case n < 16:
		w.join()
		return "join"
	case n < 17 && len(w.handlers) > 1:
		h := w.handlers[len(w.handlers)-1]
		w.handlers = w.handlers[:len(w.handlers)-1]
		if err := cache.ShutDownEventHandler(w.theirs, h.theirR); err != nil {
			w.Error(err)
		}
		if err := cache.ShutDownEventHandler(w.ours, h.ourR); err != nil {
			w.Error(err)
		}
		return "leave"
	case n < 18:
		w.indexes++
		for _, i := range []cache.SharedIndexInformer{w.theirs, w.ours} {
			if err := i.AddIndexers(cache.Indexers{fmt.Sprint("node", w.indexes): byNode}); err != nil {
				w.Error(err)
			}
		}
		return "index"
	}
	w.theirs.GetStore().List()
	w.ours.GetStore().List()
	return "list"
}

// join adds a handler, with a resync period or without.
func (w *world) join() {
	h := &pair{theirs: &log{}, ours: &log{}}
	period := time.Duration(w.rng.IntN(3)) * 30 * time.Second
	var err, err2 error
	h.theirR, err = w.theirs.AddEventHandlerWithResyncPeriod(h.theirs, period)
	h.ourR, err2 = w.ours.AddEventHandlerWithResyncPeriod(h.ours, period)
	if err != nil || err2 != nil {
		w.Errorf("joined with %v, %v", err, err2)
	}
	w.handlers = append(w.handlers, h)
}

func (w *world) check(what string) {
	w.Helper()
	for n, h := range w.handlers {
		want, got := h.theirs.take(), h.ours.take()
		slices.Sort(want) // lists have no order
		slices.Sort(got)
		expect(w.T, fmt.Sprintf("%s: handler %d", what, n), got, want...)
		if h.theirR.HasSynced() != h.ourR.HasSynced() {
			w.Errorf("%s: handler %d has synced: %v", what, n, h.ourR.HasSynced())
		}
	}
	expect(w.T, what+": cache", contents(w.ours.GetStore().List()), contents(w.theirs.GetStore().List())...)
	indexes := []string{cache.NamespaceIndex}
	for n := range w.indexes {
		indexes = append(indexes, fmt.Sprint("node", n+1))
	}
	for _, index := range indexes {
		want, got := w.theirs.GetIndexer().ListIndexFuncValues(index), w.ours.GetIndexer().ListIndexFuncValues(index)
		slices.Sort(want)
		slices.Sort(got)
		expect(w.T, what+": values of "+index, got, want...)
		for _, v := range want {
			theirs, _ := w.theirs.GetIndexer().ByIndex(index, v)
			ours, _ := w.ours.GetIndexer().ByIndex(index, v)
			expect(w.T, what+": index "+index, contents(ours), contents(theirs)...)
		}
	}
	a, b := w.theirs.LastSyncResourceVersion(), w.ours.LastSyncResourceVersion()
	c, d := w.theirs.GetStore().LastStoreSyncResourceVersion(), w.ours.GetStore().LastStoreSyncResourceVersion()
	if a != b || c != d {
		w.Errorf("%s: versions %s and %s, want %s and %s", what, b, d, a, c)
	}
}

func contents(objs []any) []string {
	var out []string
	for _, o := range objs {
		p, ok := o.(*corev1.Pod)
		if !ok {
			out = append(out, fmt.Sprintf("%T", o))
			continue
		}
		out = append(out, fmt.Sprintf("%s %s %#v", show(p), p.ResourceVersion, p.Labels))
	}
	slices.Sort(out)
	return out
}
