package redact

import (
	"strings"
	"testing"
)

// TestMarkersAreKept: markers of ordinary objects equal those of earlier versions, because journals contain
// them.
func TestMarkersAreKept(t *testing.T) {
	for _, tc := range []struct{ why, resource, raw, want string }{
		{"a Secret's data", "secrets", `{"metadata":{"uid":"u"},"data":{"a.b/c":"dg=="}}`, "6313cb3db9d1c72c"},
		{"a variable of a container", "pods", `{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"app 1","env":[{"name":"DB_PASSWORD","value":"v"}]}]}}`, "0a0d7e9aba2e5daa"},
		{"an argument by its flag", "pods", `{"metadata":{"uid":"u"},"args":["--token","v"]}`, "487e82d96bc26a63"},
		{"an argument by its name", "pods", `{"metadata":{"uid":"u"},"args":["x","--token=v"]}`, "4950dfda6b43f8a8"},
		{"by its place", "pods", `{"metadata":{"uid":"u"},"spec":{"x":[["a","redis://:v@h"]]}}`, "715265f2e5c6d5f8"},
		{"not a text", "secrets", `{"metadata":{"uid":"u"},"data":{"a":{"b":[1,true]}}}`, "48aee3437aa6bb52"},
		{"64 steps", "pods", `{"metadata":{"uid":"u"},"a":` + strings.Repeat(`{"a":`, 61) + `{"env":{"TOKEN":"v"}}` + strings.Repeat("}", 61) + `}`, "351e74993b71510d"},
	} {
		obj := decode(t, tc.raw)
		if _, err := redactor(t).Apply(tc.resource, obj); err != nil {
			t.Fatal(err)
		}
		if got := markerIn(encode(t, obj)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
}

func markerIn(s string) string {
	_, after, _ := strings.Cut(s, "hidden #")
	return after[:min(16, len(after))]
}

// TestDeepMarkers: beyond 64 steps, or 1 KiB of text, a marker still identifies a value and its place.
func TestDeepMarkers(t *testing.T) {
	at := func(value string, path ...string) string {
		var v any = map[string]any{"password": value}
		for i := range path {
			v = map[string]any{path[len(path)-1-i]: v}
		}
		obj := map[string]any{"metadata": map[string]any{"uid": "u"}, "spec": v}
		if _, err := redactor(t).Apply("widgets.example.com", obj); err != nil {
			t.Fatal(err)
		}
		return markerIn(encode(t, obj))
	}
	steps := func(n int, last string) []string {
		path := strings.Split(strings.Repeat("a,", n), ",")
		path[n] = last
		return path
	}
	changed := steps(100, "a")
	changed[50] = "b"
	seen := map[string]string{}
	for why, m := range map[string]string{
		"62 steps":                      at("x1", steps(61, "a")...),
		"63 steps":                      at("x1", steps(62, "a")...),
		"100 steps":                     at("x1", steps(100, "a")...),
		"101 steps":                     at("x1", steps(101, "a")...),
		"100 steps, another value":      at("x2", steps(100, "a")...),
		"100 steps, another last step":  at("x1", steps(100, "b")...),
		"100 steps, another one before": at("x1", changed...),
		"a long key":                    at("x1", strings.Repeat("k", 2000)),
		"another long key":              at("x1", strings.Repeat("k", 2001)),
		"two keys as long as one":       at("x1", strings.Repeat("k", 1000), strings.Repeat("k", 1000)),
	} {
		if other, ok := seen[m]; ok || m == "" {
			t.Errorf("%s has the marker %q of %s", why, m, other)
		}
		seen[m] = why
	}
	if a, b := at("x1", steps(100, "a")...), at("x1", steps(100, "a")...); a != b {
		t.Errorf("the same place and value: %s and %s", a, b)
	}
}
