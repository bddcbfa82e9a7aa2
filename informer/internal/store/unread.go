package store

import "time"

// unread is a version of an object that could not be read.
type unread struct {
	rv    string    // empty: not known
	since time.Time // when the stored version was last known to be current
}

// Unread tells whether the object's last version could not be read. Anybody may ask.
func (s *Store) Unread(k Key) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	_, ok := s.unread[k]
	return ok
}

// AllUnread returns the objects whose last version could not be read. Anybody may ask.
func (s *Store) AllUnread() map[Key]bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	all := make(map[Key]bool, len(s.unread))
	for k := range s.unread {
		all[k] = true
	}
	return all
}
