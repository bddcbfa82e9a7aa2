package informer

import "github.com/tattler-dev/tattler/informer/internal/store"

// Until the watch has delivered the deletion of the newest loaded object, everything it delivers is held back: it may
// be of another history. A consumer that kept it without its version would have to list after a restart; one that
// kept it with its version would have forgotten the doubt.

// maxHeldBytes bounds the compressed bytes that are held back. Tests change it.
var maxHeldBytes = 32 << 20

// hold holds a commit back. When they get too large, all are handed on without a version, as a list is.
func (s *stream) hold(c store.Commit) {
	const perCommit = 256
	s.held = append(s.held, c)
	s.heldBytes += perCommit
	for i := range c.Changes {
		s.heldBytes += c.Changes[i].V.Size()
	}
	if s.heldBytes > maxHeldBytes {
		s.releaseHeld()
	}
}

// release hands on what was held back, and whatever follows.
func (s *stream) releaseHeld() {
	held := s.held
	s.held, s.heldBytes, s.holding = nil, 0, false
	for _, c := range held {
		s.apply(c)
	}
}

// discardHeld discards what was held back, but not its gaps: a list follows.
func (s *stream) discardHeld() {
	held := s.held
	s.held, s.heldBytes, s.holding = nil, 0, false
	var gap *store.Gap
	for _, c := range held {
		gap = gap.Merge(c.Gap)
		s.unpin(c.Changes)
	}
	if s.gap = gap.Merge(s.gap); s.gap != nil && len(held) > 0 {
		s.gap.From = s.store.Version() // what was held back has not been seen
	}
}
