package store

import (
	"slices"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Index is kept up to date by a store. Its methods are called under the store's write lock: they must be quick and
// must not call the store. Read it within Store.View.
type Index interface {
	// Set replaces an object's values. Nil means that they are unknown: the index's function failed or did not see
	// this version.
	Set(k Key, values any)
	// Delete removes an object's values.
	Delete(k Key)
	// Clear removes all values.
	Clear()
}

// indexes are a store's indexes by slot, nil for a free slot.
type indexes []Index

func (x indexes) set(k Key, values []any) {
	for slot, ix := range x {
		switch {
		case ix == nil:
		case slot < len(values):
			ix.Set(k, values[slot])
		default:
			ix.Set(k, nil)
		}
	}
}

func (x indexes) delete(k Key) {
	for _, ix := range x {
		if ix != nil {
			ix.Delete(k)
		}
	}
}

// AddIndex adds an index in the first free slot and returns the slot, which is its place in Change.Index. The index
// receives every later change; the caller adds the existing objects with Snapshot and SetIndex. An index must
// recognize its own values: a change in progress may carry values of the slot's previous index.
func (s *Store) AddIndex(ix Index) (slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot = slices.IndexFunc(s.indexes, func(x Index) bool { return x == nil })
	if slot < 0 {
		slot = len(s.indexes)
		s.indexes = append(s.indexes, nil)
	}
	s.indexes[slot] = ix
	return slot
}

// RemoveIndex clears an index and frees its slot. The index receives no further calls.
func (s *Store) RemoveIndex(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ix := s.indexes[slot]; ix != nil {
		ix.Clear()
	}
	s.indexes[slot] = nil
}

// SetIndex sets one object's values in one index, and reports whether it did. It does nothing if v is no longer the
// object's version or the index was removed.
func (s *Store) SetIndex(slot int, k Key, v *compact.Version, values any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v == nil || s.table.get(k) != v || s.indexes[slot] == nil {
		return false
	}
	s.indexes[slot].Set(k, values)
	return true
}
