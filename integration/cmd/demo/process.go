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
	"time"
)

// liveMark is in the line in which tattler watch says that it has seen everything there was.
const liveMark = "live after"

const (
	liveLimit = 60 * time.Second // to become live
	endLimit  = 10 * time.Second // to end after an interrupt
)

var errEarly = errors.New("tattler watch ended before the demo did")

// watch is a running tattler watch.
type watch struct {
	cmd  *exec.Cmd
	live chan struct{} // closed when it has said liveMark
	done chan struct{} // closed when it has ended and err is set
	err  error
}

// startWatch starts it with its output where ours goes, so that it finds a terminal if there is one.
// Its status lines pass through us, because we wait for one of them.
func startWatch(ctx context.Context, o options, kubeconfig string) (*watch, error) {
	w := &watch{
		cmd:  exec.Command(o.Tattler, append([]string{"watch"}, o.Watch...)...),
		live: make(chan struct{}),
		done: make(chan struct{}),
	}
	w.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	w.cmd.Stdout = o.Out
	status, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start tattler: %w", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tattler: %w", err)
	}
	go func() {
		w.relay(status, o.Err)
		w.err = w.cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

// relay copies its status lines until it closes them.
func (w *watch) relay(from io.Reader, to io.Writer) {
	said := false
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		_, _ = io.WriteString(to, line) // a closed terminal is no reason to stop reading
		if !said && strings.Contains(line, liveMark) {
			said = true
			close(w.live)
		}
		if err != nil {
			return
		}
	}
}

func (w *watch) waitLive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, liveLimit, fmt.Errorf("tattler watch is not live after %v", liveLimit))
	defer cancel()
	select {
	case <-w.live:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop interrupts it, as Ctrl-C does, and waits for its end. It is an error if that takes long or if
// its status is not 0.
func (w *watch) stop() error {
	// It may have ended by itself, or by the Ctrl-C that ends us.
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupt tattler: %w", err)
	}
	select {
	case <-w.done:
	case <-time.After(endLimit):
		_ = w.cmd.Process.Kill() // it is gone if this fails
		<-w.done
		return fmt.Errorf("tattler watch did not end within %v of an interrupt", endLimit)
	}
	if w.err != nil {
		return fmt.Errorf("tattler watch: %w", w.err)
	}
	return nil
}
