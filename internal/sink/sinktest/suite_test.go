package sinktest

import (
	"strings"
	"testing"
)

// TestInOrder checks that the suite can fail, with one case for each way. Three objects take turns.
func TestInOrder(t *testing.T) {
	want := strings.Fields("a0 b0 c0 a1 b1 c1")
	for _, tc := range []struct {
		why, got string
		ok       bool
	}{
		{"in order", "a0 b0 c0 a1 b1 c1", true},
		{"objects do not wait for each other", "a0 a1 c0 b0 c1 b1", true},
		{"sent again from a place on", "a0 b0 c0 a1 b0 c0 a1 b1 c1", true},
		{"one is missing", "a0 b0 c0 a1 b1", false},
		{"one overtook another of its object", "a1 a0 b0 c0 b1 c1", false},
		{"one is unknown", "a0 b0 c0 a1 b1 c1 d0", false},
		{"nothing came", "", false},
	} {
		if err := inOrder(strings.Fields(tc.got), want); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}
