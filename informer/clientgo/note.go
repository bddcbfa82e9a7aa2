package clientgo

import (
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// op is what a note tells.
type op uint8

const (
	added op = iota + 1
	updated
	deleted
	resynced // nothing happened: the handler asked to be told now and then
)

// note tells handlers of one change. It is shared by all of them, and immutable.
type note struct {
	op      op
	initial bool // added: the object is of the state that the handler starts with
	missed  bool // deleted: a list did not name it, and what is known is its last state
	key     string
	old     *item // updated, deleted
	new     *item // added, updated, resynced

	// The objects, where they are at hand: the queue is short. Else they may still be elsewhere.
	oldObj, newObj any
	glimpse        glimpse // of new
}

// weight is what a queued note keeps in memory that nobody else needs, in bytes: what is new is stored.
func (n *note) weight() int64 {
	return int64(unsafe.Sizeof(note{})) + n.old.size()
}

// bare is the note without objects at hand.
func (n *note) bare() *note {
	b := *n
	b.oldObj, b.newObj, b.glimpse = nil, nil, glimpse{}
	return &b
}

// tell calls the handler's method. What cannot be decoded is as if it were not there; that it is gone is
// told without it, since the handler may have known another version.
func (n *note) tell(h cache.ResourceEventHandler, t *table) {
	if n.op == deleted {
		n.tellDeleted(h, n.oldest(t))
		return
	}
	obj := n.newest(t)
	if obj == nil {
		return
	}
	switch n.op {
	case added:
		h.OnAdd(obj, n.initial)
	case updated:
		if old := n.oldest(t); old != nil {
			h.OnUpdate(old, obj)
		} else {
			h.OnAdd(obj, false)
		}
	case resynced:
		h.OnUpdate(obj, obj)
	}
}

func (n *note) tellDeleted(h cache.ResourceEventHandler, obj any) {
	if n.missed || obj == nil {
		obj = cache.DeletedFinalStateUnknown{Key: n.key, Obj: obj}
	}
	h.OnDelete(obj)
}

func (n *note) oldest(t *table) any {
	if n.oldObj != nil {
		return n.oldObj
	}
	return t.read(n.old)
}

func (n *note) newest(t *table) any {
	if n.newObj != nil {
		return n.newObj
	}
	if obj := n.glimpse.get(); obj != nil {
		return obj
	}
	return t.read(n.new)
}
