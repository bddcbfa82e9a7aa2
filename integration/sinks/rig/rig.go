// Package rig is what the tests of sinks on their servers share: a way to a server that can be slow, silent or
// cut, certificates, and the comparison of a page with the code that ran. Servers are each test's own.
package rig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Must is the value, or the end of the test where there is an error: Must(os.ReadFile(path))(t).
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// SameAsPage fails the test unless the first block of Go of a page of docs/sinks, such as kafka.md, is in a file of
// the test's package, and ends there where a blank line or the file's end follows: a block that lacks its last lines
// is another.
func SameAsPage(t *testing.T, page, source string) {
	t.Helper()
	text := Must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "sinks", page)))(t)
	code := Must(os.ReadFile(source))(t)
	_, rest, _ := strings.Cut(string(text), "```go\n")
	example, _, found := strings.Cut(rest, "```\n")
	if !found || example == "" || !strings.Contains("\n"+string(code)+"\n", "\n"+example+"\n") {
		t.Errorf("docs/sinks/%s shows what is not in %s:\n%s", page, source, example)
	}
}
