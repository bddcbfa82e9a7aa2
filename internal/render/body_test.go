package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestExcerptOf(t *testing.T) {
	certificate := []string{"data:", "  ca.crt: |"}
	for i := range 20 {
		certificate = append(certificate, fmt.Sprintf("    line %d", i))
	}
	certificate = append(certificate, "  name: x")
	var long []string
	for i := range 14 {
		long = append(long, fmt.Sprintf("k%d: v", i))
	}
	for _, tt := range []struct {
		why  string
		in   []string
		last string
		n    int
	}{
		{"a long text does not push out what follows it", certificate, "  name: x", 2 + textLines + 1},
		{"a name without its value says nothing", append(long, "metadata:", "  labels:", "    a: b"), "k13: v", 14},
		{"fifteen lines are all", append(long, "a: 1", "b: 2"), "a: 1", bodyLines},
	} {
		t.Run(tt.why, func(t *testing.T) {
			got := excerptOf(tt.in)
			if len(got) != tt.n || got[len(got)-1] != tt.last {
				t.Errorf("%d lines, want %d:\n%s", len(got), tt.n, strings.Join(got, "\n"))
			}
		})
	}
}
