package clientgo_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs holds the code of docs/drop-in.md against the examples, which are compiled. What is for
// controller-runtime is compiled where that is a dependency.
func TestDocs(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	examples := read("example_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)\n```").FindAllStringSubmatch(read("../../docs/drop-in.md"), -1)
	checked := 0
	for _, b := range blocks {
		if strings.Contains(b[1], "ctrl.") {
			continue
		}
		checked++
		if code := "\t" + strings.ReplaceAll(b[1], "\n", "\n\t"); !strings.Contains(examples, code) {
			t.Errorf("no example has\n%s", b[1])
		}
	}
	if checked != 3 {
		t.Errorf("%d blocks were checked, want 3", checked)
	}
}
