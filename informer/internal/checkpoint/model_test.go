package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

type objects = map[store.Key]*compact.Version

// model is a stream with its whole history, with which files are compared.
type model struct {
	t    *testing.T
	rng  *rand.Rand
	pack compact.Packer

	steps   int // remaining until the stream ends
	now     objects
	head    store.Head // Version is kept while listing
	counter int        // of resource versions and UIDs
	made    int        // versions of objects
	live    map[store.Head]objects
	order   map[store.Head]int // of live heads
	queues  int                // open queues
	raw     map[*compact.Version]string
	existed map[string]bool // by content, which is unique
}

func newModel(t *testing.T, seed uint64, steps int) *model {
	return &model{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), steps: steps,
		now: objects{}, head: store.Head{Epoch: 1, Phase: store.Listing},
		live: map[store.Head]objects{}, order: map[store.Head]int{},
		raw: map[*compact.Version]string{}, existed: map[string]bool{},
	}
}

// step makes a random change to the stream.
func (m *model) step() {
	m.steps--
	listing := m.head.Phase == store.Listing
	switch n := m.rng.IntN(20); {
	case listing && n < 8: // the sweep
		m.mutate(m.rng.IntN(4))
		m.becomeLive()
	case listing && n == 8: // the history was replaced during the list
		m.newEpoch()
	case listing:
		m.mutate(1 + m.rng.IntN(6))
	case n == 0: // a relist
		m.head.Phase = store.Listing
	case n == 1:
		m.newEpoch()
	case n == 2: // a bookmark
		m.becomeLive()
	case n == 3 && modelFaults.form: // a list discovers it
		m.changeForm()
		m.becomeLive()
	default:
		m.mutate(1 + m.rng.IntN(3))
		m.becomeLive()
	}
}

func (m *model) newEpoch() {
	m.head = store.Head{Epoch: m.head.Epoch + 1, Phase: store.Listing}
	m.counter = m.rng.IntN(m.counter + 1)
}

func (m *model) becomeLive() {
	m.counter++
	m.head.Phase, m.head.Version = store.Live, strconv.Itoa(1000+m.counter)
	m.live[m.head] = maps.Clone(m.now)
	m.order[m.head] = len(m.order)
}

func (m *model) mutate(n int) {
	for range n {
		k := store.Key{Namespace: []string{"", "a", "b"}[m.rng.IntN(3)], Name: fmt.Sprint("o", m.rng.IntN(8))}
		old := m.now[k]
		if old != nil && m.rng.IntN(4) == 0 {
			delete(m.now, k)
			continue
		}
		m.counter++
		uid, rv := strconv.Itoa(m.counter), strconv.Itoa(1000+m.counter)
		if old != nil && m.rng.IntN(5) > 0 {
			uid = old.UID()
		}
		m.now[k] = m.version(k, uid, rv)
	}
}

// modelFaults are server faults that versions do not reveal.
var modelFaults = struct {
	form bool // an object is served in another form at the same version
}{
	form: true,
}

func (m *model) changeForm() {
	for _, k := range sortedKeys(m.now) { // sorted, so that a seed is reproducible
		if v := m.now[k]; m.rng.IntN(2) == 0 {
			m.now[k] = m.version(k, v.UID(), v.RV())
		}
	}
}

func (m *model) version(k store.Key, uid, rv string) *compact.Version {
	f := wire.JSON
	if m.rng.IntN(2) == 0 {
		f = wire.Protobuf
	}
	m.made++
	raw := fmt.Sprintf("%d %v %s %s %d%s", m.head.Epoch, k, uid, rv, m.made, strings.Repeat(" "+uid, m.rng.IntN(60)))
	v := m.pack.Pack(f, uid, rv, []byte(raw))
	m.raw[v], m.existed[raw] = raw, true
	return v
}

// resumed is the stream of the next process, which begins with the loaded state.
func (m *model) resumed(st *State, steps int) {
	m.steps = steps
	for _, it := range st.Items {
		if now := m.now[it.Key]; now != nil && m.raw[now] == m.unpack(it) {
			m.now[it.Key] = it.V // the store keeps the loaded bytes
			m.raw[it.V] = m.raw[now]
		}
	}
}

func (m *model) unpack(it store.Item) string {
	raw, err := it.V.Append(nil)
	if err != nil {
		m.t.Fatalf("unpack %v: %v", it.Key, err)
	}
	return string(raw)
}

// check compares a loaded state with the history.
func (m *model) check(st *State) error {
	want, ok := m.live[st.Head]
	switch {
	case st.Head.Phase == store.Live && !ok:
		return fmt.Errorf("loaded %+v, which never was", st.Head)
	case ok && len(st.Items) != len(want):
		return fmt.Errorf("loaded %d objects of %+v, want %d", len(st.Items), st.Head, len(want))
	}
	for _, it := range st.Items {
		raw, v := m.unpack(it), want[it.Key]
		switch {
		case !m.existed[raw]:
			return fmt.Errorf("loaded %v: %q, which never was", it.Key, raw)
		case ok && (v == nil || m.raw[v] != raw || v.UID() != it.V.UID() || v.RV() != it.V.RV() || v.Format() != it.V.Format()):
			return fmt.Errorf("loaded %v: %q, which was not of %+v", it.Key, raw, st.Head)
		}
	}
	return nil
}

// subscribe returns a queue like the store's in mode Latest: it sends the difference between the consumer's
// state and the stream's, sometimes in parts, and advances the stream in between.
func (m *model) subscribe() *modelQueue {
	m.queues++
	return &modelQueue{model: m, known: objects{}}
}

type modelQueue struct {
	*model
	known  objects
	sent   store.Head   // the last live one
	epoch  int64        // of the last batch
	gone   func() bool  // reports whether the process has ended
	end    func() error // called, and its result returned, once everything was sent
	closed bool
}

func (q *modelQueue) Close() {
	q.queues--
	q.closed = true
}

func (q *modelQueue) Next(ctx context.Context) (store.Batch, error) {
	if q.closed {
		q.t.Error("Next of a closed queue")
	}
	for {
		if q.steps <= 0 && q.head.Phase == store.Listing {
			q.becomeLive() // every list ends
		}
		news := q.sent != q.head || len(q.dirty()) > 0
		switch {
		case q.gone():
			return store.Batch{}, store.ErrClosed
		case ctx.Err() != nil && news && q.rng.IntN(2) == 0:
			return q.batch(), nil // like the store's queue, which looks for batches first
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case q.steps <= 0 && !news:
			return store.Batch{}, q.end()
		}
		for range q.rng.IntN(3) {
			if q.steps > 0 {
				q.step()
			}
		}
		if q.rng.IntN(4) > 0 {
			return q.batch(), nil
		}
		select { // nothing happens for a while
		case <-ctx.Done():
		case <-time.After(time.Duration(q.rng.IntN(3000)) * time.Millisecond):
		}
	}
}

func (q *modelQueue) dirty() []store.Key {
	var keys []store.Key
	for k, v := range q.now {
		if q.known[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range q.known {
		if q.now[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func sortedKeys(all objects) []store.Key { return slices.SortedFunc(maps.Keys(all), compareKeys) }

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (q *modelQueue) batch() store.Batch {
	dirty := q.dirty()
	q.epoch = q.head.Epoch
	b := store.Batch{Epoch: q.head.Epoch, Phase: store.Listing}
	if q.rng.IntN(3) > 0 {
		if b.Phase = q.head.Phase; b.Phase == store.Live {
			b.Version, q.sent = q.head.Version, q.head
		}
	} else if len(dirty) > 1 {
		dirty = dirty[:len(dirty)/2]
	}
	for _, k := range dirty {
		old, now := q.known[k], q.now[k]
		d := store.Delta{Key: k, Old: old, New: now}
		switch {
		case old == nil:
			d.Op = store.Added
		case now == nil:
			d.Op = store.Deleted
		case old.UID() != now.UID():
			b.Deltas = append(b.Deltas, store.Delta{Op: store.Deleted, Key: k, Old: old})
			d = store.Delta{Op: store.Added, Key: k, New: now}
		default:
			d.Op = store.Updated
		}
		b.Deltas = append(b.Deltas, d)
		q.known[k] = now
		if now == nil {
			delete(q.known, k)
		}
	}
	return b
}
