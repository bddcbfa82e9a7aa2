package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/internal/change"
)

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
	// Noise includes quiet fields, updates that have no others, and conversions.
	Noise bool
}

// Events writes changes for programs, without characters that control a terminal. It is not safe for concurrent use.
type Events struct {
	o     EventsOptions
	quiet int
}

// NewEvents returns an Events. It fails for an unknown format.
func NewEvents(o EventsOptions) (*Events, error) {
	if o.Format != JSON && o.Format != YAML {
		return nil, fmt.Errorf("unknown format %q: use %s or %s", o.Format, JSON, YAML)
	}
	return &Events{o: o}, nil
}

// Quiet returns the number of quiet changes that were left out.
func (e *Events) Quiet() int { return e.quiet }

// Change writes one change, in one write. It returns errors of Out unchanged.
func (e *Events) Change(c change.Change) error {
	if c.Quiet && !e.o.Noise {
		e.quiet++
		return nil
	}
	if !e.o.Noise {
		c.Fields = listedFields(c.Fields)
	}
	line, err := encode(change.Event(e.o.Cluster, &c))
	if err != nil {
		return fmt.Errorf("encode event of %s/%s: %w", c.Kind.Resource, c.Name, err)
	}
	return e.print(line)
}

// print writes an encoded event in the format, in one write.
func (e *Events) print(line []byte) error {
	if e.o.Format == YAML {
		doc, err := toYAML(line)
		if err != nil {
			return fmt.Errorf("encode event as YAML: %w", err)
		}
		line = append([]byte("---\n"), doc...)
	} else {
		line = escapeJSON(line)
	}
	_, err := e.o.Out.Write(line)
	return err
}

// toYAML makes YAML of an event. The library does not escape characters that control a terminal, so an event with such
// characters stays in JSON syntax.
func toYAML(line []byte) ([]byte, error) {
	if hasControls(line) {
		return escapeYAML(line), nil
	}
	return yaml.JSONToYAML(line)
}

// listedFields returns the fields that no quiet rule matches.
func listedFields(fields []change.FieldChange) []change.FieldChange {
	var out []change.FieldChange
	for _, f := range fields {
		if !f.Quiet {
			out = append(out, f)
		}
	}
	return out
}

// encode returns an event on one line, without HTML escapes.
func encode(e any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}
