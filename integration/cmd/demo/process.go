package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// recordingMark is in the line that tattler run logs once it has caught up.
const recordingMark = "msg=recording"

const (
	readyLimit = 2 * time.Minute // until the mark is logged
	endLimit   = time.Minute     // from an interrupt to the exit
)

// process is a running tattler.
type process struct {
	name   string // the command as typed
	cmd    *exec.Cmd
	ready  chan struct{} // closed once the mark was logged
	done   chan struct{} // closed once the process has ended and err is set
	err    error
	ending atomic.Bool // we are ending it
}

// start starts tattler with our standard output, so that it finds a terminal if there is one. Its status lines
// pass through us, because we wait for the line with the mark.
func (d *demo) start(ctx context.Context, mark string, args ...string) (*process, error) {
	p := &process{
		name:  "tattler " + shell(args),
		cmd:   exec.Command(d.Tattler, args...),
		ready: make(chan struct{}),
		done:  make(chan struct{}),
	}
	d.narrate(p.name)
	p.cmd.Env, p.cmd.Dir = d.environment(), d.dir
	p.cmd.Stdout = d.Out
	status, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start tattler: %w", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tattler: %w", err)
	}
	go func() {
		p.relay(status, d.Err, mark)
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// environment is the environment of every tattler process: its files are kept next to the manifests.
func (d *demo) environment() []string {
	env := append(os.Environ(), "XDG_STATE_HOME="+d.dir+"/state", "XDG_CONFIG_HOME="+d.dir+"/config")
	if d.cluster != nil {
		env = append(env, "KUBECONFIG="+d.cluster.Kubeconfig())
	}
	return env
}

// relay copies the status lines until the process closes them.
func (p *process) relay(from io.Reader, to io.Writer, mark string) {
	said := false
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		_, _ = io.WriteString(to, line) // continue reading if the terminal is closed
		if !said && strings.Contains(line, mark) {
			said = true
			close(p.ready)
		}
		if err != nil {
			return
		}
	}
}

func (p *process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("%s is not ready after %v", p.name, readyLimit))
	defer cancel()
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return p.early()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errEarly is returned for a process that ended by itself.
var errEarly = errors.New("ended before the demo did")

func (p *process) early() error { return fmt.Errorf("%s %w: %w", p.name, errEarly, p.err) }

// guard cancels the context when the process ends by itself.
func (p *process) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	go func() {
		select {
		case <-p.done:
			if !p.ending.Load() {
				cancel(p.early())
			}
		case <-ctx.Done():
		}
	}()
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	p.ending.Store(true)
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.done
}

// stop interrupts the process, like Ctrl-C, and waits for its end. It fails if that takes too long or the exit
// status is not 0.
func (p *process) stop() error {
	p.ending.Store(true)
	// The process may have ended by itself, or by the Ctrl-C that ends us.
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupt tattler: %w", err)
	}
	select {
	case <-p.done:
	case <-time.After(endLimit):
		p.kill()
		return fmt.Errorf("%s did not end within %v of an interrupt", p.name, endLimit)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w", p.name, p.err)
	}
	return nil
}
