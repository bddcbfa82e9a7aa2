package store

import (
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// node is one object that differs. Old is what the consumer knows, new what is now, final the server's
// last word on old, or, for one that is owed, the version that initial keeps.
type node struct {
	prev, next         *node
	key                Key
	old, new, final    *compact.Version
	firstAt, at, after int64  // nanoseconds since 1970; 0 is none
	sum                uint32 // the hash of key
	initial, relisted  bool
	owed               bool // initial has the object; else old and new are never both absent
}

// nodes are those that are not used. A queue that keeps up needs one for each change, for a moment.
var nodes sync.Pool

// recycle lets go of a node, and of its versions.
func (n *node) recycle() {
	*n = node{}
	nodes.Put(n)
}

func (n *node) hash() uint32 { return n.sum }

// perNode is what a node costs with its slot, roughly, in bytes.
const perNode = 128

// held is what the node keeps in memory.
func (n *node) held() int64 { return int64(perNode + n.old.Size() + n.final.Size()) }

// hides tells whether d makes the consumer miss something. A delete and an add under another UID are
// both told, and a consumer that has yet to get its initial state misses nothing where that moves on.
func (n *node) hides(d *Delta) bool {
	if n.old == nil {
		return !n.initial
	}
	return d.Op != Added || n.old.UID() == d.UID()
}

// void tells that nothing is left to say.
func (n *node) void() bool {
	switch {
	case n.owed:
		return false
	case n.old == nil || n.new == nil:
		return n.old == n.new
	}
	return n.old.UID() == n.new.UID() && n.old.RV() == n.new.RV() && sameContent(n.old, n.new)
}

// deltas appends what the node tells.
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
		if n.initial { // there was nothing for the consumer to miss
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
