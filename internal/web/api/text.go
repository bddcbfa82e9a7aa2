package api

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Text is an object's JSON. Bytes that are no JSON object, which a damaged journal may have, are a string in base64, so that
// one of them does not spoil an answer.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if bytes.HasPrefix(t, []byte("{")) && json.Valid(t) {
		return t, nil
	}
	b, err := json.Marshal([]byte(t))
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return b, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("{")) {
		*t = bytes.Clone(b)
		return nil
	}
	var raw []byte
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	*t = raw
	return nil
}
