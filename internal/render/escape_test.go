package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
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

// TestIndented: the text is that of encoding/json, but does not grow with the square of the depth.
func TestIndented(t *testing.T) {
	deep := any([]any{1, 2, 3})
	for range 100 {
		deep = map[string]any{"a": deep, "b": []any{}}
	}
	far := any(slices.Repeat([]any{1}, 1000))
	for range 2000 {
		far = []any{far}
	}
	for _, tc := range []struct {
		why  string
		v    any
		most int // the length, for a value whose text is another one
	}{
		{"scalars", map[string]any{"s": `a "quoted" \\ {text}, [with]: marks\n`, "n": 1.5, "t": true, "null": nil}, 0},
		{"empty values", map[string]any{"m": map[string]any{}, "l": []any{}, "s": "", "in": []any{[]any{}, map[string]any{}}}, 0},
		{"nested", []any{map[string]any{"a": []any{1, map[string]any{"b": "c"}}}}, 0},
		{"a text alone", "x", 0},
		{"raw JSON", json.RawMessage(`{ "a" : [ 1 , { } ] }`), 0},
		{"deep", deep, 20_000},
		{"many values far down", far, 20_000},
	} {
		var got, want bytes.Buffer
		if err := WriteJSON(&got, tc.v); err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(&want)
		enc.SetIndent("", "  ")
		if err := enc.Encode(tc.v); err != nil {
			t.Fatal(err)
		}
		if tc.most == 0 {
			if got.String() != want.String() {
				t.Errorf("%s: %s, want %s", tc.why, got.String(), want.String())
			}
			continue
		}
		if got.Len() > tc.most || want.Len() < tc.most {
			t.Errorf("%s: %d bytes of at most %d; encoding/json makes %d", tc.why, got.Len(), tc.most, want.Len())
		}
		var compact, same bytes.Buffer
		if err := errors.Join(json.Compact(&compact, got.Bytes()), json.Compact(&same, want.Bytes())); err != nil || !bytes.Equal(compact.Bytes(), same.Bytes()) {
			t.Errorf("%s: the value is another one: %v", tc.why, err)
		}
	}
}
