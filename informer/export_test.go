package informer

// SetMaxHeld changes how many bytes are held back, and returns what undoes that.
func SetMaxHeld(n int) (undo func()) {
	was := maxHeldBytes
	maxHeldBytes = n
	return func() { maxHeldBytes = was }
}
