package informer

import "github.com/tattler-dev/tattler/informer/internal/store"

// What the watch delivers while the deletion of the newest loaded object is still to come is held back: it may be of
// another history. A consumer that kept it without its version would have to list after a restart, and one
// that kept it with its version would have forgotten the doubt.

// maxHeldBytes bounds the compressed bytes that are held back. Tests change it.
var maxHeldBytes = 32 << 20

// hold keeps a commit back. What gets too much is handed on without a version, as a list is.
func (s *stream) hold(c store.Commit) {
	const perCommit = 256
	s.held = append(s.held, c)
	s.heldBytes += perCommit
	for i := range c.Changes {
		s.heldBytes += c.Changes[i].V.Size()
	}
	if s.heldBytes > maxHeldBytes {
		s.release()
	}
}

// release hands on what was held back, and whatever follows.
func (s *stream) release() {
	held := s.held
	s.held, s.heldBytes, s.holding = nil, 0, false
	for _, c := range held {
		s.apply(c)
	}
}

// drophold forgets what was held back: a list follows.
func (s *stream) drophold() {
	held := s.held
	s.held, s.heldBytes, s.holding = nil, 0, false
	for _, c := range held {
		s.unpin(c.Changes)
	}
}
