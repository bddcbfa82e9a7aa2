package store

import "time"

// ReasonSlow is why a gap stands before folded deltas.
const ReasonSlow = "slow consumer"

// fold is the difference between what a consumer knows of one store and what is now: one node per
// object that differs, in the order of the first change that the consumer has not seen.
type fold struct {
	nodes       map[Key]*node
	first, last *node

	pending bool // there is something to tell
	lossy   bool // since the fold was last empty, a gap was told for versions folded away
	gap     *Gap
	head    head
	at      time.Time // of the last change
	known   string    // the version that the consumer has reached
}

// node is one object that differs. Old is what the consumer knows, new what is now; either may be
// absent, never both.
type node struct {
	prev, next         *node
	key                Key
	oldUID, newUID     string
	old, new, final    Version
	initial, relisted  bool
	firstAt, at, after time.Time
}

// add folds a batch in.
func (f *fold) add(b *Batch, at time.Time) {
	f.pending = true
	f.head = head{epoch: b.Epoch, phase: b.Phase, version: b.Version}
	f.at = at
	f.gap = f.gap.Merge(b.Gap)
	for i := range b.Deltas {
		f.fold(&b.Deltas[i])
	}
}

// fold folds one delta in.
func (f *fold) fold(d *Delta) {
	n := f.nodes[d.Key]
	if n == nil {
		f.insert(&node{key: d.Key, oldUID: d.UID, newUID: d.UID, old: d.Old, new: d.New, final: d.Final,
			initial: d.Initial, relisted: d.Relisted, firstAt: d.At, at: d.At, after: d.After})
		return
	}
	// A delete and an add under another UID are both told, and a consumer that has yet to get its
	// starting state misses nothing where that moves on.
	hidden := (d.Op != Added || n.oldUID == d.UID) && !(n.initial && n.old.absent())
	if hidden && !f.lossy {
		f.lossy = true
		f.gap = f.gap.Merge(&Gap{From: f.known, Since: n.firstAt, Reason: ReasonSlow})
	}
	n.new, n.final, n.at = d.New, d.Final, d.At
	n.relisted = n.relisted || d.Relisted
	if n.after.IsZero() {
		n.after = d.After
	}
	if d.Op == Added {
		n.newUID, n.initial = d.UID, d.Initial
	}
	if n.void() {
		f.remove(n)
	}
}

// void tells that nothing is left to say.
func (n *node) void() bool {
	if n.old.absent() {
		return n.new.absent()
	}
	return n.oldUID == n.newUID && n.old.RV == n.new.RV && n.old.Object.Identical(n.new.Object)
}

func (f *fold) insert(n *node) {
	if f.nodes == nil {
		f.nodes = map[Key]*node{}
	}
	f.nodes[n.key] = n
	n.prev = f.last
	if f.last == nil {
		f.first = n
	} else {
		f.last.next = n
	}
	f.last = n
}

func (f *fold) remove(n *node) {
	delete(f.nodes, n.key)
	if n.prev == nil {
		f.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		f.last = n.prev
	} else {
		n.next.prev = n.prev
	}
}

// take removes up to maxBatch nodes. Only the batch that empties the fold leaves the consumer with
// a state that the server had, so only that one may be Live.
func (f *fold) take(stream int) Batch {
	b := Batch{Stream: stream, Epoch: f.head.epoch, Phase: Listing}
	if g := f.gap; g != nil {
		told := *g
		if told.To == "" {
			told.To = f.head.version
		}
		if told.Until.IsZero() {
			told.Until = f.at
		}
		b.Gap, f.gap = &told, nil
	}
	for f.first != nil && len(b.Deltas) < maxBatch {
		n := f.first
		f.remove(n)
		b.Deltas = n.deltas(b.Deltas)
	}
	if f.first == nil {
		b.Phase, b.Version = f.head.phase, f.head.version
		f.pending, f.lossy, f.nodes = false, false, nil
	}
	return b
}

// saw notes what the consumer took.
func (f *fold) saw(b *Batch) {
	if b.Phase == Live {
		f.known = b.Version
	}
}

// deltas appends what the node tells.
func (n *node) deltas(to []Delta) []Delta {
	d := Delta{Key: n.key, UID: n.newUID, Relisted: n.relisted, At: n.at, After: n.after}
	switch {
	case n.old.absent():
		d.Op, d.New, d.Initial = Added, n.new, n.initial
	case n.new.absent():
		d.Op, d.UID, d.Old, d.Final = Deleted, n.oldUID, n.old, n.final
	case n.oldUID == n.newUID:
		d.Op, d.Old, d.New = Updated, n.old, n.new
	default:
		gone := d
		gone.Op, gone.UID, gone.Old = Deleted, n.oldUID, n.old
		d.Op, d.New = Added, n.new
		return append(to, gone, d)
	}
	return append(to, d)
}
