package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is the time that a child has after its deadline to report that it was not done.
const grace = 10 * time.Second

// Run runs a job in a new process and returns its sample.
func Run(ctx context.Context, in Input) (Sample, error) { return runAs(ctx, in, nil, nil) }

// runAs is Run with a command that runs this program, and with additional variables. Without a command it runs this program
// directly.
func runAs(ctx context.Context, in Input, command, env []string) (Sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.limit()+grace, fmt.Errorf("killed: still running %v after its deadline", grace))
	defer cancel()
	c, err := startChild(ctx, in, command, env)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", in.Job, err)
	}
	a, err := c.read()
	werr := c.wait()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = errors.Join(err, werr)
	case a.Error != "":
		err = errors.New(a.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w%s", in.Job, err, c.lastWords())
	}
	return a.Sample, nil
}

// Process is a running service.
type Process struct {
	Server Server
	c      *child
}

// Start starts a service and returns when it is ready. The service ends with ctx or by Stop.
func Start(ctx context.Context, in Input) (*Process, error) {
	c, err := startChild(ctx, in, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", in.Job, err)
	}
	a, err := c.read()
	if err == nil && a.Ready == nil {
		err = errors.New(a.Error)
	}
	if err != nil {
		err = errors.Join(err, c.stdin.Close(), c.wait())
		return nil, fmt.Errorf("start %s: %w%s", in.Job, err, c.lastWords())
	}
	return &Process{Server: *a.Ready, c: c}, nil
}

// Stop ends the service and waits until its process has ended.
func (p *Process) Stop() error {
	if err := errors.Join(p.c.stdin.Close(), p.c.wait()); err != nil {
		return fmt.Errorf("stop service: %w%s", err, p.c.lastWords())
	}
	return nil
}

// child is a process that runs a job.
type child struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	answers *bufio.Reader
	pipe    *os.File
	stderr  *tail
	ended   chan error
}

func startChild(ctx context.Context, in Input, command, env []string) (*child, error) {
	if command == nil {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		command = []string{exe}
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode input: %w", err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer to.Close()
	c := &child{pipe: from, answers: bufio.NewReader(from), stderr: &tail{}, ended: make(chan error, 1)}
	c.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	c.cmd.Env = append(append(os.Environ(), inputVariable+"="+string(text)), env...)
	if in.MemoryLimit > 0 {
		c.cmd.Env = append(c.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", in.MemoryLimit))
	}
	c.cmd.Stdout, c.cmd.Stderr = c.stderr, c.stderr
	c.cmd.ExtraFiles = []*os.File{to}
	c.cmd.SysProcAttr = dieWithParent()
	c.cmd.WaitDelay = time.Second
	if c.stdin, err = c.cmd.StdinPipe(); err == nil {
		err = c.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start process: %w", err), from.Close())
	}
	return c, nil
}

// start starts the process and waits for it in the background. Both happen on a thread that exists as
// long as the process: the kernel kills the child when that thread ends.
func (c *child) start() error { return startOnThread(c.cmd, c.ended) }

func startOnThread(cmd *exec.Cmd, ended chan<- error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return <-started
}

// StartProcess starts a program that a job needs, such as a server. It dies with this process (on Linux,
// however that dies). ended receives the result of Wait once; kill ends the whole process group.
func StartProcess(cmd *exec.Cmd) (ended <-chan error, kill func() error, err error) {
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Setpgid = true
	c := make(chan error, 1)
	if err := startOnThread(cmd, c); err != nil {
		return nil, nil, err
	}
	return c, func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }, nil
}

// read reads the child's answer.
func (c *child) read() (answer, error) {
	line, err := c.answers.ReadBytes('\n')
	if err != nil {
		return answer{}, errors.New("the process ended without an answer")
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("read answer %q: %w", line, err)
	}
	return a, nil
}

func (c *child) wait() error {
	defer c.pipe.Close()
	return <-c.ended
}

func (c *child) lastWords() string {
	if s := strings.TrimSpace(c.stderr.String()); s != "" {
		return "; it said:\n" + s
	}
	return ""
}

// tail is a writer that keeps only the end.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4 << 10
	t.b = append(t.b, p...)
	if n := len(t.b); n > 2*most {
		t.b = append(t.b[:0], t.b[n-most:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.b, nil)) }
