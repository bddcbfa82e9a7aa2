package store

import (
	"time"
)

// A queue in mode Latest holds one node per object that differs from what its consumer knows, at the place of the
// object's first change. So an object that changes constantly delays no others, and an object that came and went
// costs nothing. A late consumer's initial state is delivered from a snapshot.

// ReasonSlow is the reason of a gap before folded deltas.
const ReasonSlow = "slow consumer"

// fold is the difference between the state that a consumer knows of one store and the current one: the rest of the
// initial state, then one node per object that differs, in the order of the first change that the consumer has not
// seen.
type fold struct {
	initial     *initial // nil: delivered
	nodes       set[*node]
	first, last *node
	owed        int   // nodes of objects that are still in initial
	bytes       int64 // memory that the nodes hold

	pending bool // there is something to deliver
	silent  bool // folding makes no gap
	lossy   bool // a gap was recorded since the fold was last empty
	gap     *Gap
	head    head
	at      time.Time // of the last change
	known   string    // the consumer's version
	current time.Time // the Current of the last batch that it took

	complete bool  // the stream has been Live since the consumer joined
	start    *node // the last node queued at that time
	synced   bool  // the consumer has its whole initial state
}

// maxIdle is the number of node slots that an empty fold keeps.
const maxIdle = 128

// add folds a batch in.
func (f *fold) add(b *Batch, at time.Time) {
	f.pending = true
	f.head = head{epoch: b.Epoch, phase: b.Phase, version: b.Version, served: b.Served, current: b.Current}
	f.at = at
	f.gap = f.gap.Merge(b.Gap)
	for i := range b.Deltas {
		d := &b.Deltas[i]
		if n := f.find(d.Key, d.sum); n != nil {
			f.change(n, d)
		} else {
			f.insert(d)
		}
	}
	if b.Phase == Live && !f.complete {
		f.complete, f.start = true, f.last
	}
}

func (f *fold) find(k Key, sum uint32) *node {
	return f.nodes.find(sum, func(n *node) bool { return n.key == k })
}

// insert queues an object that did not differ before.
func (f *fold) insert(d *Delta) {
	n, _ := nodes.Get().(*node)
	if n == nil {
		n = new(node)
	}
	at := nanos(d.At)
	*n = node{key: d.Key, sum: d.sum, new: d.New, relisted: d.Relisted,
		firstAt: at, at: at, after: nanos(d.After)}
	if d.Old != nil && f.initial.hasPending(d.Key) {
		n.owed, n.initial, n.final = true, true, d.Old
		f.owed++
	} else {
		n.old, n.final, n.initial = d.Old, d.Final, d.Initial
	}
	f.nodes.add(n)
	f.bytes += n.held()
	n.prev = f.last
	if f.last == nil {
		f.first = n
	} else {
		f.last.next = n
	}
	f.last = n
}

// change updates the node of an object that already differs.
func (f *fold) change(n *node, d *Delta) {
	if !f.silent && !f.lossy && n.skips(d) {
		f.lossy = true
		f.gap = f.gap.Merge(&Gap{From: f.known, Since: instant(n.firstAt), Reason: ReasonSlow})
	}
	n.new, n.at = d.New, nanos(d.At)
	n.bound(d)
	if d.Op == Added {
		n.initial = d.Initial
	}
	if n.old != nil && n.old.UID() == d.UID() {
		f.bytes -= n.held()
		n.final = d.Final
		f.bytes += n.held()
	}
	if n.isNoChange() {
		f.remove(n)
		n.recycle()
	}
}

// remove removes a node.
func (f *fold) remove(n *node) {
	f.nodes.remove(n)
	f.bytes -= n.held()
	if n.owed {
		f.owed--
	}
	if f.start == n {
		f.start = n.prev
	}
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

// take removes up to limit objects. Only the batch that empties the fold leaves the consumer with a state that the
// server had, so only that batch has the stream's phase and version.
func (f *fold) take(stream, limit int, p *page) Batch {
	b := Batch{Stream: stream, Epoch: f.head.epoch, Phase: Listing, Served: f.head.served, Current: f.current, Gap: f.takeGap()}
	if b.Current.IsZero() { // the initial state, each object in its current version
		b.Current = f.head.current
	}
	b.Deltas = p.deltas(min(f.differ(), limit))
	if f.initial != nil {
		f.takeInitial(&b, limit)
	}
	for f.initial == nil && f.first != nil && len(b.Deltas) < limit {
		b.Deltas = f.takeNode(f.first, b.Deltas)
	}
	if f.initial == nil && f.first == nil {
		b.Phase, b.Version, b.Current = f.head.phase, f.head.version, f.head.current
		f.pending, f.lossy = false, false
		if len(f.nodes.slots) > maxIdle {
			f.nodes = set[*node]{}
		}
	}
	f.synced = f.synced || f.complete && f.initial == nil && f.start == nil
	return b
}

func (f *fold) takeGap() *Gap {
	g := f.gap
	if g == nil {
		return nil
	}
	f.gap = nil
	gap := *g
	if gap.To == "" {
		gap.To = f.head.version
	}
	if gap.Until.IsZero() {
		gap.Until = f.at
	}
	return &gap
}

// takeInitial delivers a part of the initial state, each object in its current version.
func (f *fold) takeInitial(b *Batch, limit int) {
	for range limit {
		k, v, ok := f.initial.next()
		if !ok {
			break
		}
		if n := f.find(k, hashKey(hashString(k.Namespace), hashString(k.Name))); n != nil {
			b.Deltas = f.takeNode(n, b.Deltas)
		} else {
			b.Deltas = append(b.Deltas, Delta{Op: Added, Key: k, New: v, Initial: true, At: f.initial.at})
		}
	}
	if f.initial.left == 0 {
		f.initial = nil
	}
}

// takeNode removes a node and appends its deltas.
func (f *fold) takeNode(n *node, to []Delta) []Delta {
	f.remove(n)
	to = n.deltas(to)
	n.recycle()
	return to
}

// delivered records a batch that the consumer took.
func (f *fold) delivered(b *Batch) {
	if b.Version != "" {
		f.known = b.Version
	}
	f.current = b.Current
	f.synced = f.synced || b.Phase == Live
	b.Synced = f.synced
}

// differ returns the number of objects that differ from what the consumer knows.
func (f *fold) differ() int {
	n := f.nodes.used
	if f.initial != nil {
		n += f.initial.left - f.owed
	}
	return n
}

// lag adds the fold's lag to l.
func (f *fold) lag(l *Lag) {
	l.Objects += f.differ()
	l.Bytes += f.bytes
	var oldest time.Time
	switch {
	case f.initial != nil:
		l.Bytes += f.initial.held()
		oldest = f.initial.at
	case f.first != nil:
		oldest = instant(f.first.firstAt)
	default:
		return
	}
	if l.Oldest.IsZero() || oldest.Before(l.Oldest) {
		l.Oldest = oldest
	}
}
