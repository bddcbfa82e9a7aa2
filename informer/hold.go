package informer

import "github.com/tattler-dev/tattler/informer/internal/store"

// While the deletion of the newest loaded object is expected, all commits are held back: they may belong to another
// history. A consumer that persisted them without their version would have to list after a restart; one that persisted
// them with it would skip the history check.

// maxHeldBytes limits the compressed bytes that are held back. Tests change it.
var maxHeldBytes = 32 << 20

// hold holds a commit back. Beyond maxHeldBytes, it releases all of them without a version, like a list in progress.
func (i *ingest) hold(c store.Commit) {
	const perCommit = 256
	i.held = append(i.held, c)
	i.heldBytes += perCommit
	for n := range c.Changes {
		i.heldBytes += c.Changes[n].V.Size()
	}
	if i.heldBytes > maxHeldBytes {
		i.releaseHeld()
	}
}

// releaseHeld applies the held commits, and stops holding.
func (i *ingest) releaseHeld() {
	held := i.held
	i.held, i.heldBytes, i.holding = nil, 0, false
	for _, c := range held {
		i.apply(c)
	}
}

// discardHeld discards the held commits, but keeps their gaps: a list follows.
func (i *ingest) discardHeld() {
	held := i.held
	i.held, i.heldBytes, i.holding = nil, 0, false
	var gap *store.Gap
	for _, c := range held {
		gap = gap.Merge(c.Gap)
		i.unpin(c.Changes)
	}
	if i.gap = gap.Merge(i.gap); i.gap != nil && len(held) > 0 {
		i.gap.From = i.store.Version() // the held commits do not count
	}
}
