package informer

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Shared objects are compared with a fresh decode of their bytes. With Options.DetectMutation, all objects that were
// handed out are checked repeatedly, and a difference panics. Otherwise a sample is checked, and a difference is counted
// and repaired.
const (
	checkEvery = time.Second // give or take a quarter
	// One in oneIn reads and evictions from the hot set is sampled, and at most maxPicked per round. A check takes
	// 0.1 ms of CPU for a pod and 0.46 ms for an unstructured one (measured with cold caches): 0.16 to 0.7 % of a CPU at
	// 1,000 reads a second, and never more than 1 %.
	oneIn     = 64
	maxPicked = 20
	// watchFor is how long an object is checked after it was handed out, if it is not kept decoded; client-go's detector
	// checks for two to four minutes.
	watchFor = 2 * time.Minute
	// checkFor limits a round of checks with DetectMutation; the next round continues.
	checkFor = 100 * time.Millisecond
	// maxReaders limits the reader names kept per object.
	maxReaders = 8
)

// detectFromEnv reports whether client-go's environment variable enables detection.
var detectFromEnv = sync.OnceValue(func() bool {
	on, err := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	return err == nil && on
})

// mutations finds shared objects that were modified.
type mutations struct {
	detect           bool
	fail             func(report string)    // panics
	nondeterministic map[*codec]struct{}    // codecs that decode equal bytes differently; only the checking goroutine uses it
	repair           map[*Source]*repairing // only the checking goroutine uses it
	wake             chan struct{}          // signals that there is something to check
	full             atomic.Bool            // the sample is complete: readers skip the random pick

	mu      sync.Mutex
	ended   bool
	given   map[Object]*handout
	order   []*handout // the values of given, in checking order
	picked  int        // objects sampled since the last round
	waiting []*handout // without detect: sampled in the previous round and checked next, after readers had time to modify them
}

// handout is a shared object that was handed out.
type handout struct {
	source  *Source
	codec   *codec
	v       *compact.Version
	obj     Object
	readers []string
	at      time.Time // when it was last handed out
}

func newMutations(detect bool) *mutations {
	return &mutations{
		detect: detect, fail: func(report string) { panic(report) },
		nondeterministic: map[*codec]struct{}{}, repair: map[*Source]*repairing{},
		wake: make(chan struct{}, 1), given: map[Object]*handout{},
	}
}

// wants reports whether this round's sample is still incomplete.
func (m *mutations) wants() bool { return !m.full.Load() }

// picks reports whether to sample an object that is handed out.
func (m *mutations) picks() bool { return m.detect || m.wants() && rand.Uint32()%oneIn == 0 }

// note schedules a check of an object; reader names its receiver, empty if unknown.
func (m *mutations) note(s *Source, c *codec, v *compact.Version, obj Object, reader string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.detect {
		if m.picked == maxPicked {
			return
		}
		m.picked++
		m.full.Store(m.picked == maxPicked)
	}
	h := m.given[obj]
	if h == nil {
		if m.ended {
			return
		}
		h = &handout{source: s, codec: c, v: v, obj: obj}
		m.given[obj] = h
		m.order = append(m.order, h)
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	h.at = time.Now()
	if reader != "" && len(h.readers) < maxReaders && !slices.Contains(h.readers, reader) {
		h.readers = append(slices.Clip(h.readers), reader) // a report may hold the old slice
	}
}

// run checks until ctx ends, and then once more.
func (m *mutations) run(ctx context.Context) {
	for ctx.Err() == nil {
		if m.idle() {
			select {
			case <-ctx.Done():
			case <-m.wake:
			}
		}
		timer := time.NewTimer(checkEvery*3/4 + rand.N(checkEvery/2))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
			m.round()
		}
	}
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.last()
}

// idle reports whether there is nothing to do until an object is handed out.
func (m *mutations) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.order)+len(m.waiting)+len(m.repair) == 0
}

// round checks the objects that are due.
func (m *mutations) round() {
	m.repairs()
	if !m.detect {
		m.sample()
		return
	}
	m.mu.Lock()
	due := m.order
	m.order = nil
	m.mu.Unlock()
	begin := time.Now()
	for i, h := range due {
		d := m.check(h)
		m.checked(h, d != nil)
		if d != nil {
			m.found(d)
		}
		if time.Since(begin) > checkFor {
			m.mu.Lock()
			m.order = append(due[i+1:], m.order...)
			m.mu.Unlock()
			return
		}
	}
}

// checked schedules the next check of an object, unless it is damaged or probably no longer in use.
func (m *mutations) checked(h *handout, damaged bool) {
	kept := h.source.hot.Keeps(h.v, h.codec, h.obj) && !h.source.isClosed()
	m.mu.Lock()
	defer m.mu.Unlock()
	if damaged || !kept && time.Since(h.at) > watchFor {
		delete(m.given, h.obj)
		return
	}
	m.order = append(m.order, h)
}

// sample checks the objects sampled before the last round.
func (m *mutations) sample() {
	m.mu.Lock()
	due := m.waiting
	m.waiting, m.order = m.order, nil
	m.picked = 0
	m.full.Store(false)
	for _, h := range due {
		delete(m.given, h.obj)
	}
	m.mu.Unlock()
	m.count(due)
}

// last checks the remaining objects.
func (m *mutations) last() {
	m.mu.Lock()
	due := append(m.waiting, m.order...)
	m.waiting, m.order, m.given = nil, nil, nil
	m.mu.Unlock()
	if !m.detect {
		m.count(due)
		return
	}
	for _, h := range due {
		if d := m.check(h); d != nil {
			m.found(d)
		}
	}
}

// count checks objects, and counts and repairs damage.
func (m *mutations) count(due []*handout) {
	found := false
	for _, h := range due {
		d := m.check(h)
		if d == nil {
			continue
		}
		found = true
		d.stream.counts.mutations.Add(1)
		d.stream.hooks().mutation(d.stream.id, d.key, d.err())
		m.repairSoon(h.source)
	}
	if found {
		m.repairs()
	}
}

// found panics with a report of the damage and of other objects that share the damaged part.
func (m *mutations) found(first *damage) {
	m.mu.Lock()
	var others []*handout
	for _, h := range m.given {
		if h.source == first.of.source && h != first.of {
			others = append(others, h)
		}
	}
	m.mu.Unlock()
	all := []*damage{first}
	for _, h := range others {
		if d := m.check(h); d != nil {
			all = append(all, d)
		}
	}
	m.repairSoon(first.of.source) // in tests, fail returns
	m.fail(report(all))
}

// handedOut notes that the view's reader received a shared object.
func (i *Informer[T]) handedOut(v *compact.Version, obj Object, u use) {
	m := i.source.cluster.mutations
	if !m.picks() {
		return
	}
	reader := i.reader
	switch {
	case reader != "":
	case u == scanning || u == passing:
		reader = "List"
	default:
		reader = "Get"
	}
	m.note(i.source, i.codec, v, obj, reader)
}

// named returns the view with a reader's name.
func (i *Informer[T]) named(reader string) *Informer[T] {
	named := *i
	named.reader = reader
	return &named
}

// indexes notes that an index's function receives an object.
func (m *mutations) indexes(s *Source, ix *indexer, v *compact.Version, obj Object) {
	if obj != nil && m.picks() {
		m.note(s, ix.codec, v, obj, indexReader(ix.status().Name))
	}
}

func indexReader(name string) string { return "index " + strconv.Quote(name) }

// sampleEvicted samples objects evicted from the hot set: by then, their readers have probably finished with them.
func (s *Source) sampleEvicted(v *compact.Version, decoder, obj any) {
	m := s.cluster.mutations
	if m.detect || !s.shares.Load() || !m.picks() {
		return
	}
	c, ok := decoder.(*codec)
	o, ok2 := obj.(Object)
	if ok && ok2 {
		m.note(s, c, v, o, "")
	}
}
