package journal

import (
	"bytes"
	"math"
	"slices"

	"github.com/tattler-dev/tattler/internal/delta"
)

// A pump reads forwards, with its own connection; so does tattler log. It unwinds a chain once and keeps the following versions as forward
// differences (Reader.ReadForwards), within a bound that all pumps share, until it reaches the journal's end.

// A chain is read from its newest change, but a lagging sink reads an object's changes from the oldest, which would read
// the chain once per change. So one read of the chain is reversed: the versions after the requested one are kept, each as
// a delta from the one before.

const (
	// mostSteps bounds the kept changes per object: the length of a chain.
	mostSteps = wholeEvery
	// leastSteps is the bound where many objects share the budget.
	leastSteps = 2
	// reverseBytes bounds the texts in memory while a chain is reversed.
	reverseBytes = 2 << 20
	// stepBytes is the memory that a step takes besides its texts.
	stepBytes = 112
)

// forwards keeps, by object, the changes that follow the last one read. Contents never change, except by a purge: the kept
// ones are those from before it. Pumps do not read during a purge, and tattler log reads each change once.
type forwards struct {
	limit, size int  // in bytes
	on          bool // the last query is oldest first
	steps       int  // bound of the kept changes per object; lower after others were evicted
	of          map[int64]*forward
	index       delta.Index
	scratch     []byte
}

// forward keeps changes of an object, oldest first.
type forward struct {
	text  []byte // base of the first delta
	steps []step
	size  int
}

// step is a change, as deltas.
type step struct {
	seq           int64
	before, after piece // after is a delta from before, if there is one
	purged        bool
}

// piece is a text as a delta from another.
type piece struct {
	diff []byte // nil: equal to the base
	is   bool   // false: no text
}

// piece makes a piece, and returns the base of the next one.
func (f *forwards) piece(text, base []byte) (piece, []byte) {
	switch {
	case text == nil:
		return piece{}, base
	case bytes.Equal(text, base):
		return piece{is: true}, base
	}
	f.index.Build(base)
	f.scratch = delta.Append(f.scratch[:0], text, base, &f.index, math.MaxInt)
	return piece{is: true, diff: bytes.Clone(f.scratch)}, text
}

// text returns a piece's text, and the base of the next piece.
func (p *piece) text(base []byte) (text, next []byte, err error) {
	switch {
	case !p.is:
		return nil, base, nil
	case p.diff == nil:
		return base, base, nil
	}
	text, err = delta.Apply(nil, p.diff, base, delta.MaxSize)
	return text, text, err
}

// version holds the contents before and after a change.
type version struct {
	seq           int64
	before, after []byte
	purged        bool
}

// keep keeps the changes that follow vs[0], which was read.
func (f *forwards) keep(object int64, vs []version) {
	f.drop(object)
	if len(vs) < 2 {
		return
	}
	last := vs[0].after
	if last == nil {
		last = vs[0].before
	}
	w := &forward{text: bytes.Clone(last), steps: make([]step, 0, len(vs)-1)}
	w.size = cap(w.text) + cap(w.steps)*stepBytes
	for _, v := range vs[1:] {
		s := step{seq: v.seq, purged: v.purged}
		s.before, last = f.piece(v.before, last)
		s.after, last = f.piece(v.after, last)
		w.size += len(s.before.diff) + len(s.after.diff)
		w.steps = append(w.steps, s)
		if w.size > f.limit {
			f.steps = max(leastSteps, f.steps/2)
			return
		}
	}
	f.of[object] = w
	f.size += w.size
	f.shrink()
}

// shrink evicts objects until the rest fits the limit.
func (f *forwards) shrink() {
	for object := range f.of { // in any order: the one read longest ago may be needed next
		if f.size <= f.limit {
			return
		}
		f.drop(object)
		f.steps = max(leastSteps, f.steps/2)
	}
}

// next returns a change if it is kept. It drops the changes before it.
func (f *forwards) next(object, seq int64) (v version, ok bool) {
	w := f.of[object]
	if w == nil || w.steps[0].seq > seq {
		return v, false
	}
	text, err := w.text, error(nil)
	for err == nil && len(w.steps) > 0 && v.seq < seq {
		s := &w.steps[0]
		v = version{seq: s.seq, purged: s.purged}
		if v.before, text, err = s.before.text(text); err == nil {
			v.after, text, err = s.after.text(text)
		}
		f.grow(w, -len(s.before.diff)-len(s.after.diff))
		*s, w.steps = step{}, w.steps[1:]
	}
	if err != nil || len(w.steps) == 0 {
		f.drop(object)
		f.steps = min(mostSteps, f.steps+1)
	} else {
		f.grow(w, cap(text)-cap(w.text))
		w.text = text
		f.shrink()
	}
	return v, err == nil && v.seq == seq
}

// grow adjusts the sizes.
func (f *forwards) grow(w *forward, by int) {
	w.size += by
	f.size += by
}

func (f *forwards) drop(object int64) {
	if w := f.of[object]; w != nil {
		f.size -= w.size
		delete(f.of, object)
	}
}

// clear drops everything.
func (f *forwards) clear() {
	if len(f.of) > 0 {
		f.of, f.scratch, f.index = map[int64]*forward{}, nil, delta.Index{}
	}
	f.size = 0
}

// ReadForwards makes Contents keep the changes that follow the one it returns, as far as it read them, in at most limit
// bytes of memory, if the last query of Rows was oldest first. Rows clears them when it has read everything. A change that
// retention or a purge has removed since may be returned.
func (r *Reader) ReadForwards(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = forwards{limit: limit, on: true, steps: mostSteps, of: map[int64]*forward{}}
}

// kept returns a change's contents if they are kept in memory.
func (r *Reader) kept(object, seq int64) (version, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ahead.next(object, seq)
}

// contents returns the contents of a change, and keeps the changes that follow.
func (r *Reader) contents(object, seq int64) (version, error) {
	f := &r.ahead
	var vs []version // the newest first
	err := r.db.walk(r.codec, object, seq, func(before int, v version) {
		if before > min(f.steps, reverseBytes/max(1, len(v.before)+len(v.after))) {
			vs = nil // too far from the requested one
		} else {
			vs = append(vs, v)
		}
	})
	if err != nil {
		return version{}, err
	}
	first := vs[len(vs)-1]
	if f.limit > 0 && f.on {
		slices.Reverse(vs)
		f.keep(object, vs)
	}
	return first, nil
}
