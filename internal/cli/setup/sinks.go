package setup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// MakeSinks makes the configured sinks; out is stdout. Call open to open their files once the journal is locked: before
// that, a running daemon may use them.
func (s *Setup) MakeSinks(out io.Writer) (all []deliver.Options, open func() error, err error) {
	var opens []func() error
	for i := range s.Sinks {
		c := &s.Sinks[i]
		made, err := s.newSink(c, out)
		if err != nil {
			return nil, nil, failure(c, err)
		}
		if f, ok := made.(interface{ Open() error }); ok {
			opens = append(opens, func() error { return failure(c, f.Open()) })
		}
		all = append(all, options(c, made))
	}
	return all, func() error {
		for _, open := range opens {
			if err := open(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// failure returns the error of a sink, without its credentials.
func failure(c *config.Sink, err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{text: fmt.Sprintf("sink %s: %s", c.Name, c.Hide(err.Error())), err: err}
}

// sinkError is the error of a sink, without its credentials. errors.Is sees the error that has them, such as of a full disk;
// errors.As and errors.Unwrap do not, so that nothing prints it.
type sinkError struct {
	text string
	err  error
}

func (e *sinkError) Error() string { return e.text }

// Is reports whether the error is, or wraps, target.
func (e *sinkError) Is(target error) bool { return errors.Is(e.err, target) }

func options(c *config.Sink, to sink.Sink) deliver.Options {
	o := deliver.Options{
		Name: c.Name, Sink: to, Snapshots: c.Snapshots, From: deliver.From(c.From), MaxBytes: int(c.MaxBytes),
		Retry: deliver.Retry{Min: c.Retry.Min, Max: c.Retry.Max, Attempts: c.Retry.Attempts, GiveUp: c.Retry.GiveUp}, Paused: c.Paused,
	}
	for _, part := range c.Include {
		o.Include = append(o.Include, deliver.Include(part))
	}
	if c.Filter != nil {
		o.Where = c.Filter
	}
	return o
}

// Place returns a sink's description, such as file changes.jsonl, without credentials. It opens nothing, but fails if a
// folder or a certificate is missing.
func (s *Setup) Place(c *config.Sink) (string, error) {
	to, err := s.newSink(c, io.Discard)
	if err != nil {
		return "", failure(c, err)
	}
	return to.String(), to.Close(context.Background())
}

func (s *Setup) newSink(c *config.Sink, out io.Writer) (sink.Sink, error) {
	return s.program.Make(c, kinds.Env{Agent: s.program.Name + "/" + buildinfo.Version(), Out: out})
}

// SinkNames returns the sinks' names, in order.
func (s *Setup) SinkNames() []string {
	var names []string
	for _, c := range s.Sinks {
		names = append(names, c.Name)
	}
	return names
}

// MakeSink makes a configured sink; out is stdout. Its owner closes it. It connects and opens files later.
func (s *Setup) MakeSink(c *config.Sink, out io.Writer) (sink.Sink, error) {
	made, err := s.newSink(c, out)
	return made, failure(c, err)
}
