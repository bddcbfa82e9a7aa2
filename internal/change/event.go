package change

import (
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/severity"
)

// Event makes the public form of a change in the named cluster. It is lean: what was created, entered
// or seen at the start comes whole, so does the last known object of what was deleted or left, and an
// update comes as its changes, quiet ones included and marked. It shares the change's objects.
func Event(cluster string, c *Change) event.Event {
	d := event.Data{
		Op: c.Op,
		Resource: event.Resource{
			Group: c.Resource.Group, Version: c.Resource.Version, Resource: c.Resource.Resource, Kind: c.Resource.Kind,
			Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Owner: c.Owner,
		},
		Managers: c.Managers,
		Severity: c.Severity(),
		Observed: event.Observed{At: c.At},
		Gap:      c.Gap,
		Absence:  c.Absence,
		Epoch:    c.Epoch,
		Quiet:    c.Quiet,
		Form:     c.Form,
		// what was before is left out
		Truncated: c.Blind,
	}
	if !c.Since.IsZero() {
		since := c.Since
		d.Observed.After, d.Observed.Net = &since, c.Net
	}
	switch c.Op {
	case event.Snapshot, event.Created, event.Entered:
		d.After = c.After
	case event.Deleted, event.Left:
		d.Before, d.Managers = c.Before, nil
	case event.Updated, event.Converted:
		d.Changes = make([]event.Change, len(c.Fields))
		for i, f := range c.Fields {
			d.Changes[i] = event.Change{
				Path: f.Path.String(), Op: string(f.Op), From: f.From, To: f.To,
				Manager: f.Manager, Subresource: f.Subresource, Quiet: f.Quiet, Whole: f.Whole,
			}
		}
	}
	at := c.Time
	if at.IsZero() {
		at = c.At
	}
	return event.New(cluster, at, d)
}

// Severity says how bad a change is, by the objects, or as Judge has found.
func (c *Change) Severity() event.Severity {
	switch {
	case c.severity != "":
		return c.severity
	case c.Absence != nil && c.Absence.Incomplete > 0:
		return event.Warning
	case c.Quiet || c.Blind || c.Absence != nil:
		return event.Normal
	}
	kind := c.Resource.Kind
	if c.Resource.Group != "" {
		kind += "." + c.Resource.Group
	}
	return severity.Of(c.Op, kind, c.Before, c.After)
}

// Judge finds the severity while the objects are there: for a change that is handed on without them.
func (c *Change) Judge() { c.severity = c.Severity() }
