package compact

import (
	"bytes"
	"slices"
)

// sharing is a Router's shared dictionary, and the search for the next one. Once objects without a sample have taken enough
// bytes, it collects a few of them, tries the dictionary that they make on the next few, and keeps it if it saves a quarter.
// It tries again after eight times as many bytes.
type sharing struct {
	dict  *Dict
	spent int // bytes of objects packed without a sample since the last try
	due   int // bytes before the next try

	next [][]byte // collected objects
	sums []uint64 // their fingerprints

	trial     *Dict
	tried     int
	with, now int // bytes of the tried objects with the trial dictionary, and with the current one
}

const (
	shareOf     = 4       // objects; more hardly pay: half the gain comes from the first
	shareEach   = 8 << 10 // bytes of each
	shareTrials = 4
	firstDue    = 48 << 10
	nextDue     = 8 // times as many
)

// alone packs an object into the scratch memory without a sample, and returns the shared dictionary if the result needs it.
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

// collect records an object that took so many bytes.
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

// collected returns the size in bytes of the collected objects.
func (s *sharing) collected() int {
	n := 0
	for _, b := range s.next {
		n += cap(b)
	}
	return n
}

// judge records an object's sizes with and without the trial dictionary.
func (s *sharing) judge(with, now int) {
	if with == 0 {
		with = now // the delta was longer than the object
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
