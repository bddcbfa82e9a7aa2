package severity

import (
	"time"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// number reads an integer; 0 if it is absent.
func number(obj object, path ...string) int64 {
	n, _ := jsonmap.Integer(obj, path...)
	return n
}

type condition struct {
	status, reason string
	since          time.Time
}

func conditionOf(obj object, kind string) condition {
	for _, e := range jsonmap.List(obj, "status", "conditions") {
		if m, _ := e.(object); jsonmap.Text(m, "type") == kind {
			return condition{jsonmap.Text(m, "status"), jsonmap.Text(m, "reason"), jsonmap.Time(m, "lastTransitionTime")}
		}
	}
	return condition{}
}
