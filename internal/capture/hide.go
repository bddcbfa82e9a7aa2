package capture

import (
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Redaction is a Transform. It runs on the decoded object before the engine compares or stores it, so neither memory
// nor a diff ever holds a value. A cheap look at the bytes (Wants) spares many objects the decoding. An object in
// which nothing is hidden keeps the server's bytes, unless a key occurs twice in it, of which only the last was
// inspected. The hash is keyed with a random key per process and bound to object and path: it shows that a value
// changed, not that two objects share it.

// Hidden returns the JSON of an object of a group-resource with its secret values redacted, or raw itself.
func Hidden(r *redact.Redactor, resource string, raw []byte) ([]byte, error) {
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
