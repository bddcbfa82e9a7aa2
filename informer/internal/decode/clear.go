package decode

// Clear drops all parts, because one of them was written to. Objects that contain it keep it.
//
// An object that is being decoded meanwhile may contain it as well, and may add parts that contain it to the table.
// To drop those, too, call Clear again once that object is complete.
func (t *Table) Clear() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.now, s.old, s.size, s.oldSize = nil, nil, 0, 0
		s.mu.Unlock()
	}
	t.empty.Store(&map[string]any{})
}
