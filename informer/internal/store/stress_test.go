package store

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// TestConcurrent runs a writer, readers, an index that is added and removed, and consumers of all kinds that join and
// leave, concurrently, for the race detector. Every consumer that stays, and the index, must end with the store's
// state.
func TestConcurrent(t *testing.T) {
	w := &writer{store: New(0), has: map[Key]string{}, rand: rand.New(rand.NewPCG(1, 2))}
	w.store.piece = 7
	stop := make(chan struct{})
	var others, consumers sync.WaitGroup
	for i := range 8 {
		q := NewQueue(1, QueueOptions{Latest: i%2 == 0, Budget: 4000})
		w.store.Subscribe(q, time.Now())
		w.queues = append(w.queues, q)
		consumers.Go(func() { w.follow(t, q) })
	}
	others.Go(func() { w.comeAndGo(stop) })
	others.Go(func() { w.read(t, stop) })
	others.Go(func() { w.build(t, stop) })
	for range 50 {
		w.step()
	}
	close(stop)
	others.Wait()
	for _, q := range w.queues {
		q.Finish()
	}
	consumers.Wait()
}

// writer commits random changes.
type writer struct {
	store  *Store
	queues []*Queue
	has    map[Key]string
	rand   *rand.Rand
	rv     int
}

func (w *writer) change() Change {
	w.rv++
	c := Change{Key: Key{"n" + strconv.Itoa(w.rand.IntN(3)), strconv.Itoa(w.rand.IntN(100))}}
	rv := strconv.Itoa(w.rv)
	c.V = pack(wire.JSON, "u", rv, []byte("{}"))
	if c.Delete = w.rand.IntN(3) == 0; c.Delete {
		delete(w.has, c.Key)
	} else {
		w.has[c.Key] = rv
	}
	return c
}

// step lists, then sends some events.
func (w *writer) step() {
	w.store.Begin(false, 0)
	var list []Change
	for k, rv := range w.has {
		if c := (Change{Key: k, V: pack(wire.JSON, "u", rv, []byte("{}"))}); !known(w.store, c) {
			list = append(list, c)
		}
	}
	w.rv++
	w.store.Commit(Commit{Changes: list, Version: strconv.Itoa(w.rv), Sweep: true})
	for range 50 {
		c := w.change()
		w.store.Commit(Commit{Changes: []Change{c}, Version: c.V.RV()})
	}
	for range 20 {
		w.change() // not observed until the next list
	}
}

// follow takes until the queue ends, and compares.
func (w *writer) follow(t *testing.T, q *Queue) {
	state := map[Key]*compact.Version{}
	for {
		b, err := q.Next(context.Background())
		if err != nil {
			break
		}
		for _, d := range b.Deltas {
			if state[d.Key] != d.Old {
				t.Errorf("%v: old is %s, the consumer has %s", d.Key, d.Old.RV(), state[d.Key].RV())
			}
			if state[d.Key] = d.New; d.New == nil {
				delete(state, d.Key)
			}
		}
	}
	if !maps.Equal(state, all(w.store)) {
		t.Errorf("a consumer ends with %d objects that are not the store's %d", len(state), len(all(w.store)))
	}
}

func all(s *Store) map[Key]*compact.Version {
	state := map[Key]*compact.Version{}
	for _, item := range s.Snapshot("") {
		state[item.Key] = item.V
	}
	return state
}

// comeAndGo joins, takes a few batches, and leaves.
func (w *writer) comeAndGo(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		q := NewQueue(1, QueueOptions{Latest: i%2 == 0, SkipInitial: i%3 == 0, Budget: 4000})
		q.max = 10
		w.store.Subscribe(q, time.Now())
		var leaving sync.WaitGroup
		if i%5 == 0 {
			leaving.Go(q.Close)
		}
		for range 3 {
			if _, ok, err := q.take(); err != nil || !ok {
				break
			}
		}
		q.Lag()
		w.store.Unsubscribe(q)
		q.Close()
		leaving.Wait()
	}
}

func (w *writer) read(t *testing.T, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		for _, item := range w.store.Snapshot("n1") {
			if item.V == nil || item.Key.Namespace != "n1" {
				t.Errorf("a snapshot has %v", item)
			}
			w.store.Get(item.Key)
		}
		w.store.Stat()
		w.store.Version()
	}
}

// build adds an index, fills it during commits, checks it and removes it.
func (w *writer) build(t *testing.T, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		ix := mirror{}
		slot := w.store.AddIndex(ix)
		for _, item := range w.store.Snapshot("") {
			w.store.SetIndex(slot, item.Key, item.V, item.V)
		}
		w.store.View(func(get func(Key) *compact.Version) {
			for k, v := range ix {
				if got := get(k); got == nil || v != nil && got != v {
					t.Errorf("the index is out of step at %v", k)
				}
			}
			if len(ix) != w.store.table.objects {
				t.Errorf("the index has %d of %d objects", len(ix), w.store.table.objects)
			}
		})
		w.store.RemoveIndex(slot)
	}
}

// mirror is an index of the versions themselves, nil for an object that changed since it was added.
type mirror map[Key]*compact.Version

func (m mirror) Set(k Key, values any) { m[k], _ = values.(*compact.Version) }

func (m mirror) Delete(k Key) { delete(m, k) }

func (m mirror) Clear() { clear(m) }
