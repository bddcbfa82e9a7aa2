package version

import "testing"

func TestLine(t *testing.T) {
	for _, tc := range []struct {
		why  string
		b    build
		want string
	}{
		{"a release", build{Program: "tattler", Version: "v1.2.3", Commit: "0123456789abcdef0123456789abcdef01234567", Time: "2026-11-24T10:00:00Z", Go: "go1.26.8", Platform: "linux/amd64"},
			"tattler v1.2.3 (commit 0123456789ab, 2026-11-24) go1.26.8 linux/amd64"},
		{"go install", build{Program: "tattler", Version: "v1.2.3", Go: "go1.26.8", Platform: "linux/amd64"}, "tattler v1.2.3 go1.26.8 linux/amd64"},
	} {
		if got := tc.b.String(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
}
