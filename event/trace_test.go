package event

import (
	"encoding/hex"
	"strings"
	"testing"
)

// TestTraceParent: the IDs are the bytes of the event's id, so that they can be computed without this package.
func TestTraceParent(t *testing.T) {
	id := ID("prod", "deployments.apps", "u1", "7", Updated, 0, 0)
	trace, err := TraceID(id)
	if err != nil || lower.EncodeToString(trace[:]) != id {
		t.Errorf("%x, %v is not the trace of %s", trace, err, id)
	}
	parent, err := TraceParent(id)
	want := "00-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(trace[:8]) + "-01"
	if err != nil || parent != want || len(parent) != 55 {
		t.Errorf("%s, %v, want %s", parent, err, want)
	}
	for _, id := range []string{"", id + "a", id[1:], strings.ToUpper(id), strings.Repeat("1", 26), "00000000000000000000000000"} {
		if parent, err := TraceParent(id); err == nil || parent != "" || !strings.Contains(err.Error(), "is not the id of an event") {
			t.Errorf("%q: %q, %v", id, parent, err)
		}
	}
}
