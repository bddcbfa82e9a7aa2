package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
)

// Event makes the public form of a change in the named cluster. It is lean: what was created, entered
// or seen at the start comes whole, so does the last known object of what was deleted or left, and an
// update comes as its changes, quiet ones included and marked. It shares the change's objects.
func Event(cluster string, c capture.Change) event.Event {
	d := event.Data{
		Op: c.Op,
		Resource: event.Resource{
			Group: c.Resource.Group, Version: c.Resource.Version, Resource: c.Resource.Resource, Kind: c.Resource.Kind,
			Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Owner: c.Owner,
		},
		Managers: c.Managers,
		Observed: event.Observed{At: c.At},
		Gap:      c.Gap,
		Quiet:    c.Quiet,
	}
	if !c.Since.IsZero() {
		since := c.Since
		d.Observed.After = &since
	}
	switch c.Op {
	case event.Snapshot, event.Created, event.Entered:
		d.After = c.After
	case event.Deleted, event.Left:
		d.Before, d.Managers = c.Before, nil
	case event.Updated:
		d.Changes = make([]event.Change, len(c.Fields))
		for i, f := range c.Fields {
			d.Changes[i] = event.Change{
				Path: f.Path.String(), Op: string(f.Op), From: f.From, To: f.To,
				Manager: f.Manager, Subresource: f.Subresource, Quiet: f.Quiet,
			}
		}
	}
	at := c.Time
	if at.IsZero() {
		at = c.At
	}
	return event.New(cluster, at, d)
}

// The formats of Events.
const (
	JSON = "json"
	YAML = "yaml"
)

// EventsOptions tune Events.
type EventsOptions struct {
	Out io.Writer
	// Format is JSON (one event per line) or YAML (documents that begin with ---).
	Format string
	// Cluster names the events' source.
	Cluster string
	// Noise includes quiet fields, and updates that have no others.
	Noise bool
}

// Events writes changes for programs. It is used by one goroutine.
type Events struct {
	o     EventsOptions
	quiet int
}

// NewEvents makes an Events. The error tells an unknown format.
func NewEvents(o EventsOptions) (*Events, error) {
	if o.Format != JSON && o.Format != YAML {
		return nil, fmt.Errorf("unknown format %q: use %s or %s", o.Format, JSON, YAML)
	}
	return &Events{o: o}, nil
}

// Quiet returns how many updates were left out because every field of theirs is quiet.
func (e *Events) Quiet() int { return e.quiet }

// Change writes one change, in one write. An error of Out is returned as it is.
func (e *Events) Change(c capture.Change) error {
	if c.Quiet && !e.o.Noise {
		e.quiet++
		return nil
	}
	if !e.o.Noise {
		c.Fields = loud(c.Fields)
	}
	line, err := encode(Event(e.o.Cluster, c))
	if err != nil {
		return fmt.Errorf("encode event of %s/%s: %w", c.Resource.Resource, c.Name, err)
	}
	if e.o.Format == YAML {
		doc, err := yaml.JSONToYAML(line)
		if err != nil {
			return fmt.Errorf("encode event of %s/%s: %w", c.Resource.Resource, c.Name, err)
		}
		line = append([]byte("---\n"), doc...)
	}
	_, err = e.o.Out.Write(line)
	return err
}

// loud are the fields that no quiet rule names.
func loud(fields []capture.FieldChange) []capture.FieldChange {
	var out []capture.FieldChange
	for _, f := range fields {
		if !f.Quiet {
			out = append(out, f)
		}
	}
	return out
}

// encode writes an event on one line, without escapes for HTML.
func encode(e event.Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}
