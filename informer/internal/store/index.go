package store

import (
	"slices"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Index is what a store keeps in step with its objects. Its methods are called under the store's
// write lock: they must be quick and must not call the store. Read it within Store.View.
type Index interface {
	// Set replaces the values of an object; nil where they are not known, because the index's
	// function failed or did not see this version.
	Set(k Key, values any)
	// Delete removes an object's values.
	Delete(k Key)
	// Clear removes all.
	Clear()
}

// indexes are the indexes of a store by slot; nil where a slot is free.
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

// AddIndex adds an index in the first slot that is free, and returns that: its place in
// Change.Index. It hears of every later change; the objects that are there already are the caller's
// to fill in, by Snapshot and SetIndex. An index must know its own values: a change under way may
// carry those of one that had the slot before.
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

// RemoveIndex clears an index and frees its slot: it hears nothing more.
func (s *Store) RemoveIndex(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ix := s.indexes[slot]; ix != nil {
		ix.Clear()
	}
	s.indexes[slot] = nil
}

// SetIndex sets one object's values in one index, and tells whether it did: it does not if v is no
// longer the object's version or the index is gone.
func (s *Store) SetIndex(slot int, k Key, v *compact.Version, values any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v == nil || s.table.get(k) != v || s.indexes[slot] == nil {
		return false
	}
	s.indexes[slot].Set(k, values)
	return true
}
