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

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// process is one component that this process started. It is not restarted:
// a restart is a new process.
type process struct {
	name    string
	pid     int
	logPath string
	logFrom int64         // where in the log this run begins, bytes
	done    chan struct{} // closed when it has ended and err is set
	err     error         // why it ended, nil for exit status 0
}

// startComponent starts path with args. Its output is appended to logPath. Its
// environment is empty but for HOME and TMPDIR, both below home, so that nothing
// of the user's (KUBECONFIG, proxies) reaches it.
//
// A detached process outlives this one, in a session of its own.
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

// startProcess starts cmd in a process group of its own and waits for it in the
// background: what Wait returns comes once on the channel.
//
// Unless detached, the kernel kills the process when we die, however we die
// (Linux only: PR_SET_PDEATHSIG). "We" is, for the kernel, the thread that
// started it, not the process, and the Go runtime ends threads that it does not
// need. So one goroutine locks itself to a thread, starts the process there, and
// keeps the thread until the process has ended.
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

// alive says whether it has not ended. A nil process has.
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

// stop asks it to end, insists after stopGrace or when ctx ends, and waits until
// it is gone. It is nil for a process that has ended already.
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

// kill ends it with SIGKILL and waits until it is gone.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := killGroup(p.pid); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done // SIGKILL cannot be refused
	return nil
}

// killGroup kills a process and its children. A group that is gone is no error.
func killGroup(pid int) error { return signalGroup(pid, syscall.SIGKILL) }

func signalGroup(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", pid, err)
	}
	return nil
}

// log is what this run of it has written, at most the last 64 KiB.
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

// errPortTaken tells that a process could not listen: another took its port
// between our choice and its start.
var errPortTaken = errors.New("port is taken")

// exitError describes its end, with the last lines of its log.
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

// waitReady calls check until it returns nil. It gives up when the process ends,
// after limit, or with ctx; the error carries what check said last and the last
// lines of the log.
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
	if err == nil && !p.alive() { // another's server may have answered
		err = p.exitError()
	}
	if err == nil || !p.alive() {
		return err
	}
	return fmt.Errorf("wait for %s: %w (last: %w); the end of %s:\n%s", p.name, err, last, p.logPath, lastLines(p.log(), 15))
}

// poll calls f at once and then every interval until it is done, fails, or ctx
// ends, whose cause is then the error.
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
