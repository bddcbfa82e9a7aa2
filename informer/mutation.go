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

// Shared objects are compared with what their bytes decode to. With Options.DetectMutation, all that somebody has are
// checked again and again, and a difference ends the program. Otherwise a few are picked, and a difference is counted and
// repaired.
const (
	checkEvery = time.Second // give or take a quarter
	// oneIn is of how many reads, and of how many objects that leave the hot set, one is picked, and maxPicked how many
	// are at most until the next check. A check costs 0.1 ms of CPU for a pod and 0.46 for an unstructured one (measured
	// with cold caches), so this is 0.16 to 0.7 % of a CPU at 1,000 reads a second, and never more than 1 %.
	oneIn     = 64
	maxPicked = 20
	// watchFor is how long an object is watched that was handed out and is not kept decoded; client-go's detector watches
	// two to four minutes.
	watchFor = 2 * time.Minute
	// checkFor is how long a round of checks may take with DetectMutation; the next one goes on.
	checkFor = 100 * time.Millisecond
	// maxReaders bounds the names that are remembered for an object.
	maxReaders = 8
)

// detectByEnv is what client-go's environment variable says.
var detectByEnv = sync.OnceValue(func() bool {
	on, err := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	return err == nil && on
})

// mutations finds shared objects that somebody has written to.
type mutations struct {
	detect bool
	fail   func(report string)    // ends the program
	odd    map[*codec]struct{}    // that make different objects of the same bytes; the checking goroutine's
	repair map[*Source]*repairing // likewise
	wake   chan struct{}          // says that there is something to check
	full   atomic.Bool            // enough are picked: spares readers the dice

	mu      sync.Mutex
	ended   bool
	given   map[Object]*handout
	order   []*handout // of given, as they are to be checked
	picked  int        // since the last round
	waiting []*handout // without detect: those that are checked next; there was time to write to them
}

// handout is a shared object that somebody has.
type handout struct {
	source  *Source
	codec   *codec
	v       *compact.Version
	obj     Object
	readers []string
	at      time.Time // when it was handed out last
}

func newMutations(detect bool) *mutations {
	return &mutations{
		detect: detect, fail: func(report string) { panic(report) },
		odd: map[*codec]struct{}{}, repair: map[*Source]*repairing{},
		wake: make(chan struct{}, 1), given: map[Object]*handout{},
	}
}

// wants reports whether any more objects are to be noted before the next round.
func (m *mutations) wants() bool { return !m.full.Load() }

// picks reports whether to note an object that is handed out.
func (m *mutations) picks() bool { return m.detect || m.wants() && rand.Uint32()%oneIn == 0 }

// note has an object checked; reader is who got it, empty where that is not known.
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
		h.readers = append(slices.Clip(h.readers), reader) // who reports has the ones before
	}
}

// run checks until ctx ends, and then a last time.
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

// idle reports whether there is nothing to do until something is handed out.
func (m *mutations) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.order)+len(m.waiting)+len(m.repair) == 0
}

// round checks what is due.
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

// checked goes on watching an object, unless it is damaged or nobody is likely to have it any more.
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

// sample checks what was picked before the last round.
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

// last checks what is left.
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

// count checks, counts and repairs.
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

// found ends the program, and says who else has the damaged part.
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
	m.repairSoon(first.of.source) // a test goes on
	m.fail(report(all))
}

// gave notes that the view's reader got a shared object.
func (i *Informer[T]) gave(v *compact.Version, obj Object, u use) {
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

// as returns the view for a reader with a name.
func (i *Informer[T]) as(reader string) *Informer[T] {
	named := *i
	named.reader = reader
	return &named
}

// indexes notes that an index's function gets an object.
func (m *mutations) indexes(s *Source, ix *indexer, v *compact.Version, obj Object) {
	if obj != nil && m.picks() {
		m.note(s, ix.codec, v, obj, indexReader(ix.status().Name))
	}
}

func indexReader(name string) string { return "index " + strconv.Quote(name) }

// left picks some of the objects that leave the hot set: by then, all who had them have done what they do.
func (s *Source) left(v *compact.Version, decoder, obj any) {
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
