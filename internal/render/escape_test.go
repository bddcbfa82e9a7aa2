package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// hostile are characters that control a terminal, and some that do not.
const (
	hostile  = "\u009b31m \u0080 \u009f \u007f \u202e \u202a \u2066 \u2069 \u200e \u200f \u061c \u200b \ufeff \u00ad \u2028 \u2029 \U000e0041 \x1b[31m \t \n"
	harmless = "ü 漢 😀 \u00a0 e\u0301 \ufffd \"\\ <&>"
)

// raw returns the characters in a text that control a terminal, except line ends.
func raw(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && !strings.ContainsRune(hostile, r) || r == ' ' || strings.ContainsRune("31m[", r) {
			return -1
		}
		return r
	}, text)
}

// TestEventsAreEscaped: no value of an object controls a terminal, and every value stays the same.
func TestEventsAreEscaped(t *testing.T) {
	read := map[string]func([]byte, any) error{
		JSON: json.Unmarshal, YAML: func(b []byte, v any) error { return yaml.Unmarshal(b, v) },
	}
	for format, unmarshal := range read {
		for _, value := range []string{hostile, harmless} {
			var out strings.Builder
			e, err := NewEvents(EventsOptions{Out: &out, Format: format, Cluster: "c"})
			if err != nil {
				t.Fatal(err)
			}
			c := change.Change{Meta: change.Meta{Op: event.Created, At: time.Unix(0, 0)}, After: map[string]any{"data": map[string]any{"k" + value: value}}}
			if err := e.Change(c); err != nil {
				t.Fatal(err)
			}
			if got := raw(out.String()); got != "" {
				t.Errorf("%s: %q in\n%q", format, got, out.String())
			}
			var back event.Event
			if err := unmarshal([]byte(out.String()), &back); err != nil {
				t.Fatalf("%s: %v\n%s", format, err, out.String())
			}
			if d := cmp.Diff(c.After, back.Data.After); d != "" {
				t.Errorf("%s: (-want +got):\n%s", format, d)
			}
			if value == harmless && format == JSON && !strings.Contains(out.String(), "ü 漢 😀 \u00a0 e\u0301 \ufffd") {
				t.Errorf("what is harmless is escaped: %s", out.String())
			}
		}
	}
}

func TestWriteJSON(t *testing.T) {
	var out strings.Builder
	if err := WriteJSON(&out, map[string]any{"a": hostile, "b": json.RawMessage("\"\x9b31m\"")}); err != nil {
		t.Fatal(err)
	}
	if got := raw(out.String()); got != "" || strings.ContainsRune(out.String(), '\x9b') {
		t.Errorf("%q in %q", got, out.String())
	}
	var back struct{ A, B string }
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back.A != hostile || back.B != "\ufffd31m" {
		t.Errorf("%v, %+v", err, back)
	}
}
