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

// tell calls the handler's method.
func (n *note) tell(h cache.ResourceEventHandler, t *table) {
	switch n.op {
	case added:
		h.OnAdd(n.newest(t), n.initial)
	case updated:
		h.OnUpdate(n.oldest(t), n.newest(t))
	case resynced:
		obj := n.newest(t)
		h.OnUpdate(obj, obj)
	case deleted:
		obj := n.oldest(t)
		if n.missed {
			obj = cache.DeletedFinalStateUnknown{Key: n.key, Obj: obj}
		}
		h.OnDelete(obj)
	}
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
