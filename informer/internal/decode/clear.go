package decode

// Clear drops all parts: one of them was written to. Objects that have it keep it.
//
// An object that is being decoded meanwhile may have it as well, and put parts into the table that contain it: to be rid of
// those, too, Clear again once that object is complete.
func (t *Table) Clear() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.now, s.old, s.size, s.oldSize = nil, nil, 0, 0
		s.mu.Unlock()
	}
	t.empty.Store(&map[string]any{})
}
