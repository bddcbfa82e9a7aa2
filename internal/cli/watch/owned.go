package watch

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// There is no order between kinds, so a pod may be seen before the ReplicaSet that owns it. Under deploy/web, a
// change whose owner is unknown waits up to five seconds for it.

// Limits of changes that wait for their owner. Streams are not ordered relative to each other, so a pod may
// arrive before the ReplicaSet that owns it, usually by milliseconds.
const (
	ownerPatience = 5 * time.Second
	ownerWaiting  = 1000
	// ownerDepth bounds the chain of owners: a CronJob owns Jobs, which own pods. Users may write circular
	// references.
	ownerDepth = 4
)

// ownership decides which objects belong to the named ones. A single goroutine uses it. It forgets deleted
// objects, so its size is bounded by the existing ones.
type ownership struct {
	// owner maps an object's UID to its controller's UID; empty if it has none.
	owner map[string]string
	// ours holds the UIDs of the named objects and of the objects admitted with them.
	ours map[string]bool
	// orphans are objects whose owner did not arrive in time.
	orphans map[string]bool
	waiting []waitingChange
}

// pendingChange is a change on its way through the ownership.
type pendingChange struct {
	change.Change
	revealOnly bool // not sent; it only reveals an owner
}

type waitingChange struct {
	pendingChange
	until time.Time
}

func newOwnership() *ownership {
	return &ownership{owner: map[string]string{}, ours: map[string]bool{}, orphans: map[string]bool{}}
}

// admit takes a change of a named object, or of one that may be owned. It returns the changes now known to
// belong: owners first, and changes of one object in order.
func (o *ownership) admit(now time.Time, c pendingChange, named bool) (out []pendingChange) {
	if c.UID == "" { // some extensions' objects have no UID; they only come here by name
		return []pendingChange{c}
	}
	o.owner[c.UID] = ""
	if c.Owner != nil {
		o.owner[c.UID] = c.Owner.UID
	}
	switch ours, known := o.belongs(c.UID); {
	case ours || named:
		out = o.accept(c)
	case known || o.orphans[c.UID] || c.revealOnly: // an revealOnly change has served its purpose
	default:
		if len(o.waiting) == ownerWaiting {
			o.dropOldest()
		}
		o.waiting = append(o.waiting, waitingChange{c, now.Add(ownerPatience)})
	}
	if c.Gone() {
		o.forget(c.UID)
	}
	return out
}

// belongs follows the chain of owners to one of ours. known is true with ours false if the chain ends at an
// object without an owner.
func (o *ownership) belongs(uid string) (ours, known bool) {
	for range ownerDepth {
		if o.ours[uid] {
			return true, true
		}
		owner, seen := o.owner[uid]
		if !seen {
			return false, false
		}
		if owner == "" {
			return false, true
		}
		uid = owner
	}
	return false, true
}

// accept returns the change, after the waiting changes of its object and before those that waited for it.
func (o *ownership) accept(c pendingChange) []pendingChange {
	fresh := !o.ours[c.UID]
	o.ours[c.UID] = true
	if !fresh || len(o.waiting) == 0 {
		return []pendingChange{c}
	}
	out := append(o.take(func(w *pendingChange) bool { return w.UID == c.UID }), c)
	for {
		next := o.take(func(w *pendingChange) bool {
			ours, _ := o.belongs(w.Owner.UID)
			return ours && !o.waits(w.Owner.UID)
		})
		if len(next) == 0 {
			break
		}
		for _, n := range next {
			o.ours[n.UID] = true
		}
		out = append(out, next...)
	}
	for _, n := range out {
		if n.Gone() {
			o.forget(n.UID)
		}
	}
	return out
}

// waits reports whether a change of the object is waiting.
func (o *ownership) waits(uid string) bool {
	return slices.ContainsFunc(o.waiting, func(w waitingChange) bool { return w.UID == uid })
}

// take removes and returns the waiting changes that match.
func (o *ownership) take(match func(*pendingChange) bool) (taken []pendingChange) {
	for i := 0; i < len(o.waiting); {
		if w := &o.waiting[i].pendingChange; match(w) {
			taken = append(taken, *w)
			o.waiting = slices.Delete(o.waiting, i, i+1)
		} else {
			i++
		}
	}
	return taken
}

// forget drops a deleted object. Its dependents may outlive it and remain ours.
func (o *ownership) forget(uid string) {
	if ours, _ := o.belongs(uid); ours {
		for child, owner := range o.owner {
			if owner == uid {
				o.ours[child] = true
			}
		}
	}
	delete(o.owner, uid)
	delete(o.ours, uid)
	delete(o.orphans, uid)
}

// expire drops changes whose owner did not arrive: it is deleted or its kind is not watched.
func (o *ownership) expire(now time.Time) {
	for len(o.waiting) > 0 && !now.Before(o.waiting[0].until) {
		o.dropOldest()
	}
}

// dropOldest drops the change that has waited longest. If its owner arrives after all, later changes are
// admitted.
func (o *ownership) dropOldest() {
	c := o.waiting[0].pendingChange
	o.waiting = o.waiting[1:]
	if _, exists := o.owner[c.UID]; exists {
		o.orphans[c.UID] = true
	}
}
