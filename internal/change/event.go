package change

import (
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/severity"
)

// Event returns the public form of a change in the named cluster. It is compact: an object that was created,
// entered or was seen at the start is complete, as is the last known object after a deletion or departure; an
// update has its changes, with quiet ones included and marked. It shares the change's objects.
func Event(cluster string, c *Change) event.Event {
	d := event.Data{
		Managers: c.Managers,
		Severity: c.Severity(),
		// the earlier state is missing
		Truncated: c.Blind,
		Unkeyed:   c.Unkeyed,
	}
	switch c.Op {
	case event.Snapshot, event.Created, event.Entered:
		d.After = c.After
	case event.Deleted, event.Left:
		d.Before, d.Managers = c.Before, nil
	case event.Updated, event.Converted:
		d.Changes = make([]event.Change, len(c.Fields))
		for i := range c.Fields {
			d.Changes[i] = c.Fields[i].Event()
		}
	}
	return c.Meta.Event(cluster, d)
}

// Whole is Event with both objects of an update or a conversion.
func Whole(cluster string, c *Change) event.Event {
	e := Event(cluster, c)
	if c.Op.Differs() {
		e.Data.Before, e.Data.After = c.Before, c.After
	}
	return e
}

// Event returns the public form of a changed field.
func (f *FieldChange) Event() event.Change {
	return event.Change{
		Path: f.Path.String(), Op: string(f.Op), From: f.From, To: f.To,
		Manager: f.Manager, Subresource: f.Subresource, Quiet: f.Quiet, Whole: f.Whole,
	}
}

// Severity returns the severity: as it was judged when the change was recorded, or else derived from the objects.
func (c *Change) Severity() event.Severity {
	switch {
	case c.Meta.Severity != "":
		return c.Meta.Severity
	case c.Absence != nil && c.Absence.Incomplete > 0:
		return event.Warning
	case c.Quiet || c.Blind || c.Absence != nil:
		return event.Normal
	}
	before := c.Before
	if !c.Op.Differs() { // from before a selection let the object in, or before it was recreated
		before = nil
	}
	return severity.Of(c.Op, c.Kind.GroupKind(), before, c.After)
}

// Judge stores the severity while the objects are available, for a change that is recorded, or passed on without them.
func (c *Change) Judge() { c.Meta.Severity = c.Severity() }
