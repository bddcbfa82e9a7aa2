package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

var update = flag.Bool("update", false, "rewrite the help texts in testdata")

// tattler runs a command line and returns its exit code and what it wrote.
func tattler(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(ctx, args, &terminal.IO{Out: &out, Err: &err, Width: func() int { return 0 }}, kinds.Tattler())
	return code, out.String(), err.String()
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		why, args, want string
	}{
		{"no such command", "foo", "unknown command \"foo\"; `tattler help` lists the commands"},
		{"a slip", "wacth", "unknown command \"wacth\" (did you mean \"watch\"?); `tattler help` lists the commands"},
		{"help for no command", "help foo", "unknown command \"foo\"; `tattler help` lists the commands"},
		{"a flag of a verb without the verb", "-A", "unknown shorthand flag: 'A' in -A; see `tattler --help`"},
		{"an argument too many", "version x", "unknown command \"x\" for \"tattler version\"; see `tattler version --help`"},
		{"no such shell", "completion foo", "unknown command \"foo\" for \"tattler completion\"; see `tattler completion --help`"},
		{"no such flag", "watch --nope", "unknown flag: --nope; see `tattler watch --help`"},
		{"a flag without its value", "watch -n", "flag needs an argument: 'n' in -n; see `tattler watch --help`"},
		{"a time without a unit", "watch --timeout 3", "--timeout: \"3\" is not a duration, such as 30s or 5m; see `tattler watch --help`"},
		{"not a number", "watch --limit x", "--limit: \"x\" is not a whole number; see `tattler watch --help`"},
		{"a number beyond int64", "log --limit 99999999999999999999", "--limit: \"99999999999999999999\" is out of range; see `tattler log --help`"},
		{"not a boolean", "watch --noise=maybe", "--noise: \"maybe\" is neither true nor false; see `tattler watch --help`"},
		{"a quote in a list", "log --op \"a", "--op: \"\\\"a\" is not a list: parse error on line 1, column 3: extraneous or missing \" in quoted-field; see `tattler log --help`"},
		{"a negative limit", "watch --limit -1", "--limit and --timeout cannot be negative"},
		{"a negative time", "watch --timeout -1s", "--limit and --timeout cannot be negative"},
		{"no such format", "watch -o xml", `unknown output "xml": use text, json or yaml`},
		{"-A with -n", "watch -A -n x", "-A and -n exclude each other"},
		{"an unset variable in a script must not become another namespace", "watch -n  --flat", "an empty namespace name"},
		{"an unset variable in a list", "watch -n a,", "an empty namespace name"},
		{"an empty exclusion", "watch --exclude-namespace ", "an empty namespace name"},
		{"a name that changes the path of a request", "watch -n ../secrets", `"../secrets" is not a namespace name: it may have only a-z, 0-9 and -, and at most 63 characters`},
		{"a name that changes a field selector", "watch --exclude-namespace a=b", `"a=b" is not a namespace name: it may have only a-z, 0-9 and -, and at most 63 characters`},
		{"a glob that does not end", "watch -n [a", `invalid namespace pattern "[a": syntax error in pattern`},
		{"an empty selection must not become everything", "watch -n a,b -n a --exclude-namespace a --exclude-namespace b*", "nothing to watch: of the namespaces a, b, all are excluded"},
		{"a label selector", "watch -l a=(", `invalid label selector "a=(": `},
		{"a field selector", "watch --field-selector a", `invalid field selector "a": `},
		{"a path", "watch --path spec..x", "--path: "},
		{"a path to ignore", "watch --ignore-path spec[", "--ignore-path: "},
		{"no such command of a command", "config foo", "unknown command \"foo\" for \"tattler config\"; see `tattler config --help`"},
		{"no such command of another", "journal foo", "unknown command \"foo\" for \"tattler journal\"; see `tattler journal --help`"},
		{"an unknown kind of sink", "run --to ftp://x", "read --to ftp:…: "},
		{"no such format, before there is a journal", "sinks -o xml", `unknown output "xml": use text or json`},
		{"two files to begin", "config init a b", "too many arguments; usage: tattler config init [FILE]; see `tattler config init --help`"},
		{"an unknown key", "config explain sinks.nmae", "explain sinks.nmae: no such key; did you mean sinks[].name?"},
		{"a file and TYPE", "run -c f pods", "-c selects the watched objects: leave out TYPE, and the selecting flags"},
		{"a slip below a command", "sinks resum x", "unknown command \"resum\" (did you mean \"resume\"?); see `tattler sinks --help`"},
		{"a missing sink name", "sinks pause", "an argument is missing; usage: tattler sinks pause NAME...; see `tattler sinks pause --help`"},
		{"a missing id", "show", "an argument is missing; usage: tattler show CHANGE; see `tattler show --help`"},
		{"two ids", "show a b", "too many arguments; usage: tattler show CHANGE; see `tattler show --help`"},
		{"a restore from nowhere", "journal restore", "an argument is missing; usage: tattler journal restore FILE; see `tattler journal restore --help`"},
		{"too much to skip", "sinks skip a b c", "too many arguments; usage: tattler sinks skip NAME [ID]; see `tattler sinks skip --help`"},
		{"a replay without a start", "sinks replay x", "no start is given: use --since TIME or --all"},
		{"which dead letters?", "sinks dead x --drop", "say which dead letters: some ids, or --all"},
		{"an unexpected argument", "status x", "unknown command \"x\" for \"tattler status\"; see `tattler status --help`"},
		{"a group without a user, in another verb", "rbac --as-group g", "--as-group needs --as: a group is impersonated together with a user"},
		{"a group without a user", "watch --as-group g", "--as-group needs --as: a group is impersonated together with a user"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			code, out, err := tattler(t.Context(), append([]string{"tattler"}, strings.Split(tt.args, " ")...)...)
			if code != exitUsage || out != "" {
				t.Errorf("exit code %d, stdout %q", code, out)
			}
			if want := "tattler: " + tt.want; !strings.HasPrefix(err, want) || strings.Count(err, "\n") != 1 ||
				!strings.HasSuffix(tt.want, ": ") && err != want+"\n" {
				t.Errorf("got  %q\nwant %q", err, want)
			}
		})
	}
}

// TestPointing: an error that points into an expression or a file keeps its lines, which cannot control the terminal.
func TestPointing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nwach: []\nsinks:\n- {name: a, where: 'op = \"x\"', log: {}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const arrow = ": a single =: compare with ==\n    op = \"x\"\n       ^\n"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"log", "--where", "op = \"x\""}, exitUsage, "tattler: --where: invalid expression: 1:4" + arrow},
		{[]string{"log", "--where", "op = \"\x1b[2J\""}, exitUsage, "tattler: --where: invalid expression: 1:4: a single =: compare with ==\n    op = \"\ufffd[2J\"\n       ^\n"},
		{[]string{"config", "check", "--offline", "-c", path}, exitFailed, "tattler: " + path + ":3:1: wach: unknown key; did you mean watch?\n" + path + ":5:24: sinks[0].where" + arrow},
	} {
		code, out, err := tattler(t.Context(), append([]string{"tattler"}, tt.args...)...)
		if code != tt.code || out != "" || err != tt.want {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%q\nwant\n%q", tt.args, code, out, err, tt.want)
		}
	}
}

// TestHelp compares the help texts with golden files, and checks that they fit a terminal.
func TestHelp(t *testing.T) {
	for _, tt := range []struct {
		file string
		same [][]string // command lines that all print it
	}{
		{"help.txt", [][]string{{"tattler"}, {"/usr/bin/tattler", "help"}, {"tattler", "--help"}, {"tattler", "-h"}}},
		{"help-watch.txt", [][]string{{"tattler", "watch", "--help"}, {"tattler", "help", "watch"}, {"tattler", "watch", "-A", "pods", "-h"}}},
		{"help-run.txt", [][]string{{"tattler", "run", "--help"}}},
		{"help-config.txt", [][]string{{"tattler", "config"}, {"tattler", "help", "config"}}},
		{"help-config-check.txt", [][]string{{"tattler", "config", "check", "--help"}, {"tattler", "help", "config", "check"}}},
		{"help-config-init.txt", [][]string{{"tattler", "config", "init", "--help"}}},
		{"help-config-import.txt", [][]string{{"tattler", "config", "import", "--help"}}},
		{"help-config-explain.txt", [][]string{{"tattler", "config", "explain", "--help"}}},
		{"help-rbac.txt", [][]string{{"tattler", "rbac", "--help"}}},
		{"help-status.txt", [][]string{{"tattler", "status", "--help"}, {"tattler", "help", "status"}}},
		{"help-doctor.txt", [][]string{{"tattler", "doctor", "--help"}, {"tattler", "help", "doctor"}}},
		{"help-sinks.txt", [][]string{{"tattler", "sinks", "--help"}, {"tattler", "help", "sinks"}}},
		{"help-sinks-pause.txt", [][]string{{"tattler", "sinks", "pause", "--help"}, {"tattler", "help", "sinks", "pause"}}},
		{"help-sinks-resume.txt", [][]string{{"tattler", "sinks", "resume", "--help"}}},
		{"help-sinks-replay.txt", [][]string{{"tattler", "sinks", "replay", "--help"}}},
		{"help-sinks-dead.txt", [][]string{{"tattler", "sinks", "dead", "--help"}}},
		{"help-sinks-remove.txt", [][]string{{"tattler", "sinks", "remove", "--help"}}},
		{"help-log.txt", [][]string{{"tattler", "log", "--help"}, {"tattler", "help", "log"}}},
		{"help-show.txt", [][]string{{"tattler", "show", "--help"}, {"tattler", "help", "show"}}},
		{"help-get.txt", [][]string{{"tattler", "get", "--help"}}},
		{"help-diff.txt", [][]string{{"tattler", "diff", "--help"}}},
		{"help-blame.txt", [][]string{{"tattler", "blame", "--help"}}},
		{"help-journal.txt", [][]string{{"tattler", "journal", "--help"}, {"tattler", "help", "journal"}}},
		{"help-journal-stats.txt", [][]string{{"tattler", "journal", "stats", "--help"}}},
		{"help-journal-verify.txt", [][]string{{"tattler", "journal", "verify", "--help"}}},
		{"help-journal-purge.txt", [][]string{{"tattler", "journal", "purge", "--help"}}},
		{"help-version.txt", [][]string{{"tattler", "help", "version"}}},
		{"help-help.txt", [][]string{{"tattler", "help", "--help"}, {"tattler", "help", "help"}}},
		{"help-completion.txt", [][]string{{"tattler", "completion"}, {"tattler", "help", "completion"}}},
		{"help-kubectl.txt", [][]string{{"/usr/bin/kubectl-tattler"}, {"kubectl-tattler.exe"}}},
		{"help-kubectl-watch.txt", [][]string{{"kubectl-tattler", "watch", "--help"}}},
	} {
		for _, args := range tt.same {
			code, out, err := tattler(t.Context(), args...)
			if code != exitDone || err != "" {
				t.Errorf("%q: exit code %d, stderr %q", args, code, err)
			}
			file := filepath.Join("testdata", tt.file)
			if *update {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, rerr := os.ReadFile(file)
			if rerr != nil {
				t.Fatal(rerr)
			}
			if diff := cmp.Diff(string(want), out); diff != "" {
				t.Errorf("%q differs from %s (-update rewrites it):\n%s", args, tt.file, diff)
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%q: a line of %d columns: %s", args, n, line)
				}
			}
		}
	}
}

// TestPluginErrors: as a kubectl plugin, errors suggest commands that begin with kubectl.
func TestPluginErrors(t *testing.T) {
	if _, _, err := tattler(t.Context(), "kubectl-tattler", "watch", "--nope"); !strings.HasSuffix(err, "see `kubectl tattler watch --help`\n") {
		t.Error(err)
	}
	if _, _, err := tattler(t.Context(), "kubectl-tattler", "nope"); !strings.HasSuffix(err, "`kubectl tattler help` lists the commands\n") {
		t.Error(err)
	}
}

// TestCompletion: types, names and namespaces are not files.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, err := tattler(t.Context(), "tattler", "completion", shell); code != exitDone || err != "" || !strings.Contains(out, "tattler") {
			t.Errorf("completion %s: exit code %d, %d bytes, stderr %q", shell, code, len(out), err)
		}
	}
	const files, noFiles = ":0\n", ":4\n"
	for _, tt := range []struct{ args, want string }{
		{"", "blame\ncompletion\nconfig\ndiff\ndoctor\nget\nhelp\njournal\nlog\nrbac\nrun\nshow\nsinks\nstatus\nui\nversion\nwatch\n" + noFiles},
		{"watch ", noFiles},
		{"watch deploy ", noFiles},
		{"watch -n ", noFiles},
		{"watch --context ", noFiles},
		{"watch --path ", noFiles},
		{"watch -o ", "text\njson\nyaml\n" + noFiles},
		{"watch --kubeconfig ", files},
		{"run -c ", files},
		{"run deploy ", noFiles},
		{"config check --journal ", files},
		{"rbac --kubeconfig ", files},
		{"log --journal ", files},
		{"log -o ", "text\noneline\njson\nyaml\n" + noFiles},
		{"show -o ", "text\njson\nyaml\n" + noFiles},
		{"journal verify --journal ", files},
		{"status --journal ", files},
		{"status -o ", "text\njson\n" + noFiles},
		{"sinks pause --journal ", files},
		{"sinks dead x -o ", "text\njson\n" + noFiles},
		{"version ", noFiles},
	} {
		_, out, _ := tattler(t.Context(), append([]string{"tattler", "__completeNoDesc"}, strings.Split(tt.args, " ")...)...)
		if out != tt.want {
			t.Errorf("%q completes to %q, want %q", tt.args, out, tt.want)
		}
	}
}

func TestVersion(t *testing.T) {
	code, out, err := tattler(t.Context(), "tattler", "version")
	if code != exitDone || err != "" || !strings.HasPrefix(out, "tattler ") || strings.Count(out, " ") != 3 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, err)
	}
	code, out, err = tattler(t.Context(), "tattler", "version", "-o", "json")
	if code != exitDone || err != "" || !strings.HasPrefix(out, `{"program":"tattler","version":"`) {
		t.Errorf("as JSON: exit code %d, stdout %q, stderr %q", code, out, err)
	}
	if code, _, err = tattler(t.Context(), "tattler", "version", "-o", "xml"); code != exitUsage || err != "tattler: unknown output \"xml\": use text or json\n" {
		t.Errorf("exit code %d, stderr %q", code, err)
	}
}

// kubeconfig makes a file whose only context, prod, has the address.
func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod,
		contexts: [{name: prod, context: {cluster: c, user: u}}],
		clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: t}}]}`, address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve starts a server, and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// mute accepts connections and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// cluster starts an API server with a ConfigMap in the namespace default.
func cluster(t *testing.T) string {
	t.Helper()
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s := informertest.NewServer()
	s.Serve(configmaps, "ConfigMap")
	s.Describe(configmaps, false, []string{"cm"}, nil)
	s.Put(configmaps, "default", "web", map[string]any{"data": map[string]any{"a": "1"}})
	return serve(t, s.ServeHTTP)
}

// TestWatch runs the verb end to end, from flags to lines.
func TestWatch(t *testing.T) {
	code, out, err := tattler(t.Context(), "tattler", "watch", "cm", "--kubeconfig", kubeconfig(t, cluster(t)), "--initial", "--limit", "1")
	if code != exitDone || strings.Contains(err, "tattler: ") {
		t.Errorf("exit code %d, stderr %q", code, err)
	}
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, " = cm/web") {
		t.Errorf("stdout %q", out)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &until{text: "Waiting for changes", then: cancel}
	code = execute(ctx, []string{"tattler", "watch", "cm", "--kubeconfig", kubeconfig(t, cluster(t)), "-n", "a,default,a"},
		&terminal.IO{Out: &stdout, Err: stderr, Width: func() int { return 0 }}, kinds.Tattler())
	// A slow start first says what it waits for.
	if code != exitDone || stdout.Len() > 0 || !strings.Contains("\n"+stderr.String(), "\nprod, namespaces a, default: 1 kind, 1 object, live after ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr)
	}
}

// until calls a function when a text was written to it.
type until struct {
	bytes.Buffer
	text string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	defer func() {
		if strings.Contains(u.String(), u.text) {
			u.then()
		}
	}()
	return u.Buffer.Write(p)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestServers: an error of the server is one line that says what is wrong and what to do.
func TestServers(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>\n<body>log in</body>\n</html>")
	}
	for _, tt := range []struct {
		why, address, flags, want string
	}{
		{"connection refused", "https://127.0.0.1:1", "", `cannot reach the API server of context "prod" at HOST: connect: connection refused; is the address right, and the server up?`},
		{"expired credentials", serve(t, status(401)), "", `the API server refused the credentials of context "prod": they may have expired; log in again`},
		{"no rights at all", serve(t, status(403)), "", `context "prod" may not use the API server's discovery: ask for the role system:discovery`},
		{"another server", serve(t, status(404)), "", `the server at HOST is not a Kubernetes API server: check the address of context "prod" in the kubeconfig`},
		{"a login page", serve(t, page), "", `the server at HOST is not a Kubernetes API server: check the address of context "prod" in the kubeconfig`},
		{"one that says nothing", mute(t), "--timeout 50ms", `after 50ms: the API server of context "prod" at HOST does not answer: is the address right, and a VPN or proxy needed?`},
		{"no address", "://x", "", `context "prod" of the kubeconfig: read server address: host must be a URL or a host:port pair: "HOST"`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			args := append([]string{"tattler", "watch", "--kubeconfig", kubeconfig(t, tt.address)}, strings.Fields(tt.flags)...)
			code, out, err := tattler(t.Context(), args...)
			if code != exitFailed || out != "" {
				t.Errorf("exit code %d, stdout %q", code, out)
			}
			if got, want := strings.ReplaceAll(err, tt.address, "HOST"), "tattler: "+tt.want+"\n"; got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}

// TestHint: every verb that finds damage says how to find the rest of it.
func TestHint(t *testing.T) {
	damage := &journaldb.DamagedError{Path: "/j.db", What: "page", Err: errors.New("malformed")}
	if got := hint(fmt.Errorf("tell: %w", damage)); !strings.Contains(got, "tattler journal verify") {
		t.Errorf("damage: %q", got)
	}
	if got := hint(errors.New("else")); got != "" {
		t.Errorf("another error: %q", got)
	}
}

// TestBrokenPipe: a closed output is not a failure; a closed connection to a server is.
func TestBrokenPipe(t *testing.T) {
	if err := error(&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}); !brokenPipe(fmt.Errorf("show: %w", err)) {
		t.Error("a reader that goes away is a failure")
	}
	if err := error(&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}); brokenPipe(err) {
		t.Error("a connection that breaks is no failure")
	}
}
