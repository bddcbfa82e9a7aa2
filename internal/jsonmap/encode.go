package jsonmap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Encode encodes an object like encoding/json, several times faster if its values are of the types that Decode makes. A
// json.RawMessage is written unchanged.
func Encode(m map[string]any) ([]byte, error) {
	var e encoder
	e.object(m)
	if e.err != nil {
		return nil, fmt.Errorf("encode object: %w", e.err)
	}
	return e.out, nil
}

type encoder struct {
	out  []byte
	keys []string // of the objects being written
	err  error
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case string:
		e.text(v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case map[string]any:
		e.object(v)
	case []any:
		e.array(v)
	case json.RawMessage:
		e.out = append(e.out, v...)
	default:
		e.general(v)
	}
}

// general encodes values of other types.
func (e *encoder) general(v any) {
	b, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.out = append(e.out, b...)
}

func (e *encoder) object(m map[string]any) {
	if m == nil {
		e.out = append(e.out, "null"...)
		return
	}
	from := len(e.keys)
	for k := range m {
		e.keys = append(e.keys, k)
	}
	keys := e.keys[from:]
	slices.Sort(keys)
	e.out = append(e.out, '{')
	for i, k := range keys {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.text(k)
		e.out = append(e.out, ':')
		e.value(m[k])
	}
	e.out = append(e.out, '}')
	e.keys = e.keys[:from]
}

func (e *encoder) array(list []any) {
	if list == nil {
		e.out = append(e.out, "null"...)
		return
	}
	e.out = append(e.out, '[')
	for i, v := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.value(v)
	}
	e.out = append(e.out, ']')
}

func (e *encoder) text(s string) {
	for i := range len(s) {
		if !plain[s[i]] {
			e.general(s)
			return
		}
	}
	e.out = append(e.out, '"')
	e.out = append(e.out, s...)
	e.out = append(e.out, '"')
}

// plain marks the bytes that encoding/json does not escape in a string.
var plain = func() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = true
	}
	for _, c := range []byte(`"\<>&`) {
		t[c] = false
	}
	return t
}()
