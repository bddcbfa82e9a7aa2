package journal

import (
	"bytes"
	"slices"

	"github.com/tattler-dev/tattler/internal/delta"
)

// A pump reads forwards, with its own connection. It unwinds a chain once and keeps the following versions as forward
// differences (Reader.ReadForwards), within a bound that all pumps share, until it reaches the journal's end.

// A chain is unwound from its newest change, but a sink that lags reads it from the oldest: each change would be
// unwound again. So a walk is turned round: the versions that follow the one that was asked for are kept, each as its
// difference from the one before.

const (
	// mostSteps is how many changes of an object are kept at most: as many as a walk is long.
	mostSteps = wholeEvery
	// leastSteps is how many are kept where there are too many objects for more.
	leastSteps = 2
	// turnBytes bounds the texts that are in memory while a walk is turned round.
	turnBytes = 2 << 20
	// stepBytes is what a step takes beside its texts.
	stepBytes = 112
)

// forwards are the changes that follow those which were read last, by object. What a change's contents were never
// changes, unless a purge removes them, for which nobody may be reading: what is kept stays true.
type forwards struct {
	limit, size int // in bytes
	steps       int // how many are kept of an object: fewer where others had to go
	of          map[int64]*forward
	delta       delta.Encoder
	scratch     []byte
}

// forward are changes of an object, the oldest first.
type forward struct {
	text  []byte // what the first difference is from
	steps []step
	size  int
}

// step is a change as the difference from what was before it.
type step struct {
	seq           int64
	before, after piece // after is the difference from before, where there is one
	purged        bool
}

// piece is a text as its difference from another.
type piece struct {
	diff []byte // nil where it is the same
	is   bool   // there is a text
}

// piece makes one, and returns the text that the next is the difference from.
func (f *forwards) piece(text, base []byte) (piece, []byte) {
	switch {
	case text == nil:
		return piece{}, base
	case bytes.Equal(text, base):
		return piece{is: true}, base
	}
	f.scratch = f.delta.Append(f.scratch[:0], text, base)
	return piece{is: true, diff: bytes.Clone(f.scratch)}, text
}

// text returns a piece's text, and the one that the next is the difference from.
func (p *piece) text(base []byte) (text, next []byte, err error) {
	switch {
	case !p.is:
		return nil, base, nil
	case p.diff == nil:
		return base, base, nil
	}
	text, err = delta.Apply(nil, p.diff, base)
	return text, text, err
}

// version is what was before and after a change.
type version struct {
	seq           int64
	before, after []byte
	purged        bool
}

// keep keeps the changes that follow the first of some, which was read.
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

// shrink lets go of objects until the others fit.
func (f *forwards) shrink() {
	for object := range f.of { // in no order: that which was read longest ago may be the next
		if f.size <= f.limit {
			return
		}
		f.drop(object)
		f.steps = max(leastSteps, f.steps/2)
	}
}

// next returns a change, if it follows what was read of its object; false where it is to be looked up.
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

// grow notes that an object's changes take more bytes, or fewer.
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

// clear lets go of everything.
func (f *forwards) clear() {
	if len(f.of) > 0 {
		f.of, f.scratch, f.delta = map[int64]*forward{}, nil, delta.Encoder{}
	}
	f.size = 0
}

// ReadForwards has Contents keep the changes that follow those it returns, as far as it came past them, for who reads
// the oldest first; in so many bytes of memory at most. Rows lets go of them when it reaches the end. A change that
// retention has removed meanwhile may be returned.
func (r *Reader) ReadForwards(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = forwards{limit: limit, steps: mostSteps, of: map[int64]*forward{}}
}

// kept is contents of what was kept, for which the file need not be asked.
func (r *Reader) kept(object, seq int64) (version, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ahead.next(object, seq)
}

// contents returns what was before and after a change, and keeps what follows.
func (r *Reader) contents(object, seq int64) (version, error) {
	f := &r.ahead
	var vs []version // the newest first
	err := r.db.walk(r.codec, object, seq, func(before int, v version) {
		if before > min(f.steps, turnBytes/max(1, len(v.before)+len(v.after))) {
			vs = nil // too many come before it
		} else {
			vs = append(vs, v)
		}
	})
	if err != nil {
		return version{}, err
	}
	first := vs[len(vs)-1]
	if f.limit > 0 {
		slices.Reverse(vs)
		f.keep(object, vs)
	}
	return first, nil
}
