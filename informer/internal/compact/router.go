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
	// minSource is the smallest object that is stored as a difference, in bytes.
	minSource = 64
	// minSweep is how many routes and samples a Router remembers before it looks which are alive.
	minSweep = 4096
)

// Options are the options of a Router. The zero value is usable.
type Options struct {
	// Fingerprint tells objects that may look alike from others, within one resource; false where it
	// cannot. The default is wire.Fingerprint.
	Fingerprint func(f wire.Format, raw []byte) (sum uint64, ok bool)
}

// Router chooses what objects are stored as the difference from. One serves the streams of a source:
// it is safe for concurrent use.
//
//   - An object that no sample of its fingerprint makes a third as large as it would be for itself
//     is stored for itself, and nominated: if it suits the next one, it is made a sample. So a new
//     template, or an application of the same name elsewhere, costs one miss, and a sample costs
//     nothing that was not there.
//   - The last few samples stay, so that a rollout can go back and forth.
//   - Now and then an object that is no smaller than the sample challenges it, and takes its place if
//     it does clearly better by the next few: a sample may be a pod that did not run yet, or one of
//     some revisions ago.
//   - A fingerprint that goes on to miss is left alone for a while, twice as long each time.
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

// NewRouter returns a Router that knows nothing yet.
func NewRouter(o Options) *Router {
	if o.Fingerprint == nil {
		o.Fingerprint = wire.Fingerprint
	}
	return &Router{fingerprint: o.Fingerprint, routes: map[uint64]*route{}, sweepAt: minSweep, shared: sharing{due: firstDue}}
}

// pack makes a version of an object.
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

// lookup returns what is known of a fingerprint, for an object with this UID.
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

// suited does what is to be done once d suited the object of which v was made.
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

// promote makes a sample of a version that is stored as the difference from another one.
func (r *Router) promote(s *scratch, v *Version) *Dict {
	raw, err := v.Append(nil)
	if err != nil {
		panic(err) // made by a Packer
	}
	r.mu.Lock()
	shared := r.shared.dict
	r.mu.Unlock()
	shared = s.plain(shared, raw)
	return &Dict{payload: bytes.Clone(s.out), size: len(raw), parent: shared}
}

// hit notes that a sample suited, which may be new.
func (r *Router) hit(sum uint64, d *Dict) {
	w := weak.Make(d)
	r.update(sum, func(rt *route) {
		if rt.hit(w) {
			r.made = append(r.made, w)
		}
	})
}

// update changes a route, which may be new.
func (r *Router) update(sum uint64, change func(*route)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.routes)+len(r.made) >= r.sweepAt { // old routes, too, get new samples
		r.sweep()
	}
	rt := r.routes[sum]
	if rt == nil {
		rt = &route{}
		r.routes[sum] = rt
	}
	change(rt)
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
