// Package reconstruct infers recent writes from what the objects of a cluster still record.
//
// Each entry names the field that proves it. An entry states only what that field proves: a value that is not recorded is
// absent, and a time that is not known is an interval. What cannot be seen: deletions, values before a write, removed
// fields, the earlier writes of a manager, and writes that leave no time, such as through the scale subresource.
//
// The functions are pure: they make no requests, and the objects that they receive must be redacted already.
package reconstruct

import (
	"encoding/json"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/managers"
)

// Entry is one reconstructed write or fact.
type Entry struct {
	// Time is when it happened, in whole seconds, rounded down. If Since is set, it happened at or after Since and not
	// after the second of Time.
	Time, Since time.Time
	// Kind is the kind of Data.Resource.
	Kind change.Resource
	// Fields are the fields that a manager owns (event.FactWritten, event.FactCreated), or the differences of two templates
	// (event.FactRollout). They may not be modified.
	Fields []diff.Change
	// Data holds the rest; its Owns and Changes are empty until Event.
	Data event.Reconstruction
	// AtCreation is set for a write in the second of the creation of its object.
	AtCreation bool
	// Quiet is set if a manager owns only quiet fields.
	Quiet bool
}

const (
	// maxFields bounds the fields of an entry.
	maxFields = 50
	// maxValue is the size in bytes above which the value of an owned field is left out, and maxValues that of all values of
	// an entry.
	maxValue, maxValues = 1 << 10, 8 << 10
)

// Event returns the entry's public form.
func (e *Entry) Event(cluster string) event.Reconstructed {
	d := e.Data
	if !e.Since.IsZero() {
		since := e.Since.UTC()
		d.After = &since
	}
	for _, f := range e.Fields {
		if d.Fact == event.FactRollout {
			d.Changes = append(d.Changes, event.Change{Path: f.Path.String(), Op: string(f.Op), From: f.From, To: f.To, Manager: managers.Unknown})
			continue
		}
		d.Owns = append(d.Owns, event.OwnedField{Path: f.Path.String(), Value: f.To})
	}
	return event.NewReconstructed(cluster, e.Time.UTC(), d)
}

// boundValues drops long values of owned fields, so that an entry stays small.
func boundValues(fields []diff.Change) {
	total := 0
	for i := range fields {
		size := 0
		if s, ok := fields[i].To.(string); ok {
			size = len(s)
		} else if text, err := json.Marshal(fields[i].To); err == nil {
			size = len(text)
		}
		if total += size; size > maxValue || total > maxValues {
			fields[i].To = nil
			total -= size
		}
	}
}

// resourceOf names an object.
func resourceOf(r change.Resource, obj map[string]any) event.Resource {
	meta := change.Metadata(obj)
	return event.Resource{
		Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind,
		Namespace: jsonmap.Text(meta, "namespace"), Name: jsonmap.Text(meta, "name"), UID: jsonmap.Text(meta, "uid"),
		ResourceVersion: jsonmap.Text(meta, "resourceVersion"), Owner: change.Controller(obj),
	}
}

// number returns the integer at a path of fields; 0 if there is none.
func number(obj map[string]any, path ...string) int64 {
	n, _ := jsonmap.Integer(obj, path...)
	return n
}

// moment returns the time at a path of fields, in whole seconds; the zero time if there is none.
func moment(obj map[string]any, path ...string) time.Time {
	return jsonmap.Time(obj, path...).UTC().Truncate(time.Second)
}

// maps returns the objects in the list at a path of fields.
func maps(obj map[string]any, path ...string) (all []map[string]any) {
	for _, v := range jsonmap.List(obj, path...) {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
