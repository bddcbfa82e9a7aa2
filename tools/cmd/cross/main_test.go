package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCross(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/m\n\ngo 1.26\n",
		"m.go":              "package m\n\nvar A = b\n",
		"b_darwin.go":       "package m\n\nvar b int\n",
		"b_windows.go":      "package m\n\nvar b int = \"\"\n",
		"m_test.go":         "package m\n",
		"c_plan9_test.go":   "package m\n\nvar c = d\n",
		"b_plan9.go":        "package m\n\nvar b int\n",
		"other/o_darwin.go": "package other\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	for _, tc := range []struct {
		systems  []string
		out, err string
	}{
		{[]string{"darwin"}, "cross: darwin\n", ""},
		{[]string{"darwin", "windows"}, `b_windows.go:3:13: cannot use "" (untyped string constant) as int value`, "not everything compiles for windows"},
		{[]string{"plan9"}, "c_plan9_test.go:3:9: undefined: d", "not everything compiles for plan9"},
		{[]string{"nowhere"}, "", "load the packages for nowhere"},
	} {
		var out strings.Builder
		err := run(t.Context(), &out, dir, tc.systems)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || !strings.Contains(out.String(), tc.out) {
			t.Errorf("%v: %v, %s", tc.systems, err, &out)
		}
	}
}
