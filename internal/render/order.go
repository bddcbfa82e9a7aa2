package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// OrderWindow is how long a change waits for an earlier one of another kind: longer than kinds' streams
// differ on a healthy server, too short for a person to notice.
const OrderWindow = 100 * time.Millisecond

// Order puts the changes of different kinds, which come on streams of their own, into the order in
// which they were written, so that a cause is read before its effect. Resource versions tell it: one
// server's etcd counts them for all kinds. That is not promised between kinds, so it only serves the
// reader: nothing depends on it, and of one object nothing changes its place. It is used by one
// goroutine.
type Order struct {
	waiting []heldChange // in the order in which they came
}

type heldChange struct {
	change.Change
	until time.Time
}

// Add takes a change, and returns what is to be told now. The change is held for a moment, but for what
// has no place of its own (gaps, what a list derived, what was there before, conversions, versions that are no
// numbers): that comes at once, after all that came before it.
func (o *Order) Add(now time.Time, c change.Change) []change.Change {
	if c.Op == event.Gap || c.Op == event.Snapshot || c.Op == event.Converted || c.Net || !numeric(c.ResourceVersion) {
		return append(o.Rest(), c)
	}
	o.waiting = append(o.waiting, heldChange{c, now.Add(OrderWindow)})
	return nil
}

// Next is when Due has something; false while nothing is held.
func (o *Order) Next() (time.Time, bool) {
	if len(o.waiting) == 0 {
		return time.Time{}, false
	}
	return o.waiting[0].until, true
}

// Due returns what has waited enough.
func (o *Order) Due(now time.Time) []change.Change {
	due := 0
	for due < len(o.waiting) && !o.waiting[due].until.After(now) {
		due++
	}
	return o.release(due)
}

// Rest returns all that waits.
func (o *Order) Rest() []change.Change { return o.release(len(o.waiting)) }

// release returns the first n held changes, and those that came after them and are older.
func (o *Order) release(n int) []change.Change {
	if n == 0 {
		return nil
	}
	newest := slices.MaxFunc(o.waiting[:n], compareAge)
	var out, rest []heldChange
	for _, h := range o.waiting {
		if compareAge(h, newest) <= 0 {
			out = append(out, h)
		} else {
			rest = append(rest, h)
		}
	}
	o.waiting = rest
	slices.SortStableFunc(out, compareAge)
	changes := make([]change.Change, len(out))
	for i, h := range out {
		changes[i] = h.Change
	}
	return changes
}

// compareAge compares versions as numbers of any length.
func compareAge(a, b heldChange) int {
	return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), strings.Compare(a.ResourceVersion, b.ResourceVersion))
}

func numeric(version string) bool {
	return version != "" && strings.Trim(version, "0123456789") == ""
}
