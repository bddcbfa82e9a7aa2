package deliver

import (
	"fmt"
	"slices"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// message builds the sink's message of an item: the event with the included parts, within limit bytes (0: no
// limit). It shares the item's objects and does not write to them.
func (o *Options) message(item Item, limit int) (sink.Message, error) {
	whole := item.Event()
	e := *whole
	o.shape(&e.Data, item.Base)
	write := e.MarshalJSON
	if item.JSON != nil && sameObjects(&e.Data, &whole.Data) {
		write = item.JSON
	}
	body, err := write()
	if err != nil {
		return sink.Message{}, fmt.Errorf("write event: %w", err)
	}
	if limit > 0 && len(body) > limit {
		if body, err = truncate(&e, limit); err != nil {
			return sink.Message{}, fmt.Errorf("write event: %w", err)
		}
	}
	key := e.PartitionKey
	if key == "" { // a gap, or an object of client-go's fakes
		key = e.Subject
	}
	m := sink.Message{ID: e.ID, Key: key, Body: body, Event: &e}
	if o.shows() {
		m.Text = item.Text
	}
	if o.narrates() {
		m.Story = item.Story
	}
	return m, nil
}

// sameObjects reports whether shape neither removed nor added anything.
func sameObjects(shaped, d *event.Data) bool {
	return (shaped.Before == nil) == (d.Before == nil) && (shaped.After == nil) == (d.After == nil) && shaped.Patch == nil
}

// shape keeps the objects that belong to the operation and, for an update, those that are included. base is Item.Base.
func (o *Options) shape(d *event.Data, base map[string]any) {
	before, after := d.Before, d.After
	if base == nil {
		base = before
	}
	d.Before, d.After, d.Patch = nil, nil, nil
	switch d.Op {
	case event.Snapshot, event.Created, event.Entered:
		d.After = after
	case event.Deleted, event.Left:
		d.Before = before
	case event.Updated, event.Converted:
		if slices.Contains(o.Include, Before) {
			d.Before = before
		}
		if slices.Contains(o.Include, After) {
			d.After = after
		}
		if slices.Contains(o.Include, Patch) && base != nil && after != nil {
			d.Patch = append(versionTest(base), patch(base, after)...)
		}
	}
}

// truncate removes parts of an event that exceeds the limit: first the objects and the patch, then the managers
// and those changes that do not fit, in order. The object's names always stay.
func truncate(e *event.Event, limit int) ([]byte, error) {
	d := &e.Data
	d.Before, d.After, d.Patch, d.Truncated = nil, nil, nil, true
	body, err := e.MarshalJSON()
	if err != nil || len(body) <= limit {
		return body, err
	}
	changes := d.Changes
	d.Changes, d.Managers = nil, nil
	if body, err = e.MarshalJSON(); err != nil {
		return nil, err
	}
	room := limit - len(body) - len(`"changes":[],`)
	for _, c := range changes {
		text, err := c.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if len(text)+1 <= room { // with its comma
			room -= len(text) + 1
			d.Changes = append(d.Changes, c)
		}
	}
	return e.MarshalJSON()
}
