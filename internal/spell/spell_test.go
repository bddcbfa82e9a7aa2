package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"namespace", "name", "op", "startsWith", "where", "webhook"}
	for _, tc := range []struct{ why, name, want string }{
		{"two letters swapped", "wehre", "where"},
		{"a missing letter is closer than a prefix", "nam", "name"},
		{"another case", "STARTSWITH", "startsWith"},
		{"an extra letter", "namespaces", "namespace"},
		{"a prefix", "web", "webhook"},
		{"the first of equals", "names", "name"},
		{"a short name may differ in one letter", "ops", "op"},
		{"a short name that differs in two", "ab", ""},
		{"far from all", "labels", ""},
		{"empty", "", ""},
	} {
		if got := Nearest(tc.name, known); got != tc.want {
			t.Errorf("%s: Nearest(%q) = %q, want %q", tc.why, tc.name, got, tc.want)
		}
	}
}
