package informer_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadme compares the README's program with the Example, which is compiled.
func TestReadme(t *testing.T) {
	part := func(file, pattern string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(b)
		if m == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(m[1])
	}
	readme := part("../README.md", "(?s)```go\n.*?func main\\(\\) \\{\n(.*?)\n\\}\n```")
	example := part("readme_example_test.go", `(?s)func Example\(\) \{[^\n]*\n(.*?)\n\}\n`)
	if diff := cmp.Diff(example, readme); diff != "" {
		t.Errorf("the README's program is not the Example (-example +README):\n%s", diff)
	}
}
