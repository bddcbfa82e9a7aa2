package exec_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/exec"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

const canary = "w0rdw0rdw0rdw0rd"

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "command: [sh]", ""},
		{"no program", "{}", "command: missing"},
		{"an empty one", "command: ['']", "command: missing"},
		{"a NUL", `command: [sh, "` + canary + `\0"]`, "command: argument 1 contains a NUL"},
		{"a variable without a name", "{command: [sh], env: {'': " + canary + "}}", `env: "" is not a variable name`},
		{"a variable that is two", "{command: [sh], env: {'A=B': " + canary + "}}", `env: "A=B" is not a variable name`},
		{"a variable of ours", "{command: [sh], env: {TATTLER_ID: " + canary + "}}", "env: TATTLER_ID is reserved"},
		{"a value with a NUL", `{command: [sh], env: {A: "` + canary + `\0"}}`, "env: the value of A contains a NUL"},
		{"time goes forward", "{command: [sh], timeout: -1s}", `timeout: "-1s" is negative`},
		{"0 is never an error", "{command: [sh], permanentExitCodes: [0]}", "permanentExitCodes: 0 is not between 1 and 255"},
		{"no code", "{command: [sh], permanentExitCodes: [256]}", "permanentExitCodes: 256 is not"},
	} {
		_, err := load(tc.text)
		check(t, tc.why, err, tc.want)
	}
	if _, err := exec.New(exec.Options{Command: []string{"tattler-nonexistent"}}); err == nil || !strings.Contains(err.Error(), "exec sink: command: ") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func load(options string) (*exec.Options, error) {
	l := &config.Loader{Sinks: kinds.Tattler().Types()}
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: a\n  exec:\n    " + strings.ReplaceAll(options, "\n", "\n    ") + "\n"
	c, err := l.Parse("t.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*exec.Options), nil
}

func check(t *testing.T, why string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", why, err)
		}
		return
	}
	if key, rest, found := strings.Cut(want, ": "); err == nil || strings.Contains(err.Error(), canary) ||
		found && !strings.Contains(err.Error(), rest) || !strings.Contains(err.Error(), key) {
		t.Errorf("%s: %v, want %q", why, err, want)
	}
}

func TestOptionKeys(t *testing.T) {
	got, err := load(`command: [/bin/sh, -c, "exit 0"]
batch: true
env: {A: b}
dir: /tmp
timeout: 3s
permanentExitCodes: [1, 2]`)
	if err != nil {
		t.Fatal(err)
	}
	want := &exec.Options{
		Command: []string{"/bin/sh", "-c", "exit 0"}, Batch: true, Env: map[string]string{"A": "b"}, Dir: "/tmp",
		Timeout: 3 * time.Second, PermanentExitCodes: []int{1, 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFromURL(t *testing.T) {
	l := &config.Loader{Sinks: kinds.Tattler().Types()}
	for _, tc := range []struct {
		why, address string
		want         exec.Options
	}{
		{"a path", "exec:/usr/bin/on-change", exec.Options{Command: []string{"/usr/bin/on-change"}}},
		{"a path with slashes before it", "exec:///usr/bin/on-change", exec.Options{Command: []string{"/usr/bin/on-change"}}},
		{"a name", "exec:on-change", exec.Options{Command: []string{"on-change"}}},
		{"a space", "exec:/opt/on%20change", exec.Options{Command: []string{"/opt/on change"}}},
		{"arguments", "exec:/bin/on?arg=a%20b&arg=c", exec.Options{Command: []string{"/bin/on", "a b", "c"}}},
		{"all", "exec:/bin/on?batch=true&timeout=2m", exec.Options{Command: []string{"/bin/on"}, Batch: true, Timeout: 2 * time.Minute}},
	} {
		s, err := l.SinkFromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if got := *s.Options.(*exec.Options); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
	}
	for _, tc := range []struct{ why, address, want string }{
		{"nothing", "exec:", "command: missing"},
		{"a path that is invalid", "exec:/%zz?arg=" + canary, "the program's path"},
		{"a query that is invalid", "exec:/bin/on?arg=%zz" + canary, "invalid query"},
		{"an unknown key", "exec:/bin/on?args=" + canary, "unknown key in the query: known are arg, batch, timeout"},
		{"an argument with an &", "exec:/bin/on?arg=a&" + canary, "an & in an argument as %26"},
		{"no truth", "exec:/bin/on?batch=" + canary, "batch must be true or false"},
		{"no duration", "exec:/bin/on?timeout=" + canary, "timeout must be a duration"},
	} {
		_, err := l.SinkFromURL(tc.address)
		check(t, tc.why, err, tc.want)
	}
}

// TestPage checks that the configuration in docs/sinks/exec.md is valid.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sinks/exec.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(string(page), "```"+language+"\n")
		text, _, _ := strings.Cut(rest, "```")
		return text
	}
	l := &config.Loader{Sinks: kinds.Tattler().Types(), LookupEnv: func(string) (string, bool) { return canary, true }}
	c, err := l.Parse("page.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+block("yaml")))
	if err != nil || len(c.Sinks) != 1 {
		t.Errorf("the configuration: %v", err)
	}
	_, address, _ := strings.Cut(block("sh"), "--to '")
	address, _, _ = strings.Cut(address, "'")
	if s, err := l.SinkFromURL(address); err != nil || s.Type != "exec" {
		t.Errorf("the address %s: %v", address, err)
	}
}
