package store

import "slices"

// Delivered returns the objects whose stored version the queue's consumer has taken, in no order: those with nothing
// queued. The slice is the caller's.
func (s *Store) Delivered(q *Queue) []Item {
	s.commitMu.Lock() // everything stored has been queued
	defer s.commitMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || slices.Contains(s.waiting, q) {
		return nil
	}
	queued := map[Key]struct{}{}
	for i := range q.batches {
		if b := &q.batches[i]; b.Stream == s.id {
			for j := range b.Deltas {
				queued[b.Deltas[j].Key] = struct{}{}
			}
		}
	}
	f := &q.folds[s.id]
	items := make([]Item, 0, s.table.objects)
	s.table.each(func(sp *space, o *object) {
		k := Key{sp.name, o.name}
		if _, is := queued[k]; !is && !f.initial.hasPending(k) && f.find(k, hashKey(sp.sum, o.sum)) == nil {
			items = append(items, Item{k, o.v})
		}
	})
	return items
}
