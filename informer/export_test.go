package informer

// SetMaxHeld changes how many bytes are held back, and returns what undoes that.
func SetMaxHeld(n int) (undo func()) {
	was := maxHeldBytes
	maxHeldBytes = n
	return func() { maxHeldBytes = was }
}

// SyncMutations orders what was done before it before the next check, for the race detector.
func (c *Cluster) SyncMutations() {
	c.mutations.mu.Lock()
	defer c.mutations.mu.Unlock()
}

// SetMutationFailure has f called instead of a panic.
func (c *Cluster) SetMutationFailure(f func(report string)) { c.mutations.fail = f }

// CloseSlowly closes the source but for what is done by the function that it returns.
func (s *Source) CloseSlowly() (rest func()) {
	s.mu.Lock()
	consumers, _ := s.shut()
	s.mu.Unlock()
	return func() { s.end(consumers) }
}
