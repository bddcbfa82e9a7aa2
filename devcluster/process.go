package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM, on a busy machine.
const stopGrace = 30 * time.Second

// process is one component that this process started. A restarted component is a
// new process.
type process struct {
	name    string
	pid     int
	logPath string
	logFrom int64         // offset of this run in the log, bytes
	done    chan struct{} // closed when the process has ended and err is set
	err     error         // why the process ended; nil for exit status 0
}

// startComponent starts path with args and appends its output to logPath. Its
// environment has only HOME, TMPDIR and PATH, so that the user's KUBECONFIG and
// proxies do not affect it.
//
// A detached process outlives this one, in a new session.
func startComponent(name, path string, args []string, logPath, home string, detached bool) (*process, error) {
	for _, dir := range []string{filepath.Dir(logPath), home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("start %s: make folder: %w", name, err)
		}
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open log: %w", name, err)
	}
	defer log.Close() // the child has its own descriptor
	fi, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: stat log: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := startProcess(cmd, detached)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, pid: cmd.Process.Pid, logPath: logPath, logFrom: fi.Size(), done: make(chan struct{})}
	go func() {
		p.err = <-ended
		close(p.done)
	}()
	return p, nil
}

// startProcess starts cmd in a new process group and waits for it in the
// background. The channel receives the result of Wait once.
//
// Unless detached, the kernel kills the process when this one dies in any way
// (Linux only: PR_SET_PDEATHSIG). The kernel in fact watches the thread that
// started the process, and the Go runtime may end a thread. So a goroutine
// locks itself to a thread, starts the process there, and keeps the thread until
// the process has ended.
func startProcess(cmd *exec.Cmd, detached bool) (<-chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		if !detached {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		cmd.SysProcAttr = sysProcAttr(detached)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		ended <- cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return ended, nil
}

// alive reports whether the process runs. A nil process does not.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop sends SIGTERM, and SIGKILL after stopGrace or when ctx ends, and waits for
// the end. It returns nil if the process has already ended.
func (p *process) stop(ctx context.Context) error {
	if !p.alive() {
		return nil
	}
	if err := signalGroup(p.pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	return p.kill()
}

// kill ends the process with SIGKILL and waits for the end.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := killGroup(p.pid); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done // a process cannot ignore SIGKILL
	return nil
}

// killGroup kills a process and its children. It returns nil if they have ended.
func killGroup(pid int) error { return signalGroup(pid, syscall.SIGKILL) }

func signalGroup(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", pid, err)
	}
	return nil
}

// log returns the output of this run, at most the last 64 KiB.
func (p *process) log() string {
	const limit = 64 << 10
	f, err := os.Open(p.logPath)
	if err != nil {
		return ""
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(p.logFrom, fi.Size()-limit)
	buf := make([]byte, max(0, fi.Size()-from))
	n, _ := f.ReadAt(buf, from)
	return string(buf[:n])
}

// errPortTaken means that a process could not listen: another process took the
// port after we chose it.
var errPortTaken = errors.New("port is taken")

// exitError describes the end of the process, with the last lines of its log.
func (p *process) exitError() error {
	log := p.log()
	why := "exited"
	if p.err != nil {
		why = p.err.Error()
	}
	if strings.Contains(log, "address already in use") {
		return fmt.Errorf("%s ended (%s): %w; the end of %s:\n%s", p.name, why, errPortTaken, p.logPath, lastLines(log, 15))
	}
	return fmt.Errorf("%s ended (%s); the end of %s:\n%s", p.name, why, p.logPath, lastLines(log, 15))
}

// waitReady calls check until it returns nil. It fails when the process ends,
// after limit, or with ctx. The error contains the last error of check and the
// last lines of the log.
func (p *process) waitReady(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %v", limit))
	defer cancel()
	var last error
	err := poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if !p.alive() {
			return false, p.exitError()
		}
		last = check(ctx)
		return last == nil, nil
	})
	if err == nil && !p.alive() { // another process may have answered
		err = p.exitError()
	}
	if err == nil || !p.alive() {
		return err
	}
	return fmt.Errorf("wait for %s: %w (last: %w); the end of %s:\n%s", p.name, err, last, p.logPath, lastLines(p.log(), 15))
}

// poll calls f at once and then at every interval until f is done or fails, or
// ctx ends. The error is then the cause of ctx.
func poll(ctx context.Context, interval time.Duration, f func(context.Context) (done bool, err error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if done, err := f(ctx); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
