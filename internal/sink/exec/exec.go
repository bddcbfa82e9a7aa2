// Package exec is the sink that runs a program for each change, or for a batch of them, with the events on
// its stdin, one line each.
//
// The exit code acknowledges: 0 means that the program took the changes. A code in permanentExitCodes, by default
// 65 (EX_DATAERR), is a permanent error; after a batch, the sink then runs the program once for each change to
// find the one to blame. Every other outcome is temporary: another code (75, EX_TEMPFAIL, is meant for this), a
// signal, a timeout, a program that cannot be started. The error includes the beginning of stderr, with the values of
// env masked; stdout is discarded. A repeat is another run with the same id; the program must remember ids if repeats
// matter.
//
// After the timeout, and two seconds after the context has ended, the sink kills the program and its process group.
// The program survives a kill -9 of the daemon; its changes are then sent again.
package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink runs a program.
type Sink struct {
	o    Options
	mask *sink.Mask
	// closed is cancelled by Close, which may run concurrently with Send.
	closed context.Context
	close  context.CancelFunc
	// grace and waitDelay are constants, except in tests.
	grace, waitDelay time.Duration
}

// New returns a sink. It looks up the program, but runs nothing.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("exec sink: %w", err)
	}
	if _, err := exec.LookPath(o.program()); err != nil {
		return nil, fmt.Errorf("exec sink: command: %w", err)
	}
	s := &Sink{o: o.withDefaults(), mask: newMask(o), grace: grace, waitDelay: waitDelay}
	s.closed, s.close = context.WithCancel(context.Background())
	return s, nil
}

// program returns the program's path, relative to our own directory.
func (o Options) program() string {
	path := o.Command[0]
	if o.Dir == "" || filepath.IsAbs(path) || filepath.Base(path) == path {
		return path
	}
	return o.Dir + string(filepath.Separator) + path // Join could remove the separator that makes it a path
}

func (s *Sink) String() string { return "exec " + s.o.Command[0] }

// MinSendTimeout implements sink.SlowSink: one run, and some time to start it. With less, each run would be killed.
func (s *Sink) MinSendTimeout() time.Duration { return s.o.Timeout + s.grace }

// Close kills a program that is still running.
func (s *Sink) Close(context.Context) error {
	s.close()
	return nil
}

// Send runs the program once for all messages, or once for each.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if !s.o.Batch {
		return s.each(ctx, ms)
	}
	if len(ms) == 0 {
		return 0, nil
	}
	err = s.run(ctx, ms)
	var permanent *sink.PermanentError
	switch {
	case err == nil:
		return len(ms), nil
	case len(ms) > 1 && errors.As(err, &permanent):
		return s.each(ctx, ms)
	}
	return 0, err
}

// each runs the program once per message until the first error.
func (s *Sink) each(ctx context.Context, ms []sink.Message) (int, error) {
	for i := range ms {
		if err := s.run(ctx, ms[i:i+1]); err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

// waitDelay is how long a child of the program may keep stderr open after the program has ended.
const waitDelay = time.Second

// grace is how long a program may go on after the context has ended: killed halfway, it would have to start over.
const grace = 2 * time.Second

// run runs the program once.
func (s *Sink) run(ctx context.Context, ms []sink.Message) error {
	if s.closed.Err() != nil {
		return s.failed(sink.ErrClosed, nil)
	}
	if err := ctx.Err(); err != nil {
		return s.failed(err, nil)
	}
	during, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	defer context.AfterFunc(ctx, func() {
		late := time.AfterFunc(s.grace, cancel)
		context.AfterFunc(during, func() { late.Stop() })
	})()
	var stdin bytes.Buffer
	for _, m := range ms {
		stdin.Write(m.Body)
		stdin.WriteByte('\n')
	}
	var stderr headBuffer
	cmd := exec.CommandContext(during, s.o.Command[0], s.o.Command[1:]...) //nolint:gosec // the user configures the command
	cmd.Stdin, cmd.Stderr, cmd.Dir, cmd.Env = &stdin, &stderr, s.o.Dir, s.o.environment(ms)
	cmd.WaitDelay = s.waitDelay
	group(cmd)
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		return nil
	}
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil // it did not read all of its input, which is allowed
	case ctx.Err() != nil:
		err = ctx.Err()
	case s.closed.Err() != nil:
		err = sink.ErrClosed
	case during.Err() != nil:
		err = fmt.Errorf("killed after %s (see timeout)", s.o.Timeout)
	case errors.As(err, &exit) && slices.Contains(s.o.PermanentExitCodes, exit.ExitCode()):
		err = &sink.PermanentError{Err: err}
	case !errors.As(err, &exit):
		err = fmt.Errorf("%w (see command and dir)", err)
	}
	return s.failed(err, stderr.text)
}

// failed adds the program's name and the beginning of its stderr to an error.
func (s *Sink) failed(err error, stderr []byte) error {
	if said := s.mask.Excerpt(stderr); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return s.mask.Wrap("run "+filepath.Base(s.o.Command[0]), err)
}

// headBuffer keeps the first bytes that are written to it.
type headBuffer struct{ text []byte }

func (b *headBuffer) Write(p []byte) (int, error) {
	const maxLen = 4 << 10
	b.text = append(b.text, p[:min(len(p), maxLen-len(b.text))]...)
	return len(p), nil
}
