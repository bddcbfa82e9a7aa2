package store

import "slices"

// Told returns the objects that a queue's consumer has taken in the very version that is stored, in no
// order: those of which nothing is queued. The slice is the caller's.
func (s *Store) Told(q *Queue) []Item {
	s.turn.Lock() // what is stored is queued
	defer s.turn.Unlock()
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
	told := make([]Item, 0, s.table.objects)
	s.table.each(func(sp *space, o *object) {
		k := Key{sp.name, o.name}
		if _, is := queued[k]; !is && !f.initial.owes(k) && f.find(k, hashKey(sp.sum, o.sum)) == nil {
			told = append(told, Item{k, o.v})
		}
	})
	return told
}
