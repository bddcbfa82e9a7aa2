package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const (
	// installed is the version on the page, which the test releases.
	installed = "v0.1.0"
	published = "https://github.com/tattler-dev/tattler/releases/download/" + installed
	// withGo is run by TestInstall, which has a module proxy.
	withGo = "go install " + modulePath + "/cmd/tattler@latest"
)

// TestInstallPage runs the commands of docs/install.md in order, as one new user would, with a release of the working
// tree. It compares their output with the page, up to a "…".
func TestInstallPage(t *testing.T) {
	u := newInstaller(t)
	steps := u.steps(t, string(readFile(t, repository+"/docs/install.md")))
	if len(steps) < 20 {
		t.Fatalf("the page has only %d commands", len(steps))
	}
	var script strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&script, "printf '\\n%s\\n'\n%s\n", separator, s.command)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script.String())
	cmd.Dir, cmd.Env = u.home, u.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	outputs := strings.Split(string(out), "\n"+separator+"\n")[1:]
	if err != nil {
		t.Fatalf("%s: %v\n%s", steps[len(outputs)-1].command, err, &stderr)
	}
	for i, s := range steps {
		if got := outputs[i]; !s.writes(got) {
			t.Errorf("%s writes\n%s\nthe page says\n%s", s.command, got, s.want)
		}
	}
	u.completions(t)
}

const separator = "=== next command ==="

// pageStep is a command on the page, and its output there.
type pageStep struct{ command, want string }

// writes reports whether an output is the one on the page, in which "…" stands for any text.
func (s pageStep) writes(got string) bool {
	if s.want == "" {
		return true
	}
	var pattern []string
	for _, part := range strings.Split(strings.TrimSuffix(s.want, "\n"), "…") {
		pattern = append(pattern, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(pattern, ".*") + `\n?$`).MatchString(got)
}

// installer is a user without Tattler.
type installer struct {
	home    string
	env     []string
	replace *strings.Replacer
}

// newInstaller releases the working tree on a local server, and makes a home with kubectl and krew on the PATH.
func newInstaller(t *testing.T) *installer {
	t.Helper()
	dist := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dist)))
	t.Cleanup(server.Close)
	here := runtime.GOOS + "/" + runtime.GOARCH
	goCommand(t, repository+"/tools", append(os.Environ(), "GOWORK=off"), "run", "./cmd/release",
		"-dirty", "-out", dist, "-version", installed, "-platforms", here, "-programs", "tattler", "-url", server.URL)

	home, tools := t.TempDir(), t.TempDir()
	if err := os.Symlink(kubectl(), filepath.Join(tools, "kubectl")); err != nil {
		t.Fatal(err)
	}
	goCommand(t, repository+"/tools/krew", append(os.Environ(), "GOWORK=off"), "build", "-trimpath", "-o", filepath.Join(tools, "kubectl-krew"), "sigs.k8s.io/krew/cmd/krew")
	checkout, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	goBin := filepath.Dir(must(t, exec.LookPath, "go"))
	return &installer{
		home: home,
		env: append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "KUBECONFIG="+cluster.Kubeconfig(),
			"PATH="+strings.Join([]string{filepath.Join(home, ".local", "bin"), tools, goBin, "/usr/local/bin", "/usr/bin", "/bin"}, ":"),
			// What is downloaded and compiled already, since HOME moves.
			"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "CGO_ENABLED=0", "MAKEFLAGS=", "MAKELEVEL=", "TMPDIR="+t.TempDir(),
			"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=url."+checkout+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/tattler-dev/tattler",
			"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"),
		replace: strings.NewReplacer(published, server.URL, "linux_amd64", runtime.GOOS+"_"+runtime.GOARCH),
	}
}

// steps returns the page's commands, for this machine.
func (u *installer) steps(t *testing.T, page string) (all []pageStep) {
	t.Helper()
	found := false
	for _, part := range regexp.MustCompile("(?ms)^## |^```console\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(part[0], "#") { // each section may be the only one that a user reads
			all = append(all, pageStep{command: `cd "$(mktemp -d)"`})
		}
		for line := range strings.Lines(part[1]) {
			command, ok := strings.CutPrefix(line, "$ ")
			switch {
			case strings.TrimSpace(command) == withGo:
				found = true
			case ok:
				all = append(all, pageStep{command: u.replace.Replace(strings.TrimSpace(command))})
			case len(all) == 0:
				t.Fatalf("output without a command: %q", line)
			default:
				all[len(all)-1].want += u.replace.Replace(line)
			}
		}
	}
	if !found {
		t.Errorf("the page has no %q, which TestInstall runs", withGo)
	}
	return all
}

// completions checks what was installed for the shells.
func (u *installer) completions(t *testing.T) {
	t.Helper()
	for path, want := range map[string]string{
		".local/share/bash-completion/completions/tattler": "complete -o default -F __start_tattler tattler",
		".zfunc/_tattler":                       "#compdef tattler",
		".config/fish/completions/tattler.fish": "complete -c tattler",
	} {
		if text := string(readFile(t, filepath.Join(u.home, path))); !strings.Contains(text, want) {
			t.Errorf("%s has no %q", path, want)
		}
	}
	if !slices.Contains([]string{"darwin", "linux"}, runtime.GOOS) {
		return
	}
	info, err := os.Stat(filepath.Join(u.home, ".local", "bin", "kubectl_complete-tattler"))
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("kubectl cannot run it: %v", err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(goCommand(t, repository, os.Environ(), "env", name))
}

// must returns f(x), which may not fail.
func must[A, B any](t *testing.T, f func(A) (B, error), x A) B {
	t.Helper()
	y, err := f(x)
	if err != nil {
		t.Fatal(err)
	}
	return y
}
