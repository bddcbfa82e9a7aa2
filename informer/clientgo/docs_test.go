package clientgo_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocs compares the code of docs/drop-in.md with the examples, which are compiled. Code for controller-runtime is
// compared in compat, which depends on it.
func TestDocs(t *testing.T) {
	examples := read(t, "example_test.go") + read(t, "example_stats_test.go") + read(t, "../../compat/dropin/example_test.go")
	// A block may be inside a function, at any depth, or outside.
	examples = regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(examples, "")
	flat := regexp.MustCompile(`(?m)^\t+`)
	blocks := regexp.MustCompile("(?s)```(go|text)\n(.*?)\n```").FindAllStringSubmatch(read(t, "../../docs/drop-in.md"), -1)
	if len(blocks) != 12 {
		t.Errorf("there are %d blocks, want 12", len(blocks))
	}
	for _, b := range blocks {
		code := flat.ReplaceAllString(b[2], "")
		if b[1] == "text" {
			code = "// Output: " + code
		}
		if !strings.Contains(examples, code+"\n") {
			t.Errorf("no example has\n%s", b[2])
		}
	}
}

// TestVersions: the page names the versions in the go.mod files.
func TestVersions(t *testing.T) {
	page := strings.Join(strings.Fields(read(t, "../../docs/drop-in.md")), " ")
	for _, tc := range []struct{ mod, line, page string }{
		{"../../go.mod", `k8s\.io/client-go (v0\.\d+)\.`, "supports client-go "},
		{"../../compat/go.mod", `sigs\.k8s\.io/controller-runtime (v0\.\d+)\.`, "tested with controller-runtime "},
		{"../../go.mod", `(?m)^go (1\.\d+)`, "needs Go "},
	} {
		found := regexp.MustCompile(tc.line).FindStringSubmatch(read(t, tc.mod))
		if found == nil {
			t.Fatalf("%s has no %s", tc.mod, tc.line)
		}
		if want := tc.page + found[1]; !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
