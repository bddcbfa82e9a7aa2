package informer

// SetMaxHeld changes how many bytes are held back, and returns a function that restores the limit.
func SetMaxHeld(n int) (undo func()) {
	was := maxHeldBytes
	maxHeldBytes = n
	return func() { maxHeldBytes = was }
}

// SyncMutations makes the caller's writes happen before the next check, for the race detector.
func (c *Cluster) SyncMutations() {
	c.mutations.mu.Lock()
	defer c.mutations.mu.Unlock()
}

// SetMutationFailure makes a found mutation call f instead of panicking.
func (c *Cluster) SetMutationFailure(f func(report string)) { c.mutations.fail = f }

// CloseSlowly does the first part of Close; the returned function does the rest.
func (s *Source) CloseSlowly() (rest func()) {
	s.mu.Lock()
	consumers, _ := s.shut()
	s.mu.Unlock()
	return func() { s.end(consumers) }
}

// ReportMutation reports a modified object, as a check does.
func (c *Cluster) ReportMutation(s Stream, k Key, err error) { c.reports.mutation(s, k, err) }
