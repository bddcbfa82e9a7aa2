package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// consumer takes from a queue at its own pace, and applies the deltas strictly.
type consumer struct {
	*world
	queue  *Queue
	every  int // takes every so many steps; 0: everything, always; -1: nothing before the end
	ending bool
	refs   []expectation // by stream
	state  []map[Key]*compact.Version
}

// endless is a budget that cannot be exceeded.
const endless = 1 << 30

// expectation is what a consumer of one stream must get.
type expectation interface {
	// start is called when the queue joins or a state is loaded into the store.
	start(s *source, at time.Time)
	// push is called with each commit's deltas, whether it has a gap, and whether it belongs to the first list.
	push(means []meaning, gap, firstList bool, at time.Time)
	// check is called with each batch before the consumer applies it.
	check(b *Batch)
	// left returns the number of objects or changes still to come.
	left() int
	// freeze means that later changes are not queued.
	freeze()
}

// base is embedded in every expectation.
type base struct {
	*world
	ref   *reference
	skip  bool
	state map[Key]*compact.Version // the consumer's
}

func (b *base) freeze() {
	ref := *b.ref
	ref.has = maps.Clone(ref.has)
	b.ref = &ref
}

func newConsumer(w *world) *consumer {
	o := QueueOptions{SkipInitial: w.one(3)}
	kind := w.rand.IntN(5)
	switch kind {
	case 0:
		o.Budget = endless
	case 1:
		o.Budget = int64(w.rand.IntN(20 * perDelta))
	default:
		o.Latest = true
	}
	c := &consumer{world: w, queue: NewQueue(len(w.sources), o), every: []int{-1, 0, 2, 5, 15}[w.rand.IntN(5)]}
	c.queue.max = 1 + w.rand.IntN(5)
	for i, s := range w.sources {
		base := base{world: w, ref: &s.ref, skip: o.SkipInitial, state: map[Key]*compact.Version{}}
		switch kind {
		case 0:
			c.refs = append(c.refs, &every{base: base})
		case 1:
			c.refs = append(c.refs, &budgeted{base: base, next: map[Key]int{}, at: map[string]int{}})
		default:
			c.refs = append(c.refs, &latest{base: base, fold: &c.queue.folds[i], since: map[Key]*due{}})
		}
		c.state = append(c.state, base.state)
	}
	return c
}

// pace performs the consumer's part of this step.
func (c *consumer) pace() {
	c.bound()
	switch {
	case c.every == 0:
		c.drain()
	case c.every > 0 && c.one(c.every):
		c.take()
	}
}

func (c *consumer) left() int {
	n := 0
	for _, r := range c.refs {
		n += r.left()
	}
	return n
}

// bound checks that the queue holds only what is still to come.
func (c *consumer) bound() {
	const largest = 512
	l, n := c.queue.Lag(), c.left()
	if o := c.queue.opts; o.Latest || o.Budget == endless {
		if l.Objects != n {
			c.Fatalf("lag of %d objects, want %d", l.Objects, n)
		}
	} else {
		for i, s := range c.sources { // objects that it knows or starts with, and existing ones
			n += len(c.state[i]) + len(s.ref.has) + s.ref.most
		}
	}
	if limit := c.queue.opts.Budget + int64(n*(perNode+2*largest)); l.Bytes > limit {
		c.Fatalf("lag of %d bytes for %d objects", l.Bytes, n)
	}
	if (l.Objects > 0) == l.Oldest.IsZero() {
		c.Fatalf("lag of %d objects, the oldest at %v", l.Objects, l.Oldest)
	}
}

// drain takes everything, and limits the number of takes.
func (c *consumer) drain() {
	// every stream may have a batch without deltas, and the pages of an initial state that is sorted in pieces of at
	// least a batch
	most := 2*c.left() + 2*len(c.refs)
	if !c.queue.opts.Latest {
		most += 1000 // batches without changes
	}
	for range most {
		if !c.take() {
			return
		}
	}
	if c.take() {
		c.Fatalf("not done after %d takes", most)
	}
}

// take takes a batch, if any.
func (c *consumer) take() bool {
	b, ok, err := c.queue.take()
	if c.ending && errors.Is(err, ErrClosed) {
		if n := c.left(); n > 0 {
			c.Fatalf("closed with %d to come", n)
		}
		return false
	}
	if err != nil {
		c.Fatal(err)
	}
	if !ok {
		if n := c.left(); n > 0 {
			c.Fatalf("nothing to take, with %d to come", n)
		}
		return false
	}
	if (b.Version != "") != (b.Phase == Live) {
		c.Fatalf("phase %d at %q", b.Phase, b.Version)
	}
	if c.queue.opts.Latest && len(b.Deltas) > c.queue.max+1 {
		c.Fatalf("%d deltas in a batch of %d", len(b.Deltas), c.queue.max)
	}
	state := c.state[b.Stream]
	c.refs[b.Stream].check(&b)
	for i := range b.Deltas {
		c.apply(state, &b.Deltas[i])
	}
	if b.Phase == Live {
		c.wasLive(&b, state)
	}
	return true
}

func (c *consumer) apply(state map[Key]*compact.Version, d *Delta) {
	was := state[d.Key]
	if (was == nil) != (d.Op == Added) || (d.New == nil) != (d.Op == Deleted) || !alike(was, d.Old) {
		c.Fatalf("%s: the consumer has %s", describe(d), show(was))
	}
	if d.Op == Updated && (d.Old.UID() != d.New.UID() || alike(d.Old, d.New)) {
		c.Fatalf("%s: no update", describe(d))
	}
	if d.Final != nil && d.Final.UID() != was.UID() {
		c.Fatalf("%s: the final version of another object", describe(d))
	}
	if d.New == nil {
		delete(state, d.Key)
	} else {
		state[d.Key] = d.New
	}
}

// wasLive checks that the server once had this state.
func (c *consumer) wasLive(b *Batch, state map[Key]*compact.Version) {
	for _, s := range c.sources[b.Stream].states[fmt.Sprint(b.Epoch, b.Version)] {
		if maps.EqualFunc(s, state, alike) {
			return
		}
	}
	c.Fatalf("live at %q in epoch %d with %v, which the server never had", b.Version, b.Epoch, slices.Collect(maps.Keys(state)))
}

// idle checks that an emptied queue keeps nothing.
func (c *consumer) idle() {
	q := c.queue
	if c.ending {
		return
	}
	if l := q.Lag(); l != (Lag{}) {
		c.Errorf("lag %+v of an empty queue", l)
	}
	if q.bytes != 0 || q.deltas != 0 || len(q.batches) != 0 {
		c.Errorf("an empty queue counts %d bytes, %d deltas, %d batches", q.bytes, q.deltas, len(q.batches))
	}
	for i := range q.folds {
		f := &q.folds[i]
		if f.initial != nil || f.nodes.used != 0 || f.first != nil || f.last != nil || f.owed != 0 || f.bytes != 0 || f.gap != nil {
			c.Errorf("an empty fold keeps %+v", f)
		}
		if !maps.EqualFunc(c.state[i], c.sources[i].ref.versions(), alike) {
			c.Errorf("the consumer has %v, the store %v", c.state[i], c.sources[i].ref.versions())
		}
	}
}

// alike reports whether two versions are the same.
func alike(a, b *compact.Version) bool {
	return a.UID() == b.UID() && a.RV() == b.RV() && sameContent(a, b)
}

func describe(d *Delta) string {
	op := map[Op]string{Added: "add", Updated: "update", Deleted: "delete"}[d.Op]
	return fmt.Sprintf("%s %v: %s > %s (final %s, initial %t, relisted %t, %d, %d)",
		op, d.Key, show(d.Old), show(d.New), show(d.Final), d.Initial, d.Relisted, d.At.Unix(), d.After.Unix())
}
