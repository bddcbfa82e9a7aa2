package goldentest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder records the errors of a test.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

func TestCompare(t *testing.T) {
	defer func(was bool) { *update = was }(*update)
	path := filepath.Join(t.TempDir(), "new", "x.txt")
	*update = true
	Compare(t, path, "one\n")
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\n" {
		t.Fatalf("-update wrote %q, %v", b, err)
	}
	*update = false
	Compare(t, path, "one\n")
	r := &recorder{TB: t}
	if Compare(r, path, "two\n"); !strings.Contains(r.text, path) || !strings.Contains(r.text, "two") {
		t.Errorf("a difference is reported as %q", r.text)
	}
}
