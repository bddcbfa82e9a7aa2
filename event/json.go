package event

import (
	"bytes"
	"encoding/json"
	"time"
)

// stampFormat has a fixed width, so that times sort as text.
const stampFormat = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampFormat) }

// The JSON forms of the types. They are encoded in one pass: the output of a nested MarshalJSON would be parsed and copied at
// every level.
type (
	eventJSON struct {
		SpecVersion     string   `json:"specversion"`
		Type            string   `json:"type"`
		Source          string   `json:"source"`
		ID              string   `json:"id"`
		Subject         string   `json:"subject"`
		Time            string   `json:"time"`
		PartitionKey    string   `json:"partitionkey,omitempty"`
		DataContentType string   `json:"datacontenttype"`
		Data            dataJSON `json:"data"`
	}
	dataJSON struct {
		Op          Op              `json:"op"`
		Resource    Resource        `json:"resource"`
		Changes     []changeJSON    `json:"changes,omitempty"`
		Patch       []operationJSON `json:"patch,omitempty"`
		Managers    []Manager       `json:"managers,omitempty"`
		Before      map[string]any  `json:"before,omitempty"`
		After       map[string]any  `json:"after,omitempty"`
		Severity    Severity        `json:"severity"`
		Observed    observedJSON    `json:"observed"`
		Gap         *GapInfo        `json:"gap,omitempty"`
		Absence     *Absence        `json:"absence,omitempty"`
		Epoch       int64           `json:"epoch,omitempty"`
		Quiet       bool            `json:"quiet,omitempty"`
		Form        uint64          `json:"-"`
		Unkeyed     bool            `json:"unkeyed,omitempty"`
		Truncated   bool            `json:"truncated,omitempty"`
		FilterError string          `json:"filterError,omitempty"`
	}
	observedJSON struct {
		After string `json:"after,omitempty"`
		At    string `json:"at"`
		Net   bool   `json:"net,omitempty"`
	}
	changeJSON struct {
		Path        string `json:"path"`
		Op          string `json:"op"`
		From        *any   `json:"from,omitempty"` // a pointer distinguishes null from absence
		To          *any   `json:"to,omitempty"`
		Manager     string `json:"manager"`
		Subresource string `json:"subresource,omitempty"`
		Quiet       bool   `json:"quiet,omitempty"`
		Whole       bool   `json:"whole,omitempty"`
	}
	operationJSON struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value *any   `json:"value,omitempty"` // a pointer distinguishes null from absence
	}
)

// MarshalJSON encodes the event on one line. It escapes nothing for HTML, but the caller's encoder may, as json.Marshal
// does.
func (e Event) MarshalJSON() ([]byte, error) {
	return marshal(eventJSON{
		e.SpecVersion, e.Type, e.Source, e.ID, e.Subject, stamp(e.Time), e.PartitionKey, e.DataContentType, e.Data.json(),
	})
}

func (d *Data) json() dataJSON {
	w := dataJSON{
		Op: d.Op, Resource: d.Resource, Managers: d.Managers, Before: d.Before, After: d.After, Severity: d.Severity, Observed: d.Observed.json(),
		Gap: d.Gap, Absence: d.Absence, Epoch: d.Epoch, Quiet: d.Quiet, Unkeyed: d.Unkeyed, Truncated: d.Truncated, FilterError: d.FilterError,
	}
	if len(d.Changes) > 0 {
		w.Changes = make([]changeJSON, len(d.Changes))
		for i := range d.Changes {
			w.Changes[i] = d.Changes[i].json()
		}
	}
	if len(d.Patch) > 0 {
		w.Patch = make([]operationJSON, len(d.Patch))
		for i := range d.Patch {
			w.Patch[i] = d.Patch[i].json()
		}
	}
	return w
}

// MarshalJSON encodes the interval; see Event.MarshalJSON.
func (o Observed) MarshalJSON() ([]byte, error) { return marshal(o.json()) }

func (o *Observed) json() observedJSON {
	w := observedJSON{At: stamp(o.At), Net: o.Net}
	if o.After != nil {
		w.After = stamp(*o.After)
	}
	return w
}

// MarshalJSON encodes the change with from and to as its operation has them.
func (c Change) MarshalJSON() ([]byte, error) { return marshal(c.json()) }

func (c *Change) json() changeJSON {
	w := changeJSON{c.Path, c.Op, &c.From, &c.To, c.Manager, c.Subresource, c.Quiet, c.Whole}
	switch c.Op {
	case "add":
		w.From = nil
	case "remove":
		w.To = nil
	}
	return w
}

// MarshalJSON encodes the operation, with its value if it has one.
func (o Operation) MarshalJSON() ([]byte, error) { return marshal(o.json()) }

func (o *Operation) json() operationJSON {
	w := operationJSON{o.Op, o.Path, &o.Value}
	if o.Op == "remove" {
		w.Value = nil
	}
	return w
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
