package capture

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// There is no order between kinds, so a pod may be seen before the ReplicaSet that owns it. Under deploy/web, a
// change whose owner is unknown waits up to five seconds for it.

// Bounds of what waits for its owner. Streams are not ordered among each other, so that a pod may
// be seen before the ReplicaSet that owns it; milliseconds are usual.
const (
	ownerPatience = 5 * time.Second
	ownerWaiting  = 1000
	// ownerDepth bounds the way up: a CronJob owns Jobs, which own pods. What users write may be a
	// circle.
	ownerDepth = 4
)

// ownership decides which objects belong to the named ones. It is used by one goroutine. Its size is
// that of the objects that exist: none is remembered when it is gone.
type ownership struct {
	// owner holds the UID of each object's controller, by its own; empty where it has none.
	owner map[string]string
	// ours are the UIDs of the named objects, and of those that were admitted with them.
	ours map[string]bool
	// orphans are objects whose owner did not appear in time.
	orphans map[string]bool
	waiting []waitingChange
}

// noted is a change on its way through the ownership.
type noted struct {
	change.Change
	unshown bool // only of use to know its owner
}

type waitingChange struct {
	noted
	until time.Time
}

func newOwnership() *ownership {
	return &ownership{owner: map[string]string{}, ours: map[string]bool{}, orphans: map[string]bool{}}
}

// admit takes a change of a named object, or of one that may be owned, and returns the changes that
// are now known to belong: owners first, and those of one object in order.
func (o *ownership) admit(now time.Time, c noted, named bool) (out []noted) {
	if c.UID == "" { // as some extensions' objects, which only come here by name
		return []noted{c}
	}
	o.owner[c.UID] = ""
	if c.Owner != nil {
		o.owner[c.UID] = c.Owner.UID
	}
	switch ours, known := o.belongs(c.UID); {
	case ours || named:
		out = o.accept(c)
	case known || o.orphans[c.UID] || c.unshown: // an unshown change has told what it had to
	default:
		if len(o.waiting) == ownerWaiting {
			o.giveUp()
		}
		o.waiting = append(o.waiting, waitingChange{c, now.Add(ownerPatience)})
	}
	if c.Gone() {
		o.forget(c.UID)
	}
	return out
}

// belongs follows the owners up to one of ours. It is known that there is none where the way ends at
// an object without an owner.
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

// accept returns the change behind those of its object that waited, and before those that waited
// for it.
func (o *ownership) accept(c noted) []noted {
	fresh := !o.ours[c.UID]
	o.ours[c.UID] = true
	if !fresh || len(o.waiting) == 0 {
		return []noted{c}
	}
	out := append(o.take(func(w *noted) bool { return w.UID == c.UID }), c)
	for {
		next := o.take(func(w *noted) bool {
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

// waits is true while a change of the object waits.
func (o *ownership) waits(uid string) bool {
	return slices.ContainsFunc(o.waiting, func(w waitingChange) bool { return w.UID == uid })
}

// take removes what waits and matches.
func (o *ownership) take(match func(*noted) bool) (taken []noted) {
	for i := 0; i < len(o.waiting); {
		if w := &o.waiting[i].noted; match(w) {
			taken = append(taken, *w)
			o.waiting = slices.Delete(o.waiting, i, i+1)
		} else {
			i++
		}
	}
	return taken
}

// forget drops an object that is gone; what it owned outlives it for a while, and stays ours.
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

// expire gives up on owners that did not appear: they are of kinds that are not watched, or gone.
func (o *ownership) expire(now time.Time) {
	for len(o.waiting) > 0 && !now.Before(o.waiting[0].until) {
		o.giveUp()
	}
}

// giveUp drops what has waited longest. Should its owner appear after all, later changes are admitted.
func (o *ownership) giveUp() {
	c := o.waiting[0].noted
	o.waiting = o.waiting[1:]
	if _, exists := o.owner[c.UID]; exists {
		o.orphans[c.UID] = true
	}
}
