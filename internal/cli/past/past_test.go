package past

import (
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// TestFile: a flag is asked before the environment, and that before the kubeconfig.
func TestFile(t *testing.T) {
	none := kube.Flags{Kubeconfig: "/nonexistent"}
	for _, tc := range []struct{ why, flag, env, want, err string }{
		{"a flag", "a", "b", "a", ""},
		{"the environment", "", "b", "b", ""},
		{"the context", "", "", "", "/nonexistent"},
	} {
		t.Setenv(variable, tc.env)
		f := Flags{Kube: none, Path: tc.flag}
		got, err := f.File()
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.why, got, err)
		}
	}
}
