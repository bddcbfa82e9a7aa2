package render

import (
	"time"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// count reads an integer, and 0 if it is absent, as in the counters of a status.
func count(obj map[string]any, path ...string) int64 {
	n, _ := jsonmap.Integer(obj, path...)
	return n
}

func createdAt(obj map[string]any) time.Time {
	return jsonmap.Time(obj, "metadata", "creationTimestamp")
}

func terminating(obj map[string]any) bool {
	return jsonmap.Text(obj, "metadata", "deletionTimestamp") != ""
}

// condition is an entry of status.conditions, as most kinds have them.
type condition struct {
	kind, status, reason, message string
	since, updated                time.Time // of the status, and of the reason
}

func conditions(obj map[string]any) []condition {
	var out []condition
	for _, e := range jsonmap.List(obj, "status", "conditions") {
		m, _ := e.(map[string]any)
		out = append(out, condition{
			jsonmap.Text(m, "type"), jsonmap.Text(m, "status"), jsonmap.Text(m, "reason"), jsonmap.Text(m, "message"), jsonmap.Time(m, "lastTransitionTime"), jsonmap.Time(m, "lastUpdateTime"),
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
	want, ok := jsonmap.Integer(obj, "metadata", "generation")
	seen, reports := jsonmap.Integer(obj, "status", "observedGeneration")
	return ok && reports && seen < want
}
