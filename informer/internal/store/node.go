package store

import (
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// node is one object that differs from what the consumer knows. Old is what the consumer knows, new the current
// version, final the server's final version of old or, if owed, the version in initial.
type node struct {
	prev, next         *node
	key                Key
	old, new, final    *compact.Version
	firstAt, at, after int64  // nanoseconds since 1970; 0: unset
	sum                uint32 // the hash of key
	initial, relisted  bool
	owed               bool // the object is still in initial; otherwise old or new is set
}

// nodes are the unused nodes. A queue that keeps up needs one per change, for a moment.
var nodes sync.Pool

// recycle releases a node and its versions.
func (n *node) recycle() {
	*n = node{}
	nodes.Put(n)
}

func (n *node) hash() uint32 { return n.sum }

// perNode is the approximate memory of a node and its slot, in bytes.
const perNode = 128

// held returns the memory that the node holds.
func (n *node) held() int64 { return int64(perNode + n.old.Size() + n.final.Size()) }

// skips reports whether folding in d makes the consumer miss a version. It does not if d adds another UID, since the
// deletion and the addition are both delivered, or if it changes the initial state before the consumer got it.
func (n *node) skips(d *Delta) bool {
	if n.old == nil {
		return !n.initial
	}
	return d.Op != Added || n.old.UID() == d.UID()
}

// bound extends the interval in which the node's changes happened to those of d.
func (n *node) bound(d *Delta) {
	after := nanos(d.After)
	switch {
	case n.relisted && n.after == 0, d.Relisted && after == 0:
		n.after = 0 // not known
	case n.after == 0:
		n.after = after
	}
	n.relisted = n.relisted || d.Relisted
}

// isNoChange reports whether old and new are the same, so that there is nothing to deliver.
func (n *node) isNoChange() bool {
	switch {
	case n.owed:
		return false
	case n.old == nil || n.new == nil:
		return n.old == n.new
	}
	return n.old.UID() == n.new.UID() && n.old.RV() == n.new.RV() && sameContent(n.old, n.new)
}

// deltas appends the node's deltas.
func (n *node) deltas(to []Delta) []Delta {
	d := Delta{Key: n.key, Relisted: n.relisted, At: instant(n.at), After: instant(n.after)}
	if n.old != nil && (n.new == nil || n.old.UID() != n.new.UID()) {
		gone := d
		gone.Op, gone.Old, gone.Final = Deleted, n.old, n.final
		to = append(to, gone)
	}
	switch {
	case n.new == nil:
		return to
	case n.old == nil || n.old.UID() != n.new.UID():
		d.Op, d.New, d.Initial = Added, n.new, n.initial
		if n.initial { // the consumer missed nothing
			d.Relisted, d.After = false, time.Time{}
		}
	default:
		d.Op, d.Old, d.New = Updated, n.old, n.new
	}
	return append(to, d)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
