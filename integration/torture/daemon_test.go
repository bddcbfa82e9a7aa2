package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// daemon is `tattler run`, started repeatedly.
type daemon struct {
	*testing.T
	dir        string // of its configuration, key and output
	journal    string
	kubeconfig string
	env        []string // additional variables
	// observer, if set, observes the daemon, which reaches it through the proxy.
	observer *observer
	proxy    *proxy

	runs    int
	running *process   // nil: not running
	off     []interval // after each kill; the last may be open
	errors  lines      // of all runs
}

// process is one run.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	out    string // file of its stdout
	errors lines
	done   chan struct{}
	err    error // valid once done is closed
}

// lines is the text written to stderr.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	also *lines
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.also != nil {
		_, _ = l.also.Write(b)
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(text string) int { return strings.Count(l.String(), text) }

// newDaemon prepares a daemon with its configuration in JSON, which is also YAML.
func newDaemon(t *testing.T, journal, kubeconfig string, config fields) *daemon {
	t.Helper()
	d := &daemon{T: t, dir: t.TempDir(), journal: journal, kubeconfig: kubeconfig}
	config["apiVersion"], config["kind"] = "tattler.dev/v1alpha1", "Config"
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.config(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("the daemon's last lines:\n%s", tail(d.errors.String(), 6000))
		}
	})
	return d
}

// newObservedDaemon prepares a daemon with a separate kubeconfig for each run.
func newObservedDaemon(t *testing.T, journal string, o *observer, p *proxy, config fields) *daemon {
	t.Helper()
	d := newDaemon(t, journal, filepath.Join(t.TempDir(), "kubeconfig"), config)
	d.observer, d.proxy = o, p
	return d
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (d *daemon) config() string { return filepath.Join(d.dir, "tattler.yaml") }

// environment is the command's environment, without the user's variables.
func (d *daemon) environment() []string {
	env := append(os.Environ(), playEnv+"=1", "KUBECONFIG="+d.kubeconfig, "TZ=UTC", "GORACE=halt_on_error=1", "GOTRACEBACK=all",
		"XDG_CONFIG_HOME="+filepath.Join(d.dir, "config"), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"), "HOME="+d.dir,
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2") // silent connections are detected sooner
	return append(env, d.env...)
}

// start starts the daemon without waiting until it is ready.
func (d *daemon) start() {
	d.Helper()
	if d.running != nil {
		d.Fatal("the daemon runs already")
	}
	d.runs++
	if n := len(d.off); n > 0 && d.off[n-1].to.IsZero() {
		d.off[n-1].to = time.Now()
	}
	if o := d.observer; o != nil {
		if err := o.kubeconfig(d.kubeconfig, d.proxy.address(), d.runs); err != nil {
			d.Fatal(err)
		}
		o.did("run %d starts", d.runs)
	}
	p := &process{out: filepath.Join(d.dir, fmt.Sprintf("out-%05d", d.runs)), done: make(chan struct{})}
	p.errors.also = &d.errors
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	p.cmd = exec.Command(self, "run", "-c", d.config())
	p.cmd.Env, p.cmd.Stderr, p.cmd.Dir = d.environment(), &p.errors, d.dir
	out, err := os.OpenFile(p.out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer out.Close()
	p.cmd.Stdout = out
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		d.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	d.running = p
}

// alive reports whether the daemon runs. A run that ended by itself is dropped; the next ready starts another.
func (d *daemon) alive() bool {
	if d.running == nil {
		return false
	}
	select {
	case <-d.running.done:
		d.Logf("the daemon ended by itself: %v: %s", d.running.err, tail(d.running.errors.String(), 300))
		d.bad(d.running)
		d.running = nil
		return false
	default:
		return true
	}
}

// bad fails the test if a run's log shows a fault of the daemon.
func (d *daemon) bad(p *process) {
	d.Helper()
	text := p.errors.String()
	for _, sign := range []string{"DATA RACE", "panic:", "fatal error:", "goroutine 1 ["} {
		if i := strings.Index(text, sign); i >= 0 {
			d.Errorf("run %d: %.6000s", d.runs, text[max(0, i-200):])
			return
		}
	}
}

// reports returns an error unless the current run has delivered an absence that covers an interval.
func (d *daemon) reports(i interval) error {
	if !d.alive() {
		return nil // the next one covers it, and the judge looks for it
	}
	all, err := os.ReadFile(d.running.out)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(all) {
		var e event.Event
		if !bytes.Contains(line, []byte(`"op":"absent"`)) || json.Unmarshal(line, &e) != nil {
			continue
		}
		if o := e.Data.Observed; o.After != nil && !o.After.After(i.from) && !o.At.Before(i.to) {
			return nil
		}
	}
	return fmt.Errorf("the daemon reports no absence from %s to %s", clock(i.from), clock(i.to))
}

// kill ends the daemon with SIGKILL.
func (d *daemon) kill() {
	if !d.alive() {
		return
	}
	if d.observer != nil {
		d.observer.did("run %d is killed", d.runs)
	}
	d.off = append(d.off, interval{from: time.Now()})
	_ = d.running.cmd.Process.Kill()
	<-d.running.done
	d.bad(d.running)
	d.running = nil
}

// ready starts the daemon if it does not run, restarts it if it ends, and waits until it records.
func (d *daemon) ready(ctx context.Context) {
	d.Helper()
	if err := within(ctx, 5*time.Minute, func() error {
		if !d.alive() {
			d.start()
		}
		if d.running.errors.count("msg=recording") == 0 {
			return errors.New("the daemon does not record")
		}
		return nil
	}); err != nil {
		d.Fatalf("%v\n%s", err, tail(d.errors.String(), 4000))
	}
}

// end stops the daemon regularly.
func (d *daemon) end() {
	d.Helper()
	if !d.alive() {
		d.Fatal("the daemon does not run")
	}
	p := d.running
	d.running = nil
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		d.Fatalf("the daemon does not end:\n%s", p.errors.String())
	}
	d.bad(p)
	if p.err != nil {
		d.Errorf("the daemon ended with %v\n%s", p.err, tail(p.errors.String(), 2000))
	}
}

// tattler runs another verb of the command and returns its output.
func (d *daemon) tattler(args ...string) (stdout, stderr string) {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = d.environment()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	stdin, err := cmd.StdinPipe() // open as long as the command runs
	if err != nil {
		d.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Run(); err != nil {
		d.Errorf("tattler %q: %v\n%s", args, err, tail(problems.String(), 2000))
	}
	return out.String(), problems.String()
}

// printed returns the lines that all runs wrote to stdout. A last line torn by a kill is omitted.
func (d *daemon) printed() []receipt {
	d.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "out-*"))
	if err != nil {
		d.Fatal(err)
	}
	slices.Sort(files)
	var all []receipt
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			d.Fatal(err)
		}
		for line := range strings.SplitAfterSeq(string(data), "\n") {
			if whole, ok := strings.CutSuffix(line, "\n"); ok {
				all = append(all, receipt{[]byte(whole)})
			}
		}
	}
	return all
}

// fileLines returns the lines of a rotated file, the oldest first. No line may be torn.
func fileLines(t *testing.T, path string) []receipt {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	age := func(file string) (n int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(file, path), ".%d", &n) // the newest has no number
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return age(b) - age(a) })
	var all []receipt
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			t.Errorf("%s ends with a torn line: %q", f, tail(string(data), 200))
		}
		for line := range strings.Lines(string(data)) {
			all = append(all, receipt{[]byte(strings.TrimSuffix(line, "\n"))})
		}
	}
	return all
}
