package watch

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
)

// unroller turns batches into the changes that the user asked for. One goroutine uses it.
type unroller struct {
	initial bool // also the objects that exist at the start
	paths   change.Paths
	owners  *ownership // nil until a kind has named or owned objects
}

// unroll returns the changes to show: per object in order, and owners before what they own.
func (u *unroller) unroll(now time.Time, b *capture.Batch) (out []change.Change) {
	for i := range b.Changes {
		v := &b.Changes[i]
		if v.Rewritten {
			continue
		}
		c, all := v.Change, len(b.Names) == 0 && !b.Owned
		shown := u.paths.Narrow(&c) && !(c.Op == event.Converted && len(c.Fields) == 0) && (u.initial || c.Op != event.Snapshot)
		switch {
		case all || !c.Op.HasObject():
			if shown {
				out = append(out, c)
			}
		case u.owners == nil:
			u.owners = newOwnership()
			fallthrough
		default:
			u.owners.expire(now)
			for _, p := range u.owners.admit(now, pendingChange{c, !shown}, slices.Contains(b.Names, c.Name)) {
				if !p.revealOnly {
					out = append(out, p.Change)
				}
			}
		}
	}
	return out
}
