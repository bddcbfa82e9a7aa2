package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestImport(t *testing.T) {
	file := write(t, "kw.yaml", "handler: {webhook: {url: https://s3cr3t}}\nresource: {po: true}\n")
	got, err := run(t, "import", "kubewatch", file)
	if err != nil || !strings.Contains(got, "include: [pods]") || !strings.Contains(got, "Set WEBHOOK_URL to") || strings.Contains(got, "s3cr3t") {
		t.Errorf("%v\n%s", err, got)
	}
	long := write(t, "long.yaml", strings.Repeat("#", maxImport+1))
	for _, tc := range []struct {
		why  string
		args []string
		want string
	}{
		{"no file", []string{"kubewatch"}, "want TOOL and FILE"},
		{"a file that is not there", []string{"kubewatch", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{"another tool", []string{"botkube", file}, "use one of kubediff, kubewatch"},
		{"the file of another", []string{"kubediff", file}, "kubediff watches nothing"},
		{"a long one", []string{"kubewatch", long}, "more than 1 MiB"},
	} {
		if out, err := run(t, append([]string{"import"}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q\n%s", tc.why, err, tc.want, out)
		}
	}
}
