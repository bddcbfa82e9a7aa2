package informer

import (
	stdjson "encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// apply returns the transformed object's JSON: raw itself where nothing is to be done.
func (t *Transform) apply(raw []byte) (out []byte, err error) {
	if t == nil || t.Apply == nil {
		return raw, nil
	}
	defer func() {
		if p := recover(); p != nil {
			// Not its text: that may hold what the transform was to hide.
			out, err = nil, fmt.Errorf("transform %s: panic with a %T", t.Name, p)
		}
	}()
	if t.Wants != nil && !t.Wants(raw) {
		return raw, nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("transform %s: decode object: %w", t.Name, err)
	}
	if err := t.Apply(u); err != nil {
		return nil, fmt.Errorf("transform %s: %w", t.Name, err)
	}
	out, err = stdjson.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("transform %s: encode object: %w", t.Name, err)
	}
	return out, nil
}
