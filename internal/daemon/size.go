package daemon

import "github.com/tattler-dev/tattler/internal/change"

// decodedGrowth is about how much larger a decoded object is than its JSON, which an event may also hold;
// measured on pods.
const decodedGrowth = 7

// changesSize returns about how many bytes changed fields keep in memory, including their event and its JSON.
func changesSize(fields []change.FieldChange) int {
	n := eventSize(fields)
	for i := range fields {
		n += 256 + 104*len(fields[i].Path)
	}
	return n
}

// eventSize is changesSize without the fields themselves.
func eventSize(fields []change.FieldChange) int {
	n := 0
	for i := range fields {
		c := &fields[i]
		n += 256 + 16*len(c.Path) + valueSize(c.From) + valueSize(c.To)
	}
	return n
}

// valueSize returns about how many bytes a decoded value and its JSON keep in memory.
func valueSize(v any) int {
	switch v := v.(type) {
	case string:
		return 16 + 2*len(v)
	case map[string]any:
		n := 64
		for name, v := range v {
			n += 48 + 2*len(name) + valueSize(v)
		}
		return n
	case []any:
		n := 32
		for _, v := range v {
			n += 16 + valueSize(v)
		}
		return n
	}
	return 16
}
