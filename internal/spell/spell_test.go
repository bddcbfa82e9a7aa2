package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"namespace", "name", "op", "startsWith", "where", "webhook"}
	for _, tc := range []struct{ why, name, want string }{
		{"two letters swapped", "wehre", "where"},
		{"a letter is missing, though a longer one begins like it", "nam", "name"},
		{"letters of another case", "STARTSWITH", "startsWith"},
		{"one more letter", "namespaces", "namespace"},
		{"a beginning", "web", "webhook"},
		{"the first of equals", "names", "name"},
		{"a short name may differ in one letter", "ops", "op"},
		{"two letters make another short name", "ab", ""},
		{"far from all", "labels", ""},
		{"nothing", "", ""},
	} {
		if got := Nearest(tc.name, known); got != tc.want {
			t.Errorf("%s: Nearest(%q) = %q, want %q", tc.why, tc.name, got, tc.want)
		}
	}
}
