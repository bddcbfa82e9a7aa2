package capture

import (
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// hidden returns an object's JSON with its secret values redacted, or raw itself.
func hidden(r *redact.Redactor, resource string, raw []byte) ([]byte, error) {
	if !r.Wants(resource, raw) {
		return raw, nil
	}
	var obj map[string]any
	var all bool
	var err error
	if r.Ruled(resource) { // a rule's fields may be anywhere
		obj, err = jsonmap.Decode(raw)
	} else {
		obj, all, err = jsonmap.DecodeObject(raw)
	}
	if err != nil {
		return nil, err
	}
	hid, err := r.Apply(resource, obj)
	if err != nil {
		return nil, err
	}
	if !hid && all { // otherwise raw has values that were not checked
		return raw, nil
	}
	return jsonmap.Encode(obj)
}
