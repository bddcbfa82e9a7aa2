package jsonmap

import "time"

// Get returns the value at a path of keys; nil if there is none.
func Get(m map[string]any, path ...string) any {
	var v any = m
	for _, key := range path {
		m, _ := v.(map[string]any)
		if m == nil {
			return nil
		}
		v = m[key]
	}
	return v
}

// Text returns the string at a path of keys; empty if there is none.
func Text(m map[string]any, path ...string) string {
	s, _ := Get(m, path...).(string)
	return s
}

// List returns the list at a path of keys; nil if there is none.
func List(m map[string]any, path ...string) []any {
	l, _ := Get(m, path...).([]any)
	return l
}

// Object returns the object at a path of keys; nil if there is none.
func Object(m map[string]any, path ...string) map[string]any {
	o, _ := Get(m, path...).(map[string]any)
	return o
}

// Integer returns the number at a path of keys, without a fraction; false if there is none. Decoders make int64 or
// float64.
func Integer(m map[string]any, path ...string) (int64, bool) {
	switch n := Get(m, path...).(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// Time returns the time at a path of keys, with or without fractions of a second (metav1.MicroTime); zero if there is
// none.
func Time(m map[string]any, path ...string) time.Time {
	at, err := time.Parse(time.RFC3339, Text(m, path...))
	if err != nil {
		return time.Time{}
	}
	return at
}
