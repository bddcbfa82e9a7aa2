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

// Change holds a change briefly.
func (o *ordered) Change(now time.Time, c change.Change) error {
	return o.show(now, o.order.Add(now, c))
}

// Next returns when a held change is due, or when the printer wants to be called.
func (o *ordered) Next() (time.Time, bool) {
	at, ok := o.printer.Next()
	if held, waits := o.order.Next(); waits && (!ok || held.Before(at)) {
		return held, true
	}
	return at, ok
}

// Tick shows the changes that are due.
func (o *ordered) Tick(now time.Time) error {
	if err := o.show(now, o.order.Due(now)); err != nil {
		return err
	}
	return o.printer.Tick(now)
}

// Notice shows a notice after the changes that came before it.
func (o *ordered) Notice(now time.Time, text string) error {
	if err := o.show(now, o.order.Rest()); err != nil {
		return err
	}
	return o.printer.Notice(now, text)
}

// Flush shows all held changes.
func (o *ordered) Flush(now time.Time) error {
	if err := o.show(now, o.order.Rest()); err != nil {
		return err
	}
	return o.printer.Flush(now)
}

func (o *ordered) show(now time.Time, changes []change.Change) error {
	for _, c := range changes {
		if err := o.printer.Change(now, c); err != nil {
			return err
		}
	}
	return nil
}
