package watch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// window is how long a change waits for an earlier one of another kind: longer than kinds' streams
// differ on a healthy server, too short for a person to notice.
const window = 100 * time.Millisecond

// ordered puts the changes of different kinds, which come on streams of their own, into the order
// in which they were written, so that a cause is read before its effect. Resource versions tell it:
// one server's etcd counts them for all kinds. That is not promised between kinds, so it only serves
// the reader: nothing depends on it, and of one object nothing changes its place.
type ordered struct {
	printer
	waiting []heldChange // in the order in which they came
}

type heldChange struct {
	change.Change
	until time.Time
}

// Change holds a change for a moment. What has no place of its own (gaps, what a list derived, what
// was there before, versions that are no numbers) passes at once, after all that came before it.
func (o *ordered) Change(now time.Time, c change.Change) error {
	if c.Op == event.Gap || c.Op == event.Snapshot || !c.Since.IsZero() || !numeric(c.ResourceVersion) {
		if err := o.release(now, len(o.waiting)); err != nil {
			return err
		}
		return o.printer.Change(now, c)
	}
	o.waiting = append(o.waiting, heldChange{c, now.Add(window)})
	return nil
}

// Next is when the first held change has waited enough, or the printer wants to be called.
func (o *ordered) Next() (time.Time, bool) {
	at, ok := o.printer.Next()
	if len(o.waiting) > 0 && (!ok || o.waiting[0].until.Before(at)) {
		return o.waiting[0].until, true
	}
	return at, ok
}

// Tick releases what has waited enough.
func (o *ordered) Tick(now time.Time) error {
	due := 0
	for due < len(o.waiting) && !o.waiting[due].until.After(now) {
		due++
	}
	if err := o.release(now, due); err != nil {
		return err
	}
	return o.printer.Tick(now)
}

// Notice comes after what came before it.
func (o *ordered) Notice(now time.Time, text string) error {
	if err := o.release(now, len(o.waiting)); err != nil {
		return err
	}
	return o.printer.Notice(now, text)
}

// Flush prints everything.
func (o *ordered) Flush(now time.Time) error {
	if err := o.release(now, len(o.waiting)); err != nil {
		return err
	}
	return o.printer.Flush(now)
}

// release prints the first n held changes, and those that came after them and are older.
func (o *ordered) release(now time.Time, n int) error {
	if n == 0 {
		return nil
	}
	newest := slices.MaxFunc(o.waiting[:n], compareAge)
	var out, rest []heldChange
	for _, h := range o.waiting {
		if compareAge(h, newest) <= 0 {
			out = append(out, h)
		} else {
			rest = append(rest, h)
		}
	}
	o.waiting = rest
	slices.SortStableFunc(out, compareAge)
	for _, h := range out {
		if err := o.printer.Change(now, h.Change); err != nil {
			return err
		}
	}
	return nil
}

// compareAge compares versions as numbers of any length.
func compareAge(a, b heldChange) int {
	return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), strings.Compare(a.ResourceVersion, b.ResourceVersion))
}

func numeric(version string) bool {
	return version != "" && strings.Trim(version, "0123456789") == ""
}
