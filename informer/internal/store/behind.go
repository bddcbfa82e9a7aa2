package store

import (
	"maps"
	"time"
)

// behind are the objects of which the server has a version that is not stored. The store's turn guards it.
type behind struct {
	// unread has, for each object, when the stored version was last known to be current. The empty key is an
	// object whose name is not known. While there are any, the state is not one to resume from.
	unread map[Key]time.Time
	// refused are those whose version was read, and the stream's transform failed.
	refused map[Key]struct{}
}

func (b *behind) add(c *Change) {
	b.remove(c.Key)
	if c.Unread {
		b.unread[c.Key] = c.Since
	} else {
		b.refused[c.Key] = struct{}{}
	}
}

func (b *behind) remove(k Key) {
	delete(b.unread, k)
	delete(b.refused, k)
}

func (b *behind) clear() {
	clear(b.unread)
	clear(b.refused)
}

// Refused tells whether the stream's transform failed on the object's last version. Anybody may ask.
func (s *Store) Refused(k Key) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	_, ok := s.behind.refused[k]
	return ok
}

// Unread tells whether the object's last version could not be read. Anybody may ask.
func (s *Store) Unread(k Key) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	_, ok := s.behind.unread[k]
	return ok
}

// AllUnread returns the objects whose last version could not be read. Anybody may ask; the map is the caller's.
func (s *Store) AllUnread() map[Key]time.Time {
	s.turn.Lock()
	defer s.turn.Unlock()
	return maps.Clone(s.behind.unread)
}
