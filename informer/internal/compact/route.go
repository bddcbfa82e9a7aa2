package compact

import (
	"slices"
	"weak"
)

// route is the state of one fingerprint. It keeps no object or sample alive.
type route struct {
	samples [perRoute]weak.Pointer[Dict] // the one that suited last is first
	nominee weak.Pointer[Version]        // a candidate for a new sample

	misses uint8  // consecutive, up to manyMisses
	rest   uint16 // objects still to skip
	rested uint16 // objects skipped in the last rest

	usual  int32 // usual length of a delta from the first sample; a sum until it is known
	known  uint8 // lengths in usual, up to enough
	debt   int32 // bytes beyond the usual length
	losses uint8 // challenges that the first sample won
	now    int32 // bytes of a challenge's objects with the first sample
	with   int32 // and with the nominee
	tried  uint8 // objects of the challenge
}

const (
	perRoute    = 3
	manyMisses  = 8
	longestRest = 4096
	enough      = 4 // objects needed to judge a sample
	maxLosses   = 10
)

// choice is what an object may be packed with, likeliest first.
type choice struct {
	samples    [perRoute]*Dict
	nominee    *Version // never of the same object
	challenged bool     // the nominee challenges the first sample
	usual      int32    // accepted length of a delta; 0: report it
	missed     bool     // no sample suited the last object
	resting    bool     // try nothing and learn nothing
	tried      bool     // something was tried
}

// try packs an object with a sample that suits, which it returns, if there is one.
func (c *choice) try(s *scratch, raw []byte) *Dict {
	for _, d := range c.samples {
		if d != nil && c.suits(s, raw, d) {
			return d
		}
	}
	if c.nominee != nil && c.nominee.alone() {
		if d := newSample(c.nominee); c.suits(s, raw, d) {
			return d
		}
	}
	return nil
}

func (c *choice) suits(s *scratch, raw []byte, d *Dict) bool {
	c.tried = true
	return s.difference(d, raw, d.fit(len(raw)))
}

// fit returns the length up to which a delta of an object of size bytes pays. It allows for random parts such as the UID.
// More than a third means another template: a new sample is then cheaper, even for the pods of a small application.
func (d *Dict) fit(size int) int { return len(d.payload)*size/d.size/3 + 64 }

// alone reports whether a version is stored without a sample.
func (v *Version) alone() bool { return v.dict == nil || v.dict.index != nil }

// read fills in a choice for an object with this UID.
func (rt *route) read(c *choice, uid string) {
	for i, w := range rt.samples {
		c.samples[i] = w.Value()
	}
	c.missed = rt.misses > 0
	if rt.known == enough {
		c.usual = rt.usual
	}
	if v := rt.nominee.Value(); v != nil {
		c.challenged = !v.alone()
		if uid == "" || uid != v.UID() { // an object suits its own past too well to judge by
			c.nominee = v
		}
	}
}

// hit records that a sample suited, and reports whether it is new to the route.
func (rt *route) hit(w weak.Pointer[Dict]) bool {
	rt.misses, rt.rested = 0, 0
	i := slices.Index(rt.samples[:], w)
	added := i < 0
	if added {
		i = perRoute - 1
		rt.nominee = weak.Pointer[Version]{}
		rt.losses = 0
	}
	if i > 0 {
		rt.usual, rt.known, rt.debt = 0, 0, 0
	}
	copy(rt.samples[1:i+1], rt.samples[:i])
	rt.samples[0] = w
	return added
}

// miss records that no sample suited an object.
func (rt *route) miss() {
	if rt.misses++; rt.misses == manyMisses {
		rt.misses -= 2 // so that two are compared before the next rest
		rt.rested = min(max(2*rt.rested, manyMisses), longestRest)
		rt.rest = rt.rested
	}
}

// nominate makes v the candidate for a new sample.
func (rt *route) nominate(v *Version) {
	rt.nominee = weak.Make(v)
	rt.now, rt.with, rt.tried = 0, 0, 0
}

// took records the length of a delta from the first sample, and reports whether to challenge the sample: once the bytes
// beyond the usual length would have paid for a new one.
func (rt *route) took(n, sample int) bool {
	if rt.known < enough {
		rt.usual += int32(n)
		if rt.known++; rt.known == enough {
			rt.usual /= enough
		}
		return false
	}
	rt.debt = min(rt.debt+max(0, int32(n)-rt.usual), 1<<30)
	return int(rt.debt>>rt.losses) >= sample
}

// judge records the lengths of deltas from the first sample and from the nominee, and reports whether the nominee has won: by
// a fifth, because a sample costs its bytes.
func (rt *route) judge(now, with int) bool {
	rt.now += int32(now)
	rt.with += int32(with)
	if rt.tried++; rt.tried < enough {
		return false
	}
	won := 5*rt.with <= 4*rt.now
	rt.nominee = weak.Pointer[Version]{}
	rt.usual = rt.now / enough
	rt.losses = min(rt.losses+1, maxLosses)
	return won
}

// living reports whether a version needs a sample of the route.
func (rt *route) living() bool {
	return slices.ContainsFunc(rt.samples[:], func(w weak.Pointer[Dict]) bool { return w.Value() != nil })
}
