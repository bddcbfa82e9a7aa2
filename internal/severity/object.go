package severity

import "time"

func get(obj object, path ...string) any {
	var v any = obj
	for _, p := range path {
		m, _ := v.(object)
		if m == nil {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(obj object, path ...string) string {
	s, _ := get(obj, path...).(string)
	return s
}

func list(obj object, path ...string) []any {
	l, _ := get(obj, path...).([]any)
	return l
}

func fields(obj object, path ...string) object {
	m, _ := get(obj, path...).(object)
	return m
}

// number reads an integer, which JSON decoders return as int64 or float64; 0 if absent.
func number(obj object, path ...string) int64 {
	switch n := get(obj, path...).(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func when(obj object, path ...string) time.Time {
	at, err := time.Parse(time.RFC3339, text(obj, path...))
	if err != nil {
		return time.Time{}
	}
	return at
}

type condition struct {
	status, reason string
	since          time.Time
}

func conditionOf(obj object, kind string) condition {
	for _, e := range list(obj, "status", "conditions") {
		if m, _ := e.(object); text(m, "type") == kind {
			return condition{text(m, "status"), text(m, "reason"), when(m, "lastTransitionTime")}
		}
	}
	return condition{}
}
