// Package rig is shared by the tests of sinks with real servers: a proxy that can be slow, silent or cut,
// certificates, and the comparison of a page with the code that ran. Each test has its own server.
package rig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Must returns the value, or ends the test if there is an error: Must(os.ReadFile(path))(t).
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// SameAsPage fails the test unless a file of the test's package contains the first Go block of a page in docs/sinks,
// such as kafka.md, followed by a blank line or the end of the file. So a block without its last lines does not
// match.
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
