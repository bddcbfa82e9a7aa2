package compact

import (
	"bytes"
	"slices"
)

// sharing is a Router's shared dictionary, and how it comes to the next one: once objects that no
// sample suits have taken so many bytes that it would have paid, it collects a few of them, tries
// the dictionary that they make on the next few, and takes it if they become smaller by a quarter.
// Else, and where a better one is wanted later, it tries again after eight times as many bytes.
type sharing struct {
	dict  *Dict
	spent int // bytes of objects packed without a sample, since the last try
	due   int // so many are spent before the next one

	next [][]byte // the objects collected
	sums []uint64 // their fingerprints

	trial     *Dict
	tried     int
	with, now int // what the objects tried took with it, and with what there is
}

const (
	shareOf     = 4       // objects; more hardly pay: half the gain comes from the first
	shareEach   = 8 << 10 // bytes of each
	shareTrials = 4
	firstDue    = 48 << 10
	nextDue     = 8 // times as many
)

// alone packs an object into the scratch space without a sample, and returns the shared dictionary if
// it needs that.
func (r *Router) alone(s *scratch, sum uint64, raw []byte) *Dict {
	r.mu.Lock()
	d, trial := r.shared.dict, r.shared.trial
	r.mu.Unlock()
	with := 0
	if trial != nil {
		s.difference(trial, raw, len(raw))
		with = len(s.out)
	}
	d = s.plain(d, raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case trial == nil:
		r.shared.collect(sum, raw, len(s.out))
	case trial == r.shared.trial:
		r.shared.judge(with, len(s.out))
	}
	return d
}

// collect takes note of an object that took so many bytes.
func (s *sharing) collect(sum uint64, raw []byte, took int) {
	s.spent += took
	if s.spent < s.due || slices.Contains(s.sums, sum) {
		return
	}
	s.sums = append(s.sums, sum)
	s.next = append(s.next, bytes.Clone(raw[:min(len(raw), shareEach)]))
	if len(s.next) == shareOf {
		s.trial = newShared(slices.Concat(s.next...))
		s.next, s.sums, s.tried, s.with, s.now = nil, nil, 0, 0, 0
	}
}

// collected is what the objects collected cost, in bytes.
func (s *sharing) collected() int {
	n := 0
	for _, b := range s.next {
		n += cap(b)
	}
	return n
}

// judge takes note of what the dictionary on trial makes of an object.
func (s *sharing) judge(with, now int) {
	if with == 0 {
		with = now // it was longer than the object
	}
	s.tried++
	s.with += with
	s.now += now
	if s.tried < shareTrials {
		return
	}
	if 4*s.with <= 3*s.now {
		s.dict = s.trial
	}
	s.trial, s.spent = nil, 0
	s.due = min(s.due*nextDue, 1<<30)
}
