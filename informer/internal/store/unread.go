package store

import (
	"maps"
	"time"
)

// Unread tells whether the object's last version could not be read. Anybody may ask.
func (s *Store) Unread(k Key) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	_, ok := s.unread[k]
	return ok
}

// AllUnread returns the objects whose last version could not be read. Anybody may ask; the map is the caller's.
func (s *Store) AllUnread() map[Key]time.Time {
	s.turn.Lock()
	defer s.turn.Unlock()
	return maps.Clone(s.unread)
}
