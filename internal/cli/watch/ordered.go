package watch

import (
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/render"
)

// ordered shows changes of different kinds in the order in which they were written.
type ordered struct {
	printer
	order render.Order
}

// Change holds a change for a moment.
func (o *ordered) Change(now time.Time, c change.Change) error {
	return o.tell(now, o.order.Add(now, c))
}

// Next is when a held change has waited enough, or the printer wants to be called.
func (o *ordered) Next() (time.Time, bool) {
	at, ok := o.printer.Next()
	if held, waits := o.order.Next(); waits && (!ok || held.Before(at)) {
		return held, true
	}
	return at, ok
}

// Tick shows what has waited enough.
func (o *ordered) Tick(now time.Time) error {
	if err := o.tell(now, o.order.Due(now)); err != nil {
		return err
	}
	return o.printer.Tick(now)
}

// Notice comes after what came before it.
func (o *ordered) Notice(now time.Time, text string) error {
	if err := o.tell(now, o.order.Rest()); err != nil {
		return err
	}
	return o.printer.Notice(now, text)
}

// Flush shows everything.
func (o *ordered) Flush(now time.Time) error {
	if err := o.tell(now, o.order.Rest()); err != nil {
		return err
	}
	return o.printer.Flush(now)
}

func (o *ordered) tell(now time.Time, changes []change.Change) error {
	for _, c := range changes {
		if err := o.printer.Change(now, c); err != nil {
			return err
		}
	}
	return nil
}
