package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// OrderWindow is how long a change waits for an earlier one of another kind: longer than the streams of a healthy server
// diverge, too short for a person to notice.
const OrderWindow = 100 * time.Millisecond

// Order sorts the changes of different kinds, which arrive on separate streams, by resource version, so that a reader sees
// a cause before its effect. One server's etcd counts versions for all kinds. Kubernetes does not promise that between
// kinds, so nothing else depends on the order, and changes of one object never change places. Order is not safe for
// concurrent use.
type Order struct {
	waiting []heldChange // in order of arrival
}

type heldChange struct {
	change.Change
	until time.Time
}

// Add adds a change, and returns the changes to show now. It holds the change for a moment. Changes without a place in the
// order (gaps, net changes of a list, snapshots, conversions, versions that are not numbers) are returned at once, after
// all earlier ones.
func (o *Order) Add(now time.Time, c change.Change) []change.Change {
	if c.Op == event.Gap || c.Op == event.Snapshot || c.Op == event.Converted || c.Net || !numeric(c.ResourceVersion) {
		return append(o.Rest(), c)
	}
	o.waiting = append(o.waiting, heldChange{c, now.Add(OrderWindow)})
	return nil
}

// Next returns when Due has a change to return; false while none is held.
func (o *Order) Next() (time.Time, bool) {
	if len(o.waiting) == 0 {
		return time.Time{}, false
	}
	return o.waiting[0].until, true
}

// Due returns the changes that have waited long enough.
func (o *Order) Due(now time.Time) []change.Change {
	due := 0
	for due < len(o.waiting) && !o.waiting[due].until.After(now) {
		due++
	}
	return o.release(due)
}

// Rest returns all held changes.
func (o *Order) Rest() []change.Change { return o.release(len(o.waiting)) }

// release returns the first n held changes, and older ones that arrived after them.
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
