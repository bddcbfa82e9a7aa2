package integration

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the goldens in the scripts")

// patience bounds every wait. It is far longer than a wait takes on a busy machine.
const patience = 2 * time.Minute

var namespaces atomic.Int64

// TestScripts runs testdata/script: each script has commands as a user would type them, and their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"watch":     background("watch"),
			"run":       background("run"),
			"sigkill":   cmdKill,
			"await":     cmdAwait,
			"interrupt": cmdInterrupt,
			"ended":     cmdEnded,
			"kubectl":   cmdKubectl,
			"awaitkube": cmdAwaitKube,
			"scrub":     cmdScrub,
			"lines":     cmdLines,
			"as":        cmdAs,
		},
	})
}

// setup gives the script a namespace, and a kubeconfig whose only context, "prod", uses it.
func setup(env *testscript.Env) error {
	ns := fmt.Sprintf("t%d-%d", os.Getpid(), namespaces.Add(1))
	if out, err := runKubectl("", cluster.Kubeconfig(), "create", "namespace", ns); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	env.Defer(func() { _, _ = runKubectl("", cluster.Kubeconfig(), "delete", "namespace", ns, "--wait=false") })
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	if err := contextIn(cluster.Kubeconfig(), kubeconfig, ns); err != nil {
		return err
	}
	env.Setenv("NS", ns)
	env.Setenv("KUBECONFIG", kubeconfig)
	env.Setenv("SERVER", cluster.URL())
	env.Setenv("TZ", "UTC")
	env.Values["watches"] = map[string]*watch{}
	return nil
}

// contextIn copies a kubeconfig with the context name "prod" and a namespace.
func contextIn(from, to, ns string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	old, err := runKubectl("", to, "config", "current-context")
	if err != nil {
		return fmt.Errorf("%w: %s", err, old)
	}
	for _, args := range [][]string{
		{"config", "rename-context", strings.TrimSpace(old), "prod"},
		{"config", "set-context", "prod", "--namespace", ns},
	} {
		if out, err := runKubectl("", to, args...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

func runKubectl(dir, kubeconfig string, args ...string) (string, error) {
	cmd := exec.Command(kubectl(), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+filepath.Dir(kubeconfig))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// watch is a command in the background.
type watch struct {
	cmd  *exec.Cmd
	done chan error
}

// background starts a verb in the background: VERB [-tty] NAME ARG…. Its output is written to NAME.out and
// NAME.err.
func background(verb string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		tty := len(args) > 0 && args[0] == "-tty"
		if tty {
			args = args[1:]
		}
		if neg || len(args) < 1 {
			ts.Fatalf("usage: %s [-tty] NAME [ARG...]", verb)
		}
		launch(ts, tty, args[0], append([]string{verb}, args[1:]...))
	}
}

func launch(ts *testscript.TestScript, tty bool, name string, args []string) {
	binary, err := exec.LookPath(strings.Split(ts.Getenv("PATH"), string(filepath.ListSeparator))[0] + "/tattler")
	ts.Check(err)
	cmd := exec.Command(binary, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, k := range []string{"PATH", "KUBECONFIG", "HOME", "TZ", "NO_COLOR", "TERM", "GOCOVERDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		if v := ts.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	out, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = out, stderr
	var terminal *os.File
	if tty {
		var slave *os.File
		terminal, slave, err = pty.Open()
		ts.Check(err)
		ts.Check(pty.Setsize(terminal, &pty.Winsize{Rows: 40, Cols: 100}))
		cmd.Stdout = slave
		defer slave.Close()
	}
	ts.Check(cmd.Start())
	w := &watch{cmd: cmd, done: make(chan error, 1)}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if terminal != nil {
			_, _ = io.Copy(out, terminal) // ends with EIO once the last writer has closed
		}
	}()
	go func() {
		err := cmd.Wait()
		<-copied
		out.Close()
		stderr.Close()
		w.done <- err
	}()
	ts.Value("watches").(map[string]*watch)[name] = w
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		if terminal != nil {
			terminal.Close()
		}
	})
}

// cmdAwait waits until FILE has a match of REGEX (with "^" and "$" for lines).
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEX")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	deadline := time.Now().Add(patience)
	for {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
		if re.Match(data) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has no match of %q after %v:\n%s", args[0], args[1], patience, data)
		}
		pause()
	}
}

// pause is the delay between two reads of a file that another process writes.
func pause() { <-time.After(20 * time.Millisecond) }

// cmdInterrupt interrupts a watch, like Ctrl-C, and expects it to exit with 0.
func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt NAME")
	}
	w := ts.Value("watches").(map[string]*watch)[args[0]]
	ts.Check(w.cmd.Process.Signal(os.Interrupt))
	finish(ts, w, args[0], patience)
}

// cmdKill kills a background command, without a chance to clean up.
func cmdKill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sigkill NAME")
	}
	w := ts.Value("watches").(map[string]*watch)[args[0]]
	ts.Check(w.cmd.Process.Kill())
	<-w.done
}

// cmdEnded waits for a watch that exits by itself with 0.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ended NAME")
	}
	finish(ts, ts.Value("watches").(map[string]*watch)[args[0]], args[0], patience)
}

func finish(ts *testscript.TestScript, w *watch, name string, d time.Duration) {
	select {
	case err := <-w.done:
		if err != nil {
			log, _ := os.ReadFile(ts.MkAbs(name + ".err"))
			ts.Fatalf("%s: %v\n%s", name, err, log)
		}
	case <-time.After(d):
		_ = w.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to NAME.err
		<-w.done
		log, _ := os.ReadFile(ts.MkAbs(name + ".err"))
		ts.Fatalf("%s did not end within %v\n%s", name, d, log)
	}
}

// cmdKubectl runs kubectl with the script's kubeconfig.
func cmdKubectl(ts *testscript.TestScript, neg bool, args []string) {
	out, err := runKubectl(ts.MkAbs("."), ts.Getenv("KUBECONFIG"), args...)
	ts.Logf("%s", out)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		ts.Fatalf("kubectl: %v", err)
	case neg && err == nil:
		ts.Fatalf("kubectl succeeded")
	case !neg && err != nil:
		ts.Fatalf("kubectl: %v", err)
	}
}

// cmdAwaitKube runs kubectl again and again until it succeeds.
func cmdAwaitKube(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: awaitkube ARG...")
	}
	for deadline := time.Now().Add(patience); ; pause() {
		out, err := runKubectl(ts.MkAbs("."), ts.Getenv("KUBECONFIG"), args...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("kubectl %s fails after %v: %v: %s", strings.Join(args, " "), patience, err, out)
		}
	}
}

// cmdAs switches the script to the user NAME, who has only the rights granted to it.
func cmdAs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: as USER")
	}
	path, err := cluster.UserKubeconfig(args[0])
	ts.Check(err)
	to := ts.MkAbs(args[0] + ".kubeconfig")
	ts.Check(contextIn(path, to, ts.Getenv("NS")))
	ts.Setenv("KUBECONFIG", to)
}

// scrubs replace what differs between runs.
var scrubs = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "HH:MM:SS"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`#[0-9a-f]{4,16}\b`), "#HASH"},
	{regexp.MustCompile(`live after [0-9.]+ (?:s|min)(?: \d+ s)?`), "live after N s"},
	// Only on a slow machine: a change that was seen late, and an API server that did not answer.
	{regexp.MustCompile(` +\(seen (?:TIME|HH:MM:SS)\)`), ""},
	{regexp.MustCompile(`(?m)^\S+ +! .*\n`), ""},
	{regexp.MustCompile(`\b(existed|after|in) (\d+ (?:s|min)(?: \d+ s)?|less than 1 s)\b *`), "$1 N s "},
	{regexp.MustCompile(`\d+ objects?`), "N objects"},
	{regexp.MustCompile(`: \d\d+ kinds`), ": N kinds"}, // of all kinds: another test may have defined one more
	{regexp.MustCompile(`"resourceVersion":"\d+"`), `"resourceVersion":"N"`},
	{regexp.MustCompile(`"id":"[a-z2-7]{26}"`), `"id":"ID"`},
}

// cmdScrub writes FILE to FILE.txt with the scrubs applied.
func cmdScrub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: scrub FILE")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	text := strings.ReplaceAll(string(data), ts.Getenv("NS"), "NS")
	text = strings.ReplaceAll(text, "\r\n", "\n") // a terminal's line ends
	for _, s := range scrubs {
		text = s.re.ReplaceAllString(text, s.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".txt"), []byte(text), 0o600))
}

// cmdLines checks that FILE has at most N lines.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE MAX")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var limit int
	_, err = fmt.Sscan(args[1], &limit)
	ts.Check(err)
	if n := bytes.Count(data, []byte("\n")); n > limit {
		ts.Fatalf("%s has %d lines, more than %d:\n%s", args[0], n, limit, data)
	}
}
