package deliver

import (
	"maps"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Delivery describes how the delivery of a change to the sink ended.
type Delivery struct {
	// ID is the event's id.
	ID string
	// Taken is when the pump first read the change to send it, Done when the sink acknowledged it or it was set aside. A
	// sink.Holder acknowledges it when it has sent what it held.
	Taken, Done time.Time
	// Attempts counts the calls of Send and Flush with the change; it is 0 if it could not be sent.
	Attempts int
	// Err is the last error of these calls, or why it could not be sent; nil without an error.
	Err error
	// SetAside says that it became a dead letter. Again says that a user asked to send it again.
	SetAside, Again bool
}

// Traces receives the deliveries of a pump. Its methods must not block.
type Traces interface {
	// Follows reports whether Delivered or Untraced shall be called for a change.
	Follows(id string) bool
	// Delivered is called once the sink has acknowledged a change, or the change was set aside.
	Delivered(d Delivery)
	// Untraced is called for a change that was read to be sent, but could not be kept until its delivery ends.
	Untraced()
}

// maxTraced bounds the changes that a pump traces at once: a sink.Holder may hold any number.
const maxTraced = 10_000

// trace follows the changes that are being sent, for Options.Traces. Without that, it does nothing.
type trace struct {
	o        *Options
	taken    map[int64]*Delivery // by sequence number
	held     []int64             // those that a sink.Holder holds
	untraced int64               // up to it, changes that are not in taken were passed to Untraced
}

// take records that a change was read to be sent.
func (t *trace) take(seq int64, m *sink.Message) {
	switch {
	case t.o.Traces == nil || t.taken[seq] != nil || seq <= t.untraced || !t.o.Traces.Follows(m.ID): // perhaps it is sent again
		return
	case len(t.taken) >= maxTraced:
		t.untraced = seq
		t.o.Traces.Untraced()
		return
	case t.taken == nil:
		t.taken = map[int64]*Delivery{}
	}
	t.taken[seq] = &Delivery{ID: m.ID, Again: m.Again, Taken: time.Now()}
}

// sent records an attempt to send a batch. A refusal concerns the first change that was not acknowledged, any other error all of
// them.
func (t *trace) sent(items []Item, acked int, err error) {
	if t.o.Traces == nil {
		return
	}
	for i := range items {
		if d := t.taken[items[i].Seq]; d != nil {
			if d.Attempts++; err != nil && (i == acked || i > acked && !sink.BlamesMessage(err)) {
				d.Err = err
			}
		}
	}
}

// hold records that the sink holds changes.
func (t *trace) hold(items []Item) {
	if t.o.Traces == nil {
		return
	}
	for i := range items {
		if t.taken[items[i].Seq] != nil {
			t.held = append(t.held, items[i].Seq)
		}
	}
}

// notFlushed records that a Flush failed.
func (t *trace) notFlushed(err error) {
	for _, seq := range t.held {
		if d := t.taken[seq]; d != nil {
			d.Attempts++
			d.Err = err
		}
	}
}

// acknowledged ends the deliveries of changes that the sink has stored, and of those that it held.
func (t *trace) acknowledged(items []Item) {
	if t.o.Traces == nil {
		return
	}
	now := time.Now()
	for _, seq := range t.held {
		t.end(seq, now)
	}
	t.held = t.held[:0]
	for i := range items {
		t.end(items[i].Seq, now)
	}
}

// setAside ends the delivery of a change that became a dead letter.
func (t *trace) setAside(seq int64, letter *DeadLetter, reason error) {
	if t.o.Traces == nil {
		return
	}
	d := t.taken[seq]
	if d == nil {
		if seq <= t.untraced || !t.o.Traces.Follows(letter.ID) {
			return
		}
		d = &Delivery{ID: letter.ID, Attempts: letter.Attempts, Taken: letter.At}
		if t.taken == nil {
			t.taken = map[int64]*Delivery{}
		}
		t.taken[seq] = d
	}
	if d.SetAside = true; d.Err == nil {
		d.Err = reason
	}
	t.end(seq, letter.At)
}

// replayed ends the delivery of a dead letter.
func (t *trace) replayed(began time.Time, letter *DeadLetter, attempts int, err error) {
	if t.o.Traces != nil && t.o.Traces.Follows(letter.ID) {
		t.o.Traces.Delivered(Delivery{ID: letter.ID, Taken: began, Done: time.Now(), Attempts: attempts, Err: err, SetAside: err != nil, Again: true})
	}
}

func (t *trace) end(seq int64, now time.Time) {
	if d := t.taken[seq]; d != nil {
		delete(t.taken, seq)
		d.Done = now
		t.o.Traces.Delivered(*d)
	}
}

// release records that the sink no longer holds anything: what it held is read again.
func (t *trace) release() { t.held = t.held[:0] }

// moved drops changes up to a sequence number: retention has removed them before they were sent again.
func (t *trace) moved(to int64) {
	if len(t.taken) > 0 {
		maps.DeleteFunc(t.taken, func(seq int64, _ *Delivery) bool { return seq <= to })
	}
}

// reset forgets all changes.
func (t *trace) reset() { t.taken, t.held, t.untraced = nil, nil, 0 }
