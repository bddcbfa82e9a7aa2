package compare

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is one life of a peer.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
	log  *os.File
}

// Usage is what the lives of a peer took.
type Usage struct {
	CPU  time.Duration // user and system
	Peak int64         // largest resident memory of a life, bytes
}

// start starts a command; its output goes to the end of a file.
func start(log string, env []string, name string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	p := &Process{cmd: exec.Command(name, args...), done: make(chan struct{}), log: out}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, out, out
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// ended reports whether the process ended by itself.
func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end sends a signal, waits for the end, and adds what the process took. A process that ignores the signal for 20 s is killed.
func (p *Process) end(s os.Signal, to *Usage) error {
	early := p.ended()
	to.Peak = max(to.Peak, peak(p.cmd.Process.Pid))
	err := p.cmd.Process.Signal(s)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		err = errors.Join(err, fmt.Errorf("process %d ignores %v", p.cmd.Process.Pid, s), p.cmd.Process.Kill())
		<-p.done
	}
	state := p.cmd.ProcessState
	to.CPU += state.UserTime() + state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok && to.Peak == 0 {
		to.Peak = usage.Maxrss * 1024
	}
	if early {
		err = fmt.Errorf("it ended by itself: %w", p.err)
	}
	return errors.Join(err, p.log.Close())
}

// peak returns the largest resident memory of a running process, bytes; 0 if the system does not say.
func peak(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var kib int64
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			_, _ = fmt.Sscanf(string(rest), "%d kB", &kib)
		}
	}
	return kib * 1024
}
