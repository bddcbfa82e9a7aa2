package store

import "time"

// unread is an object version that could not be read.
type unread struct {
	rv    string    // empty: unknown
	since time.Time // when the stored version was last known to be current
}

// Unread reports whether the object's last version could not be read. It may be called from any goroutine.
func (s *Store) Unread(k Key) bool {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	_, ok := s.unread[k]
	return ok
}

// AllUnread returns the objects whose last version could not be read. It may be called from any goroutine.
func (s *Store) AllUnread() map[Key]bool {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	all := make(map[Key]bool, len(s.unread))
	for k := range s.unread {
		all[k] = true
	}
	return all
}
