package browser

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is a running tattler.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error
	once sync.Once
	out  output
}

// output is what a program wrote to both of its outputs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// tattler starts the command, which ends with the test.
func tattler(t *testing.T, args ...string) *program {
	t.Helper()
	path, err := exec.LookPath("tattler") // this test binary
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(path, args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), "TZ=UTC")
	if cluster != nil {
		p.cmd.Env = append(p.cmd.Env, "KUBECONFIG="+cluster.Kubeconfig())
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(p.end)
	return p
}

// end interrupts the program and waits for it.
func (p *program) end() { p.once.Do(p.interrupt) }

func (p *program) interrupt() {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended, which done says
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("tattler: %v\n%s", err, p.out.String())
		}
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("tattler did not end within %v of an interrupt\n%s", patience, p.out.String())
	}
}

// said waits until the program has written something that matches, and returns it.
func (p *program) said(pattern string) string {
	p.t.Helper()
	re, end := regexp.MustCompile(pattern), time.Now().Add(3*patience)
	for {
		if s := re.FindString(p.out.String()); s != "" {
			return s
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %q within %v:\n%s", pattern, 3*patience, p.out.String())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// ui starts tattler ui on a journal and returns the page's address.
func ui(t *testing.T, journal string) string {
	t.Helper()
	return strings.TrimSpace(tattler(t, "ui", "--journal", journal).said(`http://127\.0\.0\.1:\d+/\n`))
}
