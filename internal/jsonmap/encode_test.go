package jsonmap

import (
	"encoding/json"
	"math"
	"testing"
)

// sameText compares both encoders.
func sameText(t *testing.T, m map[string]any) {
	t.Helper()
	want, wantErr := json.Marshal(m)
	got, err := Encode(m)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%.200v: %v, want %v", m, err, wantErr)
	}
	if wantErr == nil && string(got) != string(want) {
		t.Fatalf("%.200v:\n got %s\nwant %s", m, got, want)
	}
}

func TestEncode(t *testing.T) {
	for _, raw := range append(seeds[:len(seeds)-2:len(seeds)-2], string(large)) {
		if m, err := Decode([]byte(raw)); err == nil {
			sameText(t, m)
		}
	}
	for why, m := range map[string]map[string]any{
		"characters special in HTML and JavaScript": {"<a>&": "a\u2028b<c>&'\x7f"},
		"invalid UTF-8":                       {"a\xff": "\xc3("},
		"control characters":                  {"a": "\x00\x1f\t\r\n\b\f"},
		"numbers of every size":               {"a": int64(math.MinInt64), "b": 1e21, "c": 1e-7, "d": 0.1, "e": int64(0), "f": -1.0},
		"null instead of a list or an object": {"a": []any(nil), "b": map[string]any(nil), "c": nil, "d": []any{nil}},
		"values of other types":               {"a": []string{"b"}, "c": 1, "d": json.Number("2"), "e": true},
		"values that JSON cannot hold":        {"a": math.NaN(), "b": []any{math.Inf(1)}},
		"nil":                                 nil,
	} {
		t.Log(why)
		sameText(t, m)
	}
}

func FuzzEncode(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := Decode(raw); err == nil {
			sameText(t, m)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	m, err := Decode(large)
	if err != nil {
		b.Fatal(err)
	}
	for name, encode := range map[string]func() ([]byte, error){
		"this":  func() ([]byte, error) { return Encode(m) },
		"other": func() ([]byte, error) { return json.Marshal(m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(large)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
