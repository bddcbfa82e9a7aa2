package compact

import (
	"slices"
	"weak"
)

// route is what is known of one fingerprint. Nothing here keeps an object or a sample alive.
type route struct {
	samples [perRoute]weak.Pointer[Dict] // the one that suited last comes first
	nominee weak.Pointer[Version]        // which may become a sample

	misses uint8  // in a row, up to where they are many
	rest   uint16 // so many objects more are not compared
	rested uint16 // so many were not the last time

	usual  int32 // the length of a difference from the first sample; until it is known, the sum
	known  uint8 // so many lengths made it, up to enough
	debt   int32 // what objects took beyond the usual
	losses uint8 // challenges that the first sample has stood
	now    int32 // what the objects of a challenge took, with the first sample
	with   int32 // and with the nominee
	tried  uint8 // so many they are
}

const (
	perRoute    = 3
	manyMisses  = 8
	longestRest = 4096
	enough      = 4 // objects, to judge a sample
	maxLosses   = 10
)

// choice is what an object may be stored as the difference from, the likeliest first.
type choice struct {
	samples    [perRoute]*Dict
	nominee    *Version // another object's
	challenged bool     // the first sample is, by the nominee
	usual      int32    // the length that a difference may have; zero where it is to be told
	missed     bool     // no sample suited the last object
	resting    bool     // nothing is to be tried, nor to be learnt
	tried      bool     // there was something to try
}

// try packs an object as the difference from a sample that suits, which it returns if there is one.
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

// fit is the length up to which the difference of an object of size bytes is one that pays. What is
// random in every object, as its UID, is allowed for. More than a third means another template: then
// to begin a new sample costs less than to go on, even for the pods of a small application.
func (d *Dict) fit(size int) int { return len(d.payload)*size/d.size/3 + 64 }

// alone tells whether a version is stored without a sample.
func (v *Version) alone() bool { return v.dict == nil || v.dict.index != nil }

// read fills in what is known, for an object with this UID.
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
		if uid == "" || uid != v.UID() { // an object suits its own past too well to tell
			c.nominee = v
		}
	}
}

// hit notes that a sample suited, and tells whether it is new.
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

// miss notes that no sample suited an object.
func (rt *route) miss() {
	if rt.misses++; rt.misses == manyMisses {
		rt.misses -= 2 // so that two are compared before the next rest
		rt.rested = min(max(2*rt.rested, manyMisses), longestRest)
		rt.rest = rt.rested
	}
}

// nominate makes v what may become a sample.
func (rt *route) nominate(v *Version) {
	rt.nominee = weak.Make(v)
	rt.now, rt.with, rt.tried = 0, 0, 0
}

// took takes note of the length of a difference from the first sample, and tells whether that is to
// be challenged: once what it took beyond the usual would have paid for a new one.
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

// judge takes note of how long a difference is from the first sample, and from the nominee, and tells
// whether the nominee has won: by a fifth, as it costs a sample's bytes.
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

// living tells whether a version needs a sample of the route.
func (rt *route) living() bool {
	return slices.ContainsFunc(rt.samples[:], func(w weak.Pointer[Dict]) bool { return w.Value() != nil })
}
