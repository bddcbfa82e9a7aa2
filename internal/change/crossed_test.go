package change

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
)

// TestCrossedBy has what several fields and an interval make of the write.
func TestCrossedBy(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	entry := func(manager string, ago time.Duration, labels ...string) any {
		owned := map[string]any{}
		for _, l := range labels {
			owned["f:"+l] = map[string]any{}
		}
		return map[string]any{"manager": manager, "operation": "Update", "time": at.Add(-ago).Format(time.RFC3339),
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": owned}}}
	}
	label := func(name string) diff.Path {
		return diff.Path{{Kind: diff.Field, Name: "metadata"}, {Kind: diff.Field, Name: "labels"}, {Kind: diff.Field, Name: name}}
	}
	for _, tc := range []struct {
		why     string
		since   time.Duration // before at; 0: seen as it happened
		entries []any
		asked   []diff.Path
		manager string
		time    time.Duration // before at
	}{
		{"the newest of two", 0, []any{entry("old", time.Hour, "a"), entry("new", time.Second, "b")}, []diff.Path{label("a"), label("b")}, "new", time.Second},
		{"two at once", 0, []any{entry("x", time.Second, "a"), entry("y", time.Second, "b")}, []diff.Path{label("a"), label("b")}, "?", time.Second},
		{"none is new enough: perhaps a label was removed", 0, []any{entry("old", time.Hour, "a")}, []diff.Path{label("a"), label("c")}, "?", 0},
		{"only this field can have done it", 0, []any{entry("again", time.Hour, "a")}, []diff.Path{label("a")}, "again", 0},
		{"within the interval", time.Hour, []any{entry("x", 20*time.Minute, "a")}, []diff.Path{label("a")}, "x", 20 * time.Minute},
		{"before the interval", time.Hour, []any{entry("x", 2*time.Hour, "a")}, []diff.Path{label("a"), label("b")}, "?", 0},
		{"two own it", 0, []any{entry("x", time.Second, "a"), entry("y", time.Second, "a")}, []diff.Path{label("a")}, "?", 0},
		{"another field was written", 0, []any{entry("x", time.Second, "z")}, []diff.Path{label("a")}, "?", 0},
		{"nothing is asked", 0, []any{entry("x", time.Second, "a")}, nil, "?", 0},
	} {
		c := Change{Meta: Meta{At: at}}
		if tc.since > 0 {
			c.Since = at.Add(-tc.since)
		}
		c.CrossedBy(map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"a": "1", "b": "1", "z": "1"}, "managedFields": tc.entries,
		}}, tc.asked)
		if c.Manager != tc.manager || !c.Time.Equal(at.Add(-tc.time)) {
			t.Errorf("%s: by %s, %v before; want %s, %v", tc.why, c.Manager, at.Sub(c.Time), tc.manager, tc.time)
		}
	}
}
