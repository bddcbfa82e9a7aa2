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

// note tells handlers of one change. It is shared by all of them, and immutable, but for what was seen.
type notification struct {
	op      op
	initial bool // added: the object is of the state that the handler starts with
	missed  bool // deleted: a list did not name it, and what is known is its last state
	key     string
	old     *item // updated, deleted
	new     *item // added, updated, resynced

	// The objects, where they are at hand: the queue is short. Else they may still be elsewhere.
	oldObj, newObj   any
	oldWeak, newWeak weakObject
}

// weight is what a queued note keeps in memory that nobody else needs, in bytes: what is new is stored.
func (n *notification) weight() int64 {
	return int64(unsafe.Sizeof(notification{})) + n.old.size()
}

// atHand is what the objects at hand cost beside that, in bytes. Others may have them, too: nobody knows for
// how long.
func (n *notification) decodedBytes() int64 {
	var w int64
	if n.oldObj != nil && n.old != nil && n.old.v != nil {
		w += n.old.weight
	}
	if n.newObj != nil && n.new.v != nil {
		w += n.new.weight
	}
	return w
}

// handy tells whether objects are at hand.
func (n *notification) hasDecoded() bool { return n.oldObj != nil || n.newObj != nil }

// bare is the note without objects at hand. pack makes the item of a deleted object that was held since it was
// at hand.
func (n *notification) withoutObjects(pack func(any) *item) *notification {
	b := &notification{op: n.op, initial: n.initial, missed: n.missed, key: n.key, old: n.old, new: n.new}
	if n.op == deleted && n.oldObj != nil && n.old.v == nil {
		b.old = pack(n.oldObj)
	}
	b.oldWeak.set(firstOf(n.oldObj, &n.oldWeak))
	b.newWeak.set(firstOf(n.newObj, &n.newWeak))
	return b
}

func firstOf(obj any, seen *weakObject) any {
	if obj != nil {
		return obj
	}
	return seen.get()
}

// tell calls the handler's method. What cannot be decoded is as if it were not there; that it is gone is
// told without it, since the handler may have known another version.
func (n *notification) deliver(h cache.ResourceEventHandler, t *table) {
	if n.op == deleted {
		n.deliverDeleted(h, n.oldest())
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
		if old := n.oldest(); old != nil {
			h.OnUpdate(old, obj)
		} else {
			h.OnAdd(obj, false)
		}
	case resynced:
		h.OnUpdate(obj, obj)
	}
}

func (n *notification) deliverDeleted(h cache.ResourceEventHandler, obj any) {
	if n.missed || obj == nil {
		obj = cache.DeletedFinalStateUnknown{Key: n.key, Obj: obj}
	}
	h.OnDelete(obj)
}

// oldest decodes the old version from the new one where that is at hand. It is not kept for readers. The new version is
// never decoded from the old one: what a program writes to a cached object by mistake is gone with the next version.
func (n *notification) oldest() any {
	if obj := firstOf(n.oldObj, &n.oldWeak); obj != nil {
		return obj
	}
	obj := n.old.decodeNear(n.new, firstOf(n.newObj, &n.newWeak))
	n.oldWeak.set(obj)
	return obj
}

func (n *notification) newest(t *table) any {
	if obj := firstOf(n.newObj, &n.newWeak); obj != nil {
		return obj
	}
	obj := t.decodeForHandler(n.new)
	n.newWeak.set(obj)
	return obj
}
