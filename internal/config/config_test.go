package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fakeFile, fakeHook and fakeLog have options of every form that the sinks' have.
type fakeFile struct {
	Path   string        `yaml:"path"`
	Rotate fakeRotate    `yaml:"rotate"`
	Every  time.Duration `yaml:"syncEvery"`
}

type fakeRotate struct {
	Size Size `yaml:"size"`
	Keep int  `yaml:"keep"`
}

func (o *fakeFile) Validate() error {
	if o.Path == "" {
		return errors.New("path: a file sink needs one")
	}
	return nil
}

type fakeHook struct {
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Retry   []int             `yaml:"retryOn"`
	TLS     *fakeTLS          `yaml:"tls"`
	Share   float64           `yaml:"share"`
	Secret  secretText        `yaml:"secret"`
}

type fakeTLS struct {
	Insecure bool `yaml:"insecure"`
}

// secretText is a text with validation, whose error repeats it.
type secretText string

func (s *secretText) UnmarshalText(text []byte) error {
	if len(text) < 8 {
		return fmt.Errorf("%q is too short", text)
	}
	*s = secretText(text)
	return nil
}

func (o *fakeHook) Validate() error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return err // it repeats the URL
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("url: %q is not an http URL", o.URL)
	}
	return nil
}

// fakeTraces are options of traces.
type fakeTraces struct {
	URL     string            `yaml:"endpoint"`
	Share   float64           `yaml:"sample"`
	Headers map[string]string `yaml:"headers"`
}

func (o *fakeTraces) Validate() error {
	if !strings.HasPrefix(o.URL, "http://") {
		return fmt.Errorf("endpoint: %q is not an http URL", o.URL)
	}
	return nil
}

// ClearText refuses every credential.
func (o *fakeTraces) ClearText(reference, _ string) error {
	return fmt.Errorf("endpoint: %s would be sent in clear text", reference)
}

type fakeLog struct {
	Format string `yaml:"format" enum:"text,json"`
}

func (o *fakeLog) Validate() error { return nil }

func types() []SinkType {
	hook := func(a string) (Options, error) { return &fakeHook{URL: a}, nil }
	return []SinkType{
		{Name: "file", New: func() Options { return &fakeFile{Rotate: fakeRotate{Keep: 5}} }, Schemes: map[string]func(string) (Options, error){
			"file": func(a string) (Options, error) { return &fakeFile{Path: strings.TrimPrefix(a, "file:")}, nil },
		}},
		{Name: "webhook", New: func() Options { return &fakeHook{} }, Schemes: map[string]func(string) (Options, error){"http": hook, "https": hook}},
		{Name: "log", New: func() Options { return &fakeLog{Format: "text"} }, Schemes: map[string]func(string) (Options, error){
			"log": func(string) (Options, error) { return &fakeLog{Format: "text"}, nil },
		}},
		{
			Name: "chat", New: func() Options { return &fakeHook{} }, Secret: true,
			Takes: func(u *url.URL) bool { return u.Host == "chat.example.com" },
			Schemes: map[string]func(string) (Options, error){
				"https": hook,
				"chat": func(a string) (Options, error) {
					if a == "chat:" {
						return nil, errors.New("want chat://TOKEN@CHANNEL")
					}
					return &fakeHook{URL: "https://" + a}, nil
				},
			},
		},
	}
}

const head = "apiVersion: tattler.dev/v1alpha1\nkind: Config\n"

func loader() *Loader {
	env := map[string]string{"TOKEN": "s3cr3t/+ \"word", "EMPTY": "", "SHORT": "hunter2", "LONG": "hunter2-and-more"}
	files := map[string]string{"/run/token": "fr0mf1le\n", "/run/crlf": "fr0mf1le\r\n"}
	return &Loader{
		Sinks:     types(),
		Traces:    func() Options { return &fakeTraces{Share: 1} },
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
		},
	}
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := loader().Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	got := parse(t, head+`
cluster: {name: prod}
watch:
- resources: {include: ["*"], exclude: [events, leases.coordination.k8s.io]}
  namespaces: {include: ["*"], exclude: ["kube-*"]}
  labelSelector: "tier!=debug"
quiet:
- {resources: [nodes], paths: ["status.images"]}
redact:
- {resources: [configmaps], paths: ["data.*password*"]}
journal: {path: /var/lib/tattler/journal.db, retain: {age: 720h, size: 10Gi}}
sinks:
- name: everything
  file: {path: /var/log/tattler/changes.jsonl, rotate: {size: 100Mi}, syncEvery: 1d}
- name: hook
  where: op == "deleted" || touches("spec.**")
  include: [before, patch]
  snapshots: true
  from: beginning
  retry: {max: 1h}
  webhook:
    url: "https://example.com/changes"
    headers: {X-A: b, "on": c}
    retryOn: [409, 423]
    tls: {insecure: true}
    share: 0.5
- name: out
  log:
`)
	want := &Config{
		APIVersion: APIVersion, Kind: Kind,
		Cluster: Cluster{Name: "prod"},
		Watch: []Watch{{
			Resources:     Selection{Include: []string{"*"}, Exclude: []string{"events", "leases.coordination.k8s.io"}},
			Namespaces:    Selection{Include: []string{"*"}, Exclude: []string{"kube-*"}},
			LabelSelector: "tier!=debug",
		}},
		Quiet:   []Rule{{Resources: []string{"nodes"}, Paths: []string{"status.images"}}},
		Redact:  []Rule{{Resources: []string{"configmaps"}, Paths: []string{"data.*password*"}}},
		Journal: Journal{Path: "/var/lib/tattler/journal.db", Retain: Retain{Age: 720 * time.Hour, Size: 10 << 30}},
		Sinks: []Sink{
			{
				Name: "everything", From: "now", Retry: Retry{Min: time.Second, Max: 5 * time.Minute, Attempts: 3}, Type: "file",
				Options: &fakeFile{Path: "/var/log/tattler/changes.jsonl", Rotate: fakeRotate{Size: 100 << 20, Keep: 5}, Every: 24 * time.Hour},
			},
			{
				Name: "hook", Where: `op == "deleted" || touches("spec.**")`, Include: []string{"before", "patch"}, Snapshots: true, From: "beginning",
				Retry: Retry{Min: time.Second, Max: time.Hour, Attempts: 3}, Type: "webhook",
				Options: &fakeHook{URL: "https://example.com/changes", Headers: map[string]string{"X-A": "b", "on": "c"}, Retry: []int{409, 423}, TLS: &fakeTLS{Insecure: true}, Share: 0.5},
			},
			{Name: "out", From: "now", Retry: Retry{Min: time.Second, Max: 5 * time.Minute, Attempts: 3}, Type: "log", Options: &fakeLog{Format: "text"}},
		},
		Log: Log{Format: "text", Level: "info"},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}, Sink{}), cmpopts.IgnoreFields(Sink{}, "Filter")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Sinks[0].Filter != nil || got.Sinks[1].Filter == nil {
		t.Error("an expression is compiled where there is one")
	}
	if r := Rules(got.Quiet); len(r) != 1 || r[0].Resources[0] != "nodes" || r[0].Paths[0] != "status.images" {
		t.Errorf("Rules: %v", r)
	}
}

func TestDefaults(t *testing.T) {
	if d := cmp.Diff(parse(t, head), Default(), cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Errorf("an empty file and Default (-file +default):\n%s", d)
	}
	want := Retain{Age: 30 * 24 * time.Hour, Size: 1 << 30}
	if got := Default().Journal.Retain; got != want {
		t.Errorf("retain %+v, want %+v", got, want)
	}
}

func TestForms(t *testing.T) {
	const body = "cluster:\n  name: prod\njournal:\n  retain: {age: 0, size: 0}\nsinks:\nwatch:\n"
	for _, tc := range []struct{ why, text string }{
		{"as it is; lists without a value are absent, 0 has no unit", head + body},
		{"a byte order mark", "\ufeff" + head + body},
		{"Windows' line ends", strings.ReplaceAll(head+body, "\n", "\r\n")},
		{"the start and end of a document", "---\n" + head + body + "...\n"},
		{"JSON", `{"apiVersion": "tattler.dev/v1alpha1", "kind": "Config", "cluster": {"name": "prod"}, "journal": {"retain": {"age": 0, "size": 0}}}`},
		{"anchors", strings.Replace(head+body, "age: 0, size: 0", "age: &zero 0, size: *zero", 1)},
		{"tabs where YAML lets them be", head + "cluster:\n  name:\tprod\t# a name\njournal:\n  retain: {age: 0,\tsize: 0}\n"},
	} {
		c, err := loader().Parse("t.yaml", []byte(tc.text))
		if err != nil || c.Cluster.Name != "prod" || c.Journal.Retain != (Retain{}) || c.Sinks != nil || c.Watch != nil {
			t.Errorf("%s: %+v, %v", tc.why, c, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("CONFIG_TEST_TOKEN", "abc")
	token := write("token", "def\n")
	c, err := (&Loader{Sinks: types()}).Load(write("good.yaml", head+"sinks:\n- name: a\n  webhook: {url: 'https://${env:CONFIG_TEST_TOKEN}:${file:"+token+"}@x'}\n"))
	if err != nil || c.Sinks[0].Options.(*fakeHook).URL != "https://abc:def@x" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, tc := range []struct{ why, path, want string }{
		{"no file", filepath.Join(dir, "none.yaml"), "read configuration: open " + filepath.Join(dir, "none.yaml")},
		{"a directory", dir, "read configuration: read " + dir},
		{"a large file", write("large.yaml", head+strings.Repeat("#\n", maxFile/2)), "large.yaml has more than 1 MiB"},
	} {
		if _, err := new(Loader).Load(tc.path); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that says %q", tc.why, err, tc.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "17": 17, "1k": 1000, "64Ki": 64 << 10, "100Mi": 100 << 20, "100MiB": 100 << 20, "1GiB": 1 << 30, "10G": 1e10, "2TB": 2e12, "5B": 5} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("size %s = %d, %v; want %d", text, s, err, want)
		}
		var back Size
		if err := back.UnmarshalText([]byte(s.String())); err != nil || back != want {
			t.Errorf("size %s prints as %s, which is %d, %v", text, s, back, err)
		}
	}
	for _, text := range []string{"", "Mi", "-1", "1.5Gi", "1 Mi b", "1mi", "9223372036854775807Ki", "100 megabytes", "+3", "1MM"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("size %q passes as %d", text, s)
		}
	}
	for text, want := range map[string]time.Duration{"0": 0, "90s": 90 * time.Second, "30d": 720 * time.Hour, "1w2d": 216 * time.Hour, "1d12h": 36 * time.Hour, "1h30m": 90 * time.Minute} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("duration %s = %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "90", "-1h", "1d-1h", "d", "1.5d", "30 d", "999999w", "106751d24h", "1y", "forever"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("duration %q passes as %s", text, got)
		}
	}
}
