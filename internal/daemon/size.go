package daemon

import "github.com/tattler-dev/tattler/event"

// decodedGrowth is about how much larger a decoded object is than its JSON, which an event may also hold;
// measured on pods.
const decodedGrowth = 7

// changesSize returns about how many bytes changes keep in memory, including their JSON.
func changesSize(changes []event.Change) int {
	n := 0
	for i := range changes {
		c := &changes[i]
		n += 256 + 2*len(c.Path) + valueSize(c.From) + valueSize(c.To)
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
