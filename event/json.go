package event

import (
	"bytes"
	"encoding/json"
	"time"
)

// stampFormat is of fixed width, so that times sort as text.
const stampFormat = "2006-01-02T15:04:05.000Z"

// stamp is a time of that format.
type stamp time.Time

func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"` + stampFormat + `"`)), nil
}

// MarshalJSON writes the event on one line. Nothing is escaped for HTML unless the caller's encoder
// does so, as json.Marshal does.
func (e Event) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		SpecVersion     string `json:"specversion"`
		Type            string `json:"type"`
		Source          string `json:"source"`
		ID              string `json:"id"`
		Subject         string `json:"subject"`
		Time            stamp  `json:"time"`
		PartitionKey    string `json:"partitionkey,omitempty"`
		DataContentType string `json:"datacontenttype"`
		Data            Data   `json:"data"`
	}{e.SpecVersion, e.Type, e.Source, e.ID, e.Subject, stamp(e.Time), e.PartitionKey, e.DataContentType, e.Data})
}

// MarshalJSON writes the interval; see Event.MarshalJSON.
func (o Observed) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		After *stamp `json:"after,omitempty"`
		At    stamp  `json:"at"`
		Net   bool   `json:"net,omitempty"`
	}{(*stamp)(o.After), stamp(o.At), o.Net})
}

// MarshalJSON writes the change with those of from and to that its operation has.
func (c Change) MarshalJSON() ([]byte, error) {
	w := struct {
		Path        string `json:"path"`
		Op          string `json:"op"`
		From        *any   `json:"from,omitempty"` // a pointer tells null from absent
		To          *any   `json:"to,omitempty"`
		Manager     string `json:"manager"`
		Subresource string `json:"subresource,omitempty"`
		Quiet       bool   `json:"quiet,omitempty"`
		Whole       bool   `json:"whole,omitempty"`
	}{c.Path, c.Op, &c.From, &c.To, c.Manager, c.Subresource, c.Quiet, c.Whole}
	switch c.Op {
	case "add":
		w.From = nil
	case "remove":
		w.To = nil
	}
	return marshal(w)
}

// MarshalJSON writes the operation, with the value that it has.
func (o Operation) MarshalJSON() ([]byte, error) {
	w := struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value *any   `json:"value,omitempty"` // a pointer tells null from absent
	}{o.Op, o.Path, &o.Value}
	if o.Op == "remove" {
		w.Value = nil
	}
	return marshal(w)
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
