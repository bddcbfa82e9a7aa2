package sink

// Window sends messages in order and keeps several in flight, but only one per Key: the next message of an object is
// sent when the previous one is acknowledged, so that none overtakes one that failed.
type Window[T any] struct {
	// Size is the maximum number of messages in flight; 0 means no limit.
	Size int
	// Start sends a message without waiting for its acknowledgement.
	Start func(m Message) (T, error)
	// Wait waits for the acknowledgement of a message. It is called once for each started message, in their order, also
	// after an error: it must then end soon if no more acknowledgements can come.
	Wait func(m Message, started T) error
}

// Send sends messages and returns how many of the first ones are acknowledged, as Sink.Send does. When it returns, no started
// message waits for its acknowledgement; an error says which later ones have it (PartialError).
func (w *Window[T]) Send(ms []Message) (acked int, err error) {
	started := make([]T, 0, len(ms))
	last := map[string]int{} // by key: the number of messages up to its last one
	wait := func(first int) error {
		for ; acked < first; acked++ {
			if err := w.Wait(ms[acked], started[acked]); err != nil {
				return w.rest(err, ms, acked, started)
			}
		}
		return nil
	}
	for i, m := range ms {
		before := last[m.Key]
		if w.Size > 0 {
			before = max(before, i-w.Size+1)
		}
		if err := wait(before); err != nil {
			return acked, err
		}
		one, err := w.Start(m)
		if err != nil {
			if earlier := wait(i); earlier != nil { // the messages before it may have arrived
				err = earlier
			}
			return acked, err
		}
		started = append(started, one)
		last[m.Key] = i + 1
	}
	err = wait(len(ms))
	return acked, err
}

// rest waits for the messages that were started after one that failed.
func (w *Window[T]) rest(err error, ms []Message, failed int, started []T) error {
	stored := map[int]bool{}
	for i := failed + 1; i < len(started); i++ {
		stored[i] = w.Wait(ms[i], started[i]) == nil
	}
	return Partial(err, ms, failed, func(i int) bool { return stored[i] })
}
