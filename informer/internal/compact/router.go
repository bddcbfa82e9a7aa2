package compact

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// minSource is the smallest object that is stored as a difference, in bytes.
const minSource = 64

// Options are the options of a Router. The zero value is usable.
type Options struct {
	// Fingerprint tells objects that may look alike from others, within one resource; false where it
	// cannot. The default is wire.Fingerprint.
	Fingerprint func(f wire.Format, raw []byte) (sum uint64, ok bool)
}

// Router chooses what objects are stored as the difference from. One serves the streams of a source:
// it is safe for concurrent use.
//
// An object that no sample of its fingerprint makes half as large as it is for itself is stored for
// itself, and is the first candidate for the next one's sample: it becomes one if it suits. So a new
// template, or a pod that runs where the sample was pending, or an application of the same name
// elsewhere, costs one miss, and a sample costs nothing that was not there. The last few samples
// stay, so that a rollout can go back and forth. A fingerprint that goes on to miss is left alone
// for a while, twice as long each time.
type Router struct {
	fingerprint func(wire.Format, []byte) (uint64, bool)
	routed      atomic.Uint64
	unrouted    atomic.Uint64

	mu      sync.Mutex
	routes  map[uint64]*route
	made    []weak.Pointer[Dict] // samples, some of which may be gone
	sweepAt int                  // of routes and made together
	shared  sharing
}

const (
	perRoute    = 3
	minSweep    = 4096
	manyMisses  = 8
	longestRest = 4096
)

// route is what is known of one fingerprint. Nothing here keeps an object or a sample alive.
type route struct {
	samples [perRoute]weak.Pointer[Dict] // the one that suited last comes first
	last    weak.Pointer[Version]        // the last one that no sample suited
	misses  uint8                        // in a row, up to where they are many
	rest    uint16                       // so many objects more are not compared
	resting uint16                       // so many were not the last time
}

// NewRouter returns a Router that knows nothing yet.
func NewRouter(o Options) *Router {
	if o.Fingerprint == nil {
		o.Fingerprint = wire.Fingerprint
	}
	return &Router{fingerprint: o.Fingerprint, routes: map[uint64]*route{}, sweepAt: minSweep, shared: sharing{due: firstDue}}
}

// pack makes a version of an object.
func (r *Router) pack(s *scratch, f wire.Format, uid, rv string, raw []byte) *Version {
	sum, ok := r.fingerprint(f, raw)
	c := choice{resting: true}
	if ok {
		c = r.lookup(sum)
	}
	if d := c.try(s, raw); d != nil {
		r.routed.Add(1)
		if d != c.samples[0] || c.missed {
			r.hit(sum, d)
		}
		return newVersion(s, f, uid, rv, s.out, d)
	}
	r.unrouted.Add(1)
	shared := r.alone(s, sum, raw)
	v := newVersion(s, f, uid, rv, s.out, shared)
	if !c.resting {
		r.miss(sum, v)
	}
	return v
}

// choice is what an object may be stored as the difference from, the likeliest first.
type choice struct {
	samples [perRoute]*Dict
	last    *Version // which may become a sample
	missed  bool     // no sample suited the last object
	resting bool     // nothing is to be tried, nor to be learnt
}

// try packs an object as the difference from a sample that suits, which it returns if there is one.
func (c *choice) try(s *scratch, raw []byte) *Dict {
	for _, d := range c.samples {
		if d != nil && s.difference(d, raw, d.fit(len(raw))) {
			return d
		}
	}
	if c.last != nil {
		if d := newSample(c.last); s.difference(d, raw, d.fit(len(raw))) {
			return d
		}
	}
	return nil
}

// fit is the length up to which the difference of an object of size bytes is one that pays.
func (d *Dict) fit(size int) int { return len(d.payload) * size / d.size / 2 }

// lookup returns the samples of a fingerprint.
func (r *Router) lookup(sum uint64) (c choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routes[sum]
	switch {
	case rt == nil:
		return c
	case rt.rest > 0:
		rt.rest--
		c.resting = true
		return c
	}
	for i, w := range rt.samples {
		c.samples[i] = w.Value()
	}
	c.last = rt.last.Value()
	c.missed = rt.misses > 0
	return c
}

// hit notes that a sample suited, which may be new.
func (r *Router) hit(sum uint64, d *Dict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.route(sum)
	rt.misses, rt.resting = 0, 0
	w := weak.Make(d)
	i := slices.Index(rt.samples[:], w)
	if i < 0 {
		i = perRoute - 1
		rt.last = weak.Pointer[Version]{}
		r.made = append(r.made, w)
	}
	copy(rt.samples[1:i+1], rt.samples[:i])
	rt.samples[0] = w
}

// miss notes that no sample suited the object of which v was made.
func (r *Router) miss(sum uint64, v *Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.route(sum)
	rt.last = weak.Make(v)
	if rt.misses++; rt.misses == manyMisses {
		rt.resting = min(max(2*rt.resting, manyMisses), longestRest)
		rt.rest, rt.misses = rt.resting, manyMisses-1
	}
}

// route returns a route, which may be new. The caller holds the lock.
func (r *Router) route(sum uint64) *route {
	rt := r.routes[sum]
	if rt == nil {
		if len(r.routes)+len(r.made) >= r.sweepAt {
			r.sweep()
		}
		rt = &route{}
		r.routes[sum] = rt
	}
	return rt
}

// sweep forgets the samples that are gone and the routes without one, so that what is remembered is
// bounded by what lives. The caller holds the lock.
func (r *Router) sweep() {
	live := r.made[:0]
	for _, w := range r.made {
		if w.Value() != nil {
			live = append(live, w)
		}
	}
	clear(r.made[len(live):])
	r.made = live
	for sum, rt := range r.routes {
		if !rt.living() {
			delete(r.routes, sum)
		}
	}
	r.sweepAt = max(minSweep, 2*(len(r.routes)+len(r.made)))
}

func (rt *route) living() bool {
	for _, w := range rt.samples {
		if w.Value() != nil {
			return true
		}
	}
	return false
}

// Adopt makes a loaded dictionary one of the router's, so that objects to come are stored as the
// difference from it. It matters most where all versions were restored from a checkpoint: without
// it, each kind of object would get a second sample.
func (r *Router) Adopt(f wire.Format, d *Dict) {
	if d.index != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.shared.dict == nil {
			r.shared.dict = d
		}
		return
	}
	if sum, ok := r.fingerprint(f, d.unpack(nil)); ok {
		r.hit(sum, d)
	}
}

// RouterStats is what a Router has and did.
type RouterStats struct {
	// Dictionaries are the samples that live, and the shared dictionary.
	Dictionaries int
	// Bytes is what they and the router itself cost, about.
	Bytes int64
	// Routed counts the objects that were stored as the difference from a sample, Unrouted the
	// others: sooner or later a sample's first.
	Routed, Unrouted uint64
}

// Stats tells what the router has. It takes time in proportion to the dictionaries.
func (r *Router) Stats() RouterStats {
	const perEntry = int(unsafe.Sizeof(route{})) + 32 // its slot in the map
	st := RouterStats{Routed: r.routed.Load(), Unrouted: r.unrouted.Load()}
	r.mu.Lock()
	defer r.mu.Unlock()
	st.Bytes = int64(len(r.routes)*perEntry + cap(r.made)*8 + r.shared.collected())
	count := func(d *Dict) {
		if d != nil {
			st.Dictionaries++
			st.Bytes += int64(d.cost())
		}
	}
	for _, w := range r.made {
		count(w.Value())
	}
	count(r.shared.dict)
	count(r.shared.trial)
	return st
}
