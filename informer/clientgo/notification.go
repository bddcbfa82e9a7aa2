package clientgo

import (
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// op is the kind of a notification.
type op uint8

const (
	added op = iota + 1
	updated
	deleted
	resynced // nothing changed: the handler asked for resyncs
)

// notification is one change for the handlers. All handlers share it. It is immutable except for its weak references.
type notification struct {
	op      op
	initial bool // added: the object belongs to the handler's initial state
	missed  bool // deleted: a list no longer contained it, so only its last known state is available
	key     string
	old     *item // updated, deleted
	new     *item // added, updated, resynced

	// The decoded objects, while the queue is short. Otherwise weak references may still find them.
	oldObj, newObj   any
	oldWeak, newWeak weakObject
}

// weight returns the bytes that only this queued notification keeps in memory. The store holds the new version
// anyway.
func (n *notification) weight() int64 {
	return int64(unsafe.Sizeof(notification{})) + n.old.size()
}

// decodedBytes returns the size of the decoded objects, which weight does not include. They count in full, although
// others may hold them too.
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

// hasDecoded reports whether the notification holds decoded objects.
func (n *notification) hasDecoded() bool { return n.oldObj != nil || n.newObj != nil }

// withoutObjects returns the notification without decoded objects. pack makes the item of a deleted object that was
// only held decoded.
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

// deliver calls the handler's method. A version that cannot be decoded is treated as absent. Its deletion is
// delivered without an object, since the handler may know an earlier version.
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

// oldest returns the old version. It decodes it from the new one if that is decoded, and does not cache it for
// readers. The reverse never happens: if a program writes to a cached object by mistake, the next version must not
// inherit the change.
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
