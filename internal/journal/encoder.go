package journal

// Encoder makes the contents that Append stores, without a journal. It is for benchmarks that count what this costs apart
// from SQLite. It is not safe for concurrent use.
type Encoder struct{ codec *codec }

// NewEncoder returns an Encoder, which must be closed.
func NewEncoder() (*Encoder, error) {
	c, err := newCodec()
	if err != nil {
		return nil, err
	}
	return &Encoder{c}, nil
}

// Update returns what an update stores: the object's new state, and the earlier version as a difference from it.
func (e *Encoder) Update(before, after []byte) (state, difference []byte) {
	return e.codec.state(after), e.codec.diff(before, after)
}

// Close releases memory.
func (e *Encoder) Close() { e.codec.close() }
