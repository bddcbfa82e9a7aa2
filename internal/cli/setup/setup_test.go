package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// write makes a configuration file with a head and the given text.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, f *Flags) *Setup {
	t.Helper()
	s, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScopes(t *testing.T) {
	file := write(t, `watch:
- resources: {include: [secrets, "*.example.com"]}
  namespaces: {include: [shop]}
- resources: {include: ["*", events], exclude: [nodes]}
  namespaces: {include: ["*"], exclude: ["kube-*"]}
  labelSelector: tier!=debug
  noise: true
`)
	for _, tc := range []struct {
		why  string
		f    Flags
		want []capture.Scope
	}{
		{"nothing is everything", Flags{}, []capture.Scope{{}}},
		{"what the command line says", Flags{Types: []string{"deploy", "web"}, Noise: true, Objects: selection.Objects{Namespaces: []string{"a,b"}, Labels: "x=y"}},
			[]capture.Scope{{Types: []string{"deploy", "web"}, Noise: true, Labels: "x=y", Namespaces: selection.Namespaces{Include: []string{"a", "b"}}}}},
		{"what a file says, each element a scope; all namespaces are no choice", Flags{File: file}, []capture.Scope{
			{Types: []string{"secrets,*.example.com"}, Namespaces: selection.Namespaces{Include: []string{"shop"}}},
			{Types: []string{"*,events"}, Except: []string{"nodes"}, Labels: "tier!=debug", Noise: true, Namespaces: selection.Namespaces{Exclude: []string{"kube-*"}}},
		}},
	} {
		s := load(t, &tc.f)
		if diff := cmp.Diff(tc.want, s.Scopes, cmpopts.IgnoreUnexported(capture.Scope{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, tc := range []struct {
		why   string
		f     Flags
		want  string
		usage bool // exit code 2
	}{
		{"an address of no sink", Flags{To: []string{"changes.jsonl"}}, "file:changes.jsonl", true},
		{"twice the same", Flags{To: []string{"file:a", "file:a"}}, "already", true},
		{"a file and types", Flags{File: "x", Types: []string{"pods"}}, "leave out TYPE", true},
		{"a file and flags", Flags{File: "x", Objects: selection.Objects{All: true}}, "leave out TYPE", true},
		{"a file and noise", Flags{File: "x", Noise: true}, "leave out TYPE", true},
		{"no such file", Flags{File: filepath.Join(t.TempDir(), "none")}, "no such file", false},
		{"a wrong file", Flags{File: write(t, "watsch: []\n")}, "c.yaml:3:1: watsch: unknown key; did you mean watch?", false},
		{"a namespace", Flags{Objects: selection.Objects{Namespaces: []string{"A"}}}, "not a namespace name", true},
		{"a password is not repeated", Flags{To: []string{"https://u:geheim@example.com", "https://u:geheim@example.com"}}, "already", true},
	} {
		_, err := tc.f.Load()
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", tc.why, err)
		}
		var wrong *usage.Error
		if errors.As(err, &wrong) != tc.usage {
			t.Errorf("%s: usage is not %t: %v", tc.why, tc.usage, err)
		}
	}
}

// TestExplain: the error about an unknown kind has the position of the line that names it.
func TestExplain(t *testing.T) {
	s := load(t, &Flags{File: write(t, `watch:
- resources:
    include: [pods, secrets]
    exclude: [podz]
- resources:
    include:
    - configmaps
    - podz
    - widgets
`)})
	for _, tc := range []struct {
		why  string
		err  error
		want string
	}{
		{"the first that is looked up", &capture.UnknownTypeError{Type: "podz", Near: "pods"},
			`c.yaml:6:15: watch[0].resources.exclude[0]: the server has no resource type "podz"; did you mean "pods"?`},
		{"one of several groups", &capture.AmbiguousTypeError{Type: "widgets", Candidates: []string{"widgets.a", "widgets.b"}},
			`c.yaml:11:7: watch[1].resources.include[2]: resource type "widgets" is ambiguous: use one of widgets.a, widgets.b`},
		{"what is not of the file", &capture.UnknownTypeError{Type: "other"}, `the server has no resource type "other"; ` + "`kubectl api-resources` lists the types"},
		{"another error", errors.New("else"), "else"},
	} {
		got := s.Explain(tc.err).Error()
		if got = got[max(0, strings.Index(got, "c.yaml")):]; got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.why, got, tc.want)
		}
	}
	if s.Explain(nil) != nil {
		t.Error("no error became one")
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	s := load(t, &Flags{})
	if path, err := s.KeyFile(); err != nil || path != filepath.Join(dir, "tattler", "redaction.key") {
		t.Errorf("the key that nobody names: %s, %v", path, err)
	}
	key := filepath.Join(dir, "key")
	s = load(t, &Flags{File: write(t, "redactionKey: "+key+"\n")})
	if _, err := s.KeyFile(); err == nil || !strings.Contains(err.Error(), "c.yaml:3:15: redactionKey: stat "+key) {
		t.Errorf("a key that is named, and is not there: %v", err)
	}
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := s.KeyFile(); err != nil || path != key {
		t.Errorf("a key that is there: %s, %v", path, err)
	}
}

// TestJournalFile: run writes the journal that the other verbs read.
func TestJournalFile(t *testing.T) {
	file := write(t, "journal: {path: /file/j.db}\n")
	for _, tc := range []struct{ why, flag, env, file, want string }{
		{"the flag stands before all", "/flag/j.db", "/env/j.db", file, "/flag/j.db"},
		{"the file before the environment", "", "/env/j.db", file, "/file/j.db"},
		{"the file", "", "", file, "/file/j.db"},
		{"the environment, without a file", "", "/env/j.db", "", "/env/j.db"},
	} {
		t.Setenv(kube.JournalVariable, tc.env)
		if path, err := load(t, &Flags{File: tc.file, Journal: tc.flag}).JournalFile(nil); err != nil || path != tc.want {
			t.Errorf("%s: %s, %v", tc.why, path, err)
		}
	}
	for _, path := range []string{t.TempDir(), os.DevNull} {
		if _, err := load(t, &Flags{Journal: path}).JournalFile(nil); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSinks opens every kind of sink that an address can name.
func TestSinks(t *testing.T) {
	dir := t.TempDir()
	f := Flags{To: []string{"-", "file:" + dir + "/a.jsonl", "file://" + dir + "/b.jsonl", "https://u:geheim@example.com/token"}}
	s := load(t, &f)
	for i, want := range []string{"log stdout", "file " + dir + "/a.jsonl", "file " + dir + "/b.jsonl", "webhook https://example.com"} {
		if got, err := s.Place(&s.Sinks[i]); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("to say what a sink is makes %v, %v", files, err)
	}
	made, open, err := s.MakeSinks(os.Stdout)
	if err != nil || len(made) != len(f.To) {
		t.Fatalf("%d, %v", len(made), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("before they are opened there are %v, %v", files, err)
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	for i, o := range made {
		if o.Name != s.SinkNames()[i] || o.Retry.Max == 0 {
			t.Errorf("%+v", o)
		}
		if err := o.Sink.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", f.To[i], err)
		}
	}
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	bad := &Setup{program: kinds.Tattler(), Config: &config.Config{Sinks: []config.Sink{{Name: "x", Type: "none"}}}}
	if _, _, err := bad.MakeSinks(os.Stdout); err == nil || !strings.Contains(err.Error(), "sink x: unknown type none") {
		t.Error(err)
	}
}

// TestSinksFail: an error of a sink is reported before anything is recorded, without its credentials.
func TestSinksFail(t *testing.T) {
	t.Setenv("SECRET", "geheim")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "geheim"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ why, options, want string }{
		{"a folder that is not there", `file: {path: "/does/not/exist/${env:SECRET}/c"}`, "sink x: check the file's directory, which must exist: stat /does/not/exist/${env:SECRET}: no such file or directory"},
		{"a file that cannot be opened", `file: {path: "` + dir + `/${env:SECRET}"}`, dir + "/${env:SECRET}: not a regular file"},
		{"a certificate that is not there", `webhook: {url: "https://x", tls: {ca: "/does/not/exist/${env:SECRET}"}}`, "/does/not/exist/${env:SECRET}"},
	} {
		_, open, err := load(t, &Flags{File: write(t, "sinks:\n- name: x\n  "+tc.options+"\n")}).MakeSinks(os.Stdout)
		if err == nil {
			err = open()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "sink x: ") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// TestSinkOnFullDisk: a full disk is recognised by who waits for space, and the error shows no credentials.
func TestSinkOnFullDisk(t *testing.T) {
	t.Setenv("SECRET", "geheim")
	s := load(t, &Flags{File: write(t, "sinks:\n- name: x\n  file: {path: \"/tmp/${env:SECRET}\"}\n")})
	cause := &os.PathError{Op: "open", Path: "/tmp/geheim", Err: syscall.ENOSPC}
	err := failure(&s.Sinks[0], cause)
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOENT) || strings.Contains(fmt.Sprintf("%v %+v", err, err), "geheim") {
		t.Errorf("%+v", err)
	}
	if shown := new(os.PathError); errors.As(err, &shown) {
		t.Errorf("the error with the credentials can be reached: %v", shown)
	}
}
