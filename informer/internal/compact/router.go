package compact

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

const (
	// minSource is the size in bytes of the smallest object stored as a delta.
	minSource = 64
	// minSweep is the number of routes and samples from which a Router sweeps dead ones.
	minSweep = 4096
)

// Options are the options of a Router. The zero value is usable.
type Options struct {
	// Fingerprint groups objects of one resource that may look alike; false if it cannot. The default is
	// wire.Fingerprint.
	Fingerprint func(f wire.Format, raw []byte) (sum uint64, ok bool)
}

// Router chooses the dictionaries of objects. One Router serves the streams of a source. It is safe for concurrent use.
//
//   - If no sample of an object's fingerprint makes it a third as large as it would be by itself, it is stored by itself
//     and nominated: if it suits the next one, it becomes a sample. So a new template, or an application of the same name
//     elsewhere, costs one miss, and a sample costs no extra copy.
//   - The last few samples stay, so that a rollout can go back and forth.
//   - Sometimes an object that is no smaller than the sample challenges it, and replaces it if it does clearly better with
//     the next few objects: the sample may be a pod that did not run yet, or one of an old revision.
//   - A fingerprint that keeps missing is skipped for a while, twice as long each time.
type Router struct {
	fingerprint func(wire.Format, []byte) (uint64, bool)
	routed      atomic.Uint64
	unrouted    atomic.Uint64

	mu      sync.Mutex
	routes  map[uint64]*route
	made    []weak.Pointer[Dict] // samples, some of them dead
	sweepAt int                  // number of routes and samples at which to sweep
	shared  sharing
}

// NewRouter returns an empty Router.
func NewRouter(o Options) *Router {
	if o.Fingerprint == nil {
		o.Fingerprint = wire.Fingerprint
	}
	return &Router{fingerprint: o.Fingerprint, routes: map[uint64]*route{}, sweepAt: minSweep, shared: sharing{due: firstDue}}
}

// pack packs an object.
func (r *Router) pack(s *scratch, id *ident, raw []byte) *Version {
	sum, ok := r.fingerprint(id.format, raw)
	c := choice{resting: true}
	if ok {
		c = r.lookup(sum, id.uid)
	}
	if d := c.try(s, raw); d != nil {
		r.routed.Add(1)
		v := newVersion(s, id, s.out, d)
		r.suited(s, sum, &c, d, v, raw)
		return v
	}
	r.unrouted.Add(1)
	shared := r.alone(s, sum, raw)
	v := newVersion(s, id, s.out, shared)
	if !c.resting {
		r.update(sum, func(rt *route) {
			rt.nominate(v)
			if c.tried {
				rt.miss()
			}
		})
	}
	return v
}

// lookup returns the choice for an object with this fingerprint and UID.
func (r *Router) lookup(sum uint64, uid string) (c choice) {
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
	rt.read(&c, uid)
	return c
}

// suited updates the route after d suited the object that became v.
func (r *Router) suited(s *scratch, sum uint64, c *choice, d *Dict, v *Version, raw []byte) {
	n := len(s.out)
	switch {
	case d != c.samples[0] || c.missed:
		r.hit(sum, d)
	case c.challenged && c.nominee != nil:
		with, won := s.challenge(c.nominee, raw, n), false
		r.update(sum, func(rt *route) { won = rt.judge(n, with) })
		if won {
			r.hit(sum, r.promote(s, c.nominee))
		}
	case !c.challenged && n > int(c.usual+c.usual/4):
		r.update(sum, func(rt *route) {
			if rt.took(n, len(d.payload)) && len(raw) >= d.size {
				rt.nominate(v)
			}
		})
	}
}

// promote makes a sample of a version that is stored as a delta from another one.
func (r *Router) promote(s *scratch, v *Version) *Dict {
	raw, err := v.Append(nil)
	if err != nil {
		panic(err) // it was made by a Packer
	}
	r.mu.Lock()
	shared := r.shared.dict
	r.mu.Unlock()
	shared = s.plain(shared, raw)
	return &Dict{payload: bytes.Clone(s.out), size: len(raw), parent: shared}
}

// hit records that a sample suited, perhaps for the first time.
func (r *Router) hit(sum uint64, d *Dict) {
	w := weak.Make(d)
	r.update(sum, func(rt *route) {
		if rt.hit(w) {
			r.made = append(r.made, w)
		}
	})
}

// update changes a route, and creates it if needed.
func (r *Router) update(sum uint64, change func(*route)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.routes)+len(r.made) >= r.sweepAt { // existing routes get new samples too
		r.sweep()
	}
	rt := r.routes[sum]
	if rt == nil {
		rt = &route{}
		r.routes[sum] = rt
	}
	change(rt)
}

// sweep removes dead samples and routes without a living one, so that memory is bounded by what lives. The caller holds the
// lock.
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

// Adopt adds a loaded dictionary to the router, so that new objects are stored as deltas from it. It matters most if all
// versions come from a checkpoint: otherwise each kind of object would get a second sample.
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

// RouterStats describes a Router.
type RouterStats struct {
	// Dictionaries counts the living samples and the shared dictionary.
	Dictionaries int
	// Bytes is about the memory of the dictionaries and the router.
	Bytes int64
	// Routed counts the objects stored as deltas from a sample, Unrouted the others, among them the objects that samples
	// were made of.
	Routed, Unrouted uint64
}

// Stats describes the router. It takes time proportional to the dictionaries.
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
