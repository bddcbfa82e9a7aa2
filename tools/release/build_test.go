package release

import (
	"strings"
	"testing"
)

// TestNameRoot: the form in which cyclonedx-gomod 1.10 writes a module that a directory replaces.
func TestNameRoot(t *testing.T) {
	const replaced = `{
      "bom-ref": "pkg:golang/../@(devel)?type=module",
      "name": "../",
      "version": "(devel)",
      "purl": "pkg:golang/../@(devel)?goarch=amd64"
    }, {"dependsOn": ["pkg:golang/../@(devel)?type=module"]}`
	got, err := nameRoot([]byte(replaced), "v1.2.3")
	if err != nil || strings.Count(string(got), "pkg:golang/github.com/tattler-dev/tattler@v1.2.3?") != 3 ||
		!strings.Contains(string(got), `"name": "github.com/tattler-dev/tattler",`) || !strings.Contains(string(got), `"version": "v1.2.3"`) {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := nameRoot([]byte(`{"name": "../../x"}`), "v1.2.3"); err == nil {
		t.Error("another directory is accepted")
	}
}
