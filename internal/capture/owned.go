package capture

import (
	"slices"
	"time"
)

// Bounds of what waits for its owner. Streams are not ordered among each other, so that a pod may
// be seen before the ReplicaSet that owns it; milliseconds are usual.
const (
	ownerPatience = 5 * time.Second
	ownerWaiting  = 1000
)

// ownership decides which objects belong to the named ones. It is used by one goroutine.
type ownership struct {
	// ours holds the UIDs of the named objects and of what they own; others those known not to be.
	ours, others map[string]bool
	waiting      []waitingChange
}

type waitingChange struct {
	Change
	until time.Time
}

func newOwnership() *ownership {
	return &ownership{ours: map[string]bool{}, others: map[string]bool{}}
}

// admit takes a change of a named object, or of one that may be owned, and returns the changes that
// are now known to belong, in order.
func (o *ownership) admit(now time.Time, c Change, named bool) []Change {
	if c.UID == "" { // a gap
		return []Change{c}
	}
	switch {
	case named || o.ours[c.UID] || (c.Owner != nil && o.ours[c.Owner.UID]):
		out := o.accept(c)
		if gone(c) && !named {
			delete(o.ours, c.UID)
		}
		return out
	case c.Owner == nil || o.others[c.Owner.UID] || o.others[c.UID]:
		o.reject(c)
	default:
		if len(o.waiting) == ownerWaiting {
			o.reject(o.waiting[0].Change)
			o.waiting = o.waiting[1:]
		}
		o.waiting = append(o.waiting, waitingChange{c, now.Add(ownerPatience)})
	}
	return nil
}

// accept releases what waited for the object, and what waited for that.
func (o *ownership) accept(c Change) []Change {
	out := []Change{c}
	o.ours[c.UID] = true
	delete(o.others, c.UID)
	for i := 0; i < len(o.waiting); {
		w := o.waiting[i]
		if w.UID != c.UID && w.Owner.UID != c.UID {
			i++
			continue
		}
		o.waiting = slices.Delete(o.waiting, i, i+1)
		out = append(out, o.accept(w.Change)...)
		i = 0 // accepting may have removed others before this place
	}
	return out
}

func (o *ownership) reject(c Change) {
	if gone(c) {
		delete(o.others, c.UID)
		return
	}
	o.others[c.UID] = true
}

// expire gives up on owners that did not appear: they are of kinds that are not watched, or gone.
func (o *ownership) expire(now time.Time) {
	for len(o.waiting) > 0 && !now.Before(o.waiting[0].until) {
		o.reject(o.waiting[0].Change)
		o.waiting = o.waiting[1:]
	}
}
