package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/config"
)

func TestScopes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := `apiVersion: tattler.dev/v1alpha1
kind: Config
watch:
- resources: {include: [secrets, configmaps]}
  namespaces: {include: [shop]}
- resources: {include: ["*", events], exclude: [nodes]}
  labelSelector: tier!=debug
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why  string
		o    Options
		want []capture.Scope
	}{
		{"nothing is everything", Options{}, []capture.Scope{{}}},
		{"what the command line says", Options{Types: []string{"deploy", "web"}, Noise: true, Scope: scope.Flags{Namespaces: []string{"a,b"}, Labels: "x=y"}},
			[]capture.Scope{{Types: []string{"deploy", "web"}, Noise: true, Labels: "x=y", Namespaces: capture.Namespaces{Include: []string{"a", "b"}}}}},
		{"what a file says: named kinds before the star", Options{File: file}, []capture.Scope{
			{Types: []string{"secrets,configmaps"}, Namespaces: capture.Namespaces{Include: []string{"shop"}}},
			{Types: []string{"events"}, Except: []string{"nodes"}, Labels: "tier!=debug"},
			{Except: []string{"nodes"}, Labels: "tier!=debug"},
		}},
	} {
		c, err := tc.o.configuration()
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if diff := cmp.Diff(tc.want, tc.o.scopes(c), cmpopts.IgnoreUnexported(capture.Scope{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	listening := filepath.Join(t.TempDir(), "c.yaml")
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nlisten: {address: \"127.0.0.1:9090\"}\n"
	if err := os.WriteFile(listening, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why  string
		o    Options
		want string
	}{
		{"an address of no sink", Options{To: []string{"changes.jsonl"}}, "file:changes.jsonl"},
		{"twice the same", Options{To: []string{"file:a", "file:a"}}, "already"},
		{"a file and types", Options{File: "x", Types: []string{"pods"}}, "leave out TYPE"},
		{"a file and flags", Options{File: "x", Scope: scope.Flags{All: true}}, "leave out TYPE"},
		{"a key that does nothing yet", Options{File: listening}, "listen.address"},
		{"no such file", Options{File: filepath.Join(t.TempDir(), "none")}, "no such file"},
		{"a namespace", Options{Scope: scope.Flags{Namespaces: []string{"A"}}}, "not a namespace name"},
		{"a password is not repeated", Options{To: []string{"https://u:geheim@example.com", "https://u:geheim@example.com"}}, "already"},
	} {
		_, err := tc.o.configuration()
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// TestSinks opens every kind of sink that an address can name.
func TestSinks(t *testing.T) {
	dir := t.TempDir()
	o := Options{To: []string{"-", "file:" + dir + "/a.jsonl", "file://" + dir + "/b.jsonl", "https://example.com/x"}}
	c, err := o.configuration()
	if err != nil {
		t.Fatal(err)
	}
	opened, err := sinks(c, os.Stdout)
	if err != nil || len(opened) != len(o.To) {
		t.Fatalf("%d, %v", len(opened), err)
	}
	for i, s := range opened {
		if s.Name == "" || s.Retry.Max == 0 {
			t.Errorf("%+v", s)
		}
		if err := s.Sink.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", o.To[i], err)
		}
	}
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	bad := &config.Config{Sinks: []config.Sink{{Name: "x", Type: "none"}}}
	if _, err := sinks(bad, os.Stdout); err == nil || !strings.Contains(err.Error(), "sink x") {
		t.Error(err)
	}
}
