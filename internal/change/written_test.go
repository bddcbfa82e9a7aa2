package change

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// TestWritten: an update happened when its manager's entry says, if the entry is of this write. Then it may be old: an
// update can be seen late without a sign.
func TestWritten(t *testing.T) {
	set, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return at.Add(-time.Duration(seconds) * time.Second) }
	object := func(data string, entries ...any) map[string]any {
		return map[string]any{"data": map[string]any{"k": data}, "metadata": map[string]any{"managedFields": entries}}
	}
	entry := func(manager string, written time.Time) any {
		return map[string]any{
			"manager": manager, "operation": "Update", "time": written.Format(time.RFC3339), "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:data": map[string]any{"f:k": map[string]any{}}},
		}
	}
	without := func(manager string, written time.Time) any {
		e := entry(manager, written).(map[string]any)
		e["fieldsV1"] = map[string]any{"f:metadata": map[string]any{}}
		return e
	}
	for _, tc := range []struct {
		name   string
		before any // the entry before; nil: managed fields are unknown
		after  any
		since  time.Time
		want   time.Time
	}{
		{"seen as it happened", entry("kubectl", ago(600)), entry("kubectl", ago(1)), time.Time{}, ago(1)},
		{"seen late", entry("kubectl", ago(600)), entry("kubectl", ago(90)), time.Time{}, ago(90)},
		{"seen late, by another manager", entry("kubectl", ago(600)), entry("helm", ago(90)), time.Time{}, ago(90)},
		{"in the same second as the write before", entry("kubectl", ago(90)), entry("helm", ago(90)), time.Time{}, ago(90)},
		{"the entry is of an earlier write", entry("kubectl", ago(90)), entry("kubectl", ago(90)), time.Time{}, at},
		{"by a clock that is ahead", entry("kubectl", ago(90)), entry("kubectl", ago(-60)), time.Time{}, at},
		{"the entries before are unknown", nil, entry("kubectl", ago(90)), time.Time{}, at},
		{"in a known interval", entry("kubectl", ago(600)), entry("kubectl", ago(90)), ago(100), ago(90)},
		{"a field was removed", entry("kubectl", ago(600)), without("kubectl", ago(90)), time.Time{}, ago(90)},
		{"a field was removed in a known interval", entry("kubectl", ago(600)), without("kubectl", ago(90)), ago(100), ago(90)},
		{"a field was removed, and no entry moved", entry("kubectl", ago(90)), without("kubectl", ago(90)), time.Time{}, at},
		{"a field was removed, and the entries before are unknown", nil, without("kubectl", ago(90)), time.Time{}, at},
		{"not in a known interval", entry("kubectl", ago(600)), entry("kubectl", ago(90)), ago(30), at},
	} {
		before := object("1")
		if tc.before != nil {
			before = object("1", tc.before)
		}
		after := object("2", tc.after)
		if strings.HasPrefix(tc.name, "a field was removed") {
			delete(after, "data")
		}
		c := Change{Meta: Meta{Op: event.Updated, At: at, Since: tc.since}}
		(&Builder{Quiet: set}).Build(&c, before, after, nil)
		if !c.Time.Equal(tc.want) {
			t.Errorf("%s: it was written at %v, want %v", tc.name, c.Time, tc.want)
		}
	}
}
