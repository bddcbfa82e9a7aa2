package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/harness"
)

const (
	// startTime bounds the start of a server.
	startTime = 2 * time.Minute
	// blockTime bounds a blocking read, after which the reader checks whether to end.
	blockTime = 200 * time.Millisecond
)

// process is a running server.
type process struct {
	stop  func() error
	out   *output
	ended chan struct{} // closed when the process has ended
	err   error         // the result of Wait, set before ended closes
}

// output keeps a server's output. It may be written while it is read.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
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

// begin starts a server that dies with this process.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{out: &output{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.out, p.out, time.Second
	ended, stop, err := harness.StartProcess(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.stop = stop
	go func() {
		p.err = <-ended
		close(p.ended)
	}()
	return p, nil
}

// ready waits until the server answers.
func (p *process) ready(ctx context.Context, answers func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("the server does not start"))
	defer cancel()
	for !answers() {
		select {
		case <-p.ended:
			return fmt.Errorf("the server ended: %w; its output:\n%s", p.err, p.out)
		case <-ctx.Done():
			return fmt.Errorf("%w; its output:\n%s", context.Cause(ctx), p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// end kills the server's process group.
func (p *process) end() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the server ended early: %w; its output:\n%s", p.err, p.out)
	default:
	}
	err := p.stop()
	<-p.ended
	return err
}

// freeAddress returns an unused address of this machine. Another process may take it before the caller does.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// split splits an address into host and port.
func split(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // cannot happen: the address is a listener's
	}
	return host, port
}
