package jsonmap

import (
	"reflect"
	"testing"
	"time"
)

func TestPath(t *testing.T) {
	m, err := Decode([]byte(`{"spec":{"name":"web","replicas":3,"share":2.5,"ports":[80],"empty":null},"at":"2026-11-21T10:00:00.25Z","bad":"soon"}`))
	if err != nil {
		t.Fatal(err)
	}
	number := func(path ...string) any {
		n, ok := Integer(m, path...)
		return []any{n, ok}
	}
	for _, tc := range []struct {
		why       string
		got, want any
	}{
		{"no path is the object itself", len(Get(m).(map[string]any)), 3},
		{"a string", Text(m, "spec", "name"), "web"},
		{"a value of another type is absent", Text(m, "spec", "replicas"), ""},
		{"a path through a string", Get(m, "spec", "name", "x"), nil},
		{"a path through null", Get(m, "spec", "empty", "x"), nil},
		{"a path through nothing", Get(m, "status", "x", "y"), nil},
		{"a list", List(m, "spec", "ports"), []any{int64(80)}},
		{"an absent list", List(m, "spec", "name"), []any(nil)},
		{"an object", len(Object(m, "spec")), 5},
		{"an absent object", Object(m, "spec", "name"), map[string]any(nil)},
		{"an integer", number("spec", "replicas"), []any{int64(3), true}},
		{"a number with a fraction", number("spec", "share"), []any{int64(2), true}},
		{"not a number", number("spec", "name"), []any{int64(0), false}},
		{"a time with a fraction", Time(m, "at"), time.Date(2026, 11, 21, 10, 0, 0, 250e6, time.UTC)},
		{"not a time", Time(m, "bad"), time.Time{}},
		{"an absent time", Time(nil, "at"), time.Time{}},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.why, tc.got, tc.want)
		}
	}
}
