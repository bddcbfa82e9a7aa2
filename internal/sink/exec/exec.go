// Package exec is the sink that runs a program for each change, or for a batch of them, with the events on
// its stdin, one line each.
//
// The exit code acknowledges: 0 says that the changes are taken. 65 (EX_DATAERR), or what permanentExitCodes
// has, is permanent; where it answers a batch, its changes are given one by one, so that the one to blame is
// known. Anything else passes: another code (75, EX_TEMPFAIL, is meant for it), a signal, no answer in time, a
// program that cannot be started. The beginning of stderr is a part of the error, with the values of env
// blotted out; stdout is thrown away. A repeat is another run with the same id: the program remembers
// ids where that matters.
//
// The program is killed, with all that it has started in its group, when its time is over, and two seconds
// after the context has ended. It outlives a kill -9 of ours; then its changes come again.
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
	blot *sink.Blot
	// closed ends with Close, which may come from another goroutine than Send.
	closed context.Context
	close  context.CancelFunc
}

// New makes a sink; it looks for the program, and runs nothing.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("exec sink: %w", err)
	}
	if _, err := exec.LookPath(o.program()); err != nil {
		return nil, fmt.Errorf("exec sink: command: %w", err)
	}
	s := &Sink{o: o.withDefaults(), blot: blotter(o)}
	s.closed, s.close = context.WithCancel(context.Background())
	return s, nil
}

// program is where the program is, seen from our own directory.
func (o Options) program() string {
	path := o.Command[0]
	if o.Dir == "" || filepath.IsAbs(path) || filepath.Base(path) == path {
		return path
	}
	return o.Dir + string(filepath.Separator) + path // with a slash, which Join may take away
}

func (s *Sink) String() string { return "exec " + s.o.Command[0] }

// Patience is the time of one run, and some to start it: with less it would be killed each time.
func (s *Sink) Patience() time.Duration { return s.o.Timeout + finishing }

// Close ends a run that is under way.
func (s *Sink) Close(context.Context) error {
	s.close()
	return nil
}

// Send runs the program, once with all messages or once with each.
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

// each runs the program for one message after the other, until the first error.
func (s *Sink) each(ctx context.Context, ms []sink.Message) (int, error) {
	for i := range ms {
		if err := s.run(ctx, ms[i:i+1]); err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

// lingering is how long what the program left behind may keep stderr open once it has ended.
const lingering = time.Second

// finishing is how long a run that is under way may go on once the context has ended: what is killed halfway
// is done again.
const finishing = 2 * time.Second

// run runs the program once.
func (s *Sink) run(ctx context.Context, ms []sink.Message) error {
	if s.closed.Err() != nil {
		return s.failed(errors.New("the sink is closed"), nil)
	}
	if err := ctx.Err(); err != nil {
		return s.failed(err, nil)
	}
	during, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	defer context.AfterFunc(ctx, func() {
		late := time.AfterFunc(finishing, cancel)
		context.AfterFunc(during, func() { late.Stop() })
	})()
	var stdin bytes.Buffer
	for _, m := range ms {
		stdin.Write(m.Body)
		stdin.WriteByte('\n')
	}
	stderr := &beginning{}
	cmd := exec.CommandContext(during, s.o.Command[0], s.o.Command[1:]...) //nolint:gosec // what to run is the user's
	cmd.Stdin, cmd.Stderr, cmd.Dir, cmd.Env = &stdin, stderr, s.o.Dir, s.o.environment(ms)
	cmd.WaitDelay = lingering
	group(cmd)
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		return nil
	}
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil // it did not read all of its input, and does not have to
	case ctx.Err() != nil:
		err = ctx.Err()
	case s.closed.Err() != nil:
		err = errors.New("the sink is closed")
	case during.Err() != nil:
		err = fmt.Errorf("no end within %s: it was killed (see timeout)", s.o.Timeout)
	case errors.As(err, &exit) && slices.Contains(s.o.PermanentExitCodes, exit.ExitCode()):
		return &sink.PermanentError{Err: s.failed(err, stderr)}
	case !errors.As(err, &exit):
		err = fmt.Errorf("%w (see command and dir)", err)
	}
	return s.failed(err, stderr)
}

// failed is an error with the program's name and the beginning of what it wrote to stderr.
func (s *Sink) failed(err error, stderr *beginning) error {
	err = fmt.Errorf("run %s: %w", filepath.Base(s.o.Command[0]), s.blot.Error(err))
	if stderr == nil {
		return err
	}
	if said := s.blot.Excerpt(stderr.text); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// beginning keeps the beginning of what is written to it.
type beginning struct{ text []byte }

func (b *beginning) Write(p []byte) (int, error) {
	const most = 4 << 10
	b.text = append(b.text, p[:min(len(p), most-len(b.text))]...)
	return len(p), nil
}
