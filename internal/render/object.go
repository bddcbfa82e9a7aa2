package render

import "time"

// get returns the value at a path of map keys, or nil.
func get(obj map[string]any, path ...string) any {
	var v any = obj
	for _, p := range path {
		m, _ := v.(map[string]any)
		if m == nil {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(obj map[string]any, path ...string) string {
	s, _ := get(obj, path...).(string)
	return s
}

func list(obj map[string]any, path ...string) []any {
	l, _ := get(obj, path...).([]any)
	return l
}

func fields(obj map[string]any, path ...string) map[string]any {
	m, _ := get(obj, path...).(map[string]any)
	return m
}

// number reads an integer; JSON decoders give int64 or float64.
func number(obj map[string]any, path ...string) (int64, bool) {
	switch n := get(obj, path...).(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// count reads an integer, and 0 if it is absent, as in the counters of a status.
func count(obj map[string]any, path ...string) int64 {
	n, _ := number(obj, path...)
	return n
}

// when reads a time, with or without fractions of a second (metav1.MicroTime); zero if it is absent.
func when(obj map[string]any, path ...string) time.Time {
	at, err := time.Parse(time.RFC3339, text(obj, path...))
	if err != nil {
		return time.Time{}
	}
	return at
}

func createdAt(obj map[string]any) time.Time { return when(obj, "metadata", "creationTimestamp") }

func terminating(obj map[string]any) bool { return text(obj, "metadata", "deletionTimestamp") != "" }

// condition is an entry of status.conditions, as most kinds have them.
type condition struct {
	kind, status, reason, message string
	since, updated                time.Time // of the status, and of the reason
}

func conditions(obj map[string]any) []condition {
	var out []condition
	for _, e := range list(obj, "status", "conditions") {
		m, _ := e.(map[string]any)
		out = append(out, condition{
			text(m, "type"), text(m, "status"), text(m, "reason"), text(m, "message"), when(m, "lastTransitionTime"), when(m, "lastUpdateTime"),
		})
	}
	return out
}

func conditionOf(obj map[string]any, kind string) condition {
	for _, c := range conditions(obj) {
		if c.kind == kind {
			return c
		}
	}
	return condition{}
}

// stale reports whether the controller has not yet seen an object's last change.
func stale(obj map[string]any) bool {
	want, ok := number(obj, "metadata", "generation")
	seen, reports := number(obj, "status", "observedGeneration")
	return ok && reports && seen < want
}
