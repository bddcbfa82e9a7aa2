// Package log is the sink that writes changes to a stream, such as stdout: as text for people or as JSON
// lines.
//
// What is written cannot be taken back: after an error, or a call that its context cut off, a part of a
// message may be there. The next one then begins on a new line. A stream that nobody reads holds back the
// sink, not its caller: one write at most is left waiting for it.
package log

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of a log sink.
type Options struct {
	// Format is how changes are written: text (the default) or json.
	Format Format `yaml:"format"`
}

// Format is how changes are written.
type Format string

// The formats. Text is what the message's Text writes, or else one line with the time, what happened and
// the object's path.
const (
	Text Format = "text"
	JSON Format = "json"
)

// Validate says what is wrong with the options, naming the key.
func (o Options) Validate() error {
	if o.Format != "" && o.Format != Text && o.Format != JSON {
		return fmt.Errorf("format: %q is neither %s nor %s", o.Format, Text, JSON)
	}
	return nil
}

// Sink writes to a stream.
type Sink struct {
	name string
	json bool

	turn chan struct{} // holds a token while something is written; guards the fields below
	w    io.Writer
	torn bool // the last write ended within a message

	closed bool
}

// New makes a sink of a stream, which it does not close; name says which, such as stdout.
func New(w io.Writer, name string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("log sink: %w", err)
	}
	return &Sink{name: name, json: o.Format == JSON, w: w, turn: make(chan struct{}, 1)}, nil
}

func (s *Sink) String() string { return "log " + s.name }

// Shows implements sink.Shower.
func (s *Sink) Shows() bool { return !s.json }

// Send writes messages, in one call.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if s.closed {
		return 0, fmt.Errorf("write to %s: closed", s.name)
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("write to %s: %w", s.name, err)
	}
	var b bytes.Buffer
	var ends []int // where each message ends
	var unshown error
	for _, m := range ms {
		whole := b.Len()
		if err := s.format(&b, m); err != nil {
			b.Truncate(whole)
			unshown = &sink.PermanentError{Err: fmt.Errorf("write as text: %w", err)}
			break
		}
		ends = append(ends, b.Len())
	}
	acked, err = s.write(ctx, b.Bytes(), ends)
	if err == nil {
		err = unshown
	}
	return acked, err
}

func (s *Sink) format(b *bytes.Buffer, m sink.Message) error {
	switch {
	case s.json:
		b.Write(m.Body)
		b.WriteByte('\n')
	case m.Text != nil:
		return m.Text(b)
	default:
		fmt.Fprintf(b, "%s %s %s\n", m.Event.Time.UTC().Format(time.RFC3339), m.Event.Data.Op, m.Event.Subject)
	}
	return nil
}

// write writes b, which becomes its own, and tells how many of the messages in it are written.
func (s *Sink) write(ctx context.Context, b []byte, ends []int) (acked int, err error) {
	if len(b) == 0 {
		return len(ends), nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done(): // a write that was cut off is not done yet
		return 0, fmt.Errorf("write to %s: %w", s.name, ctx.Err())
	}
	type result struct {
		acked int
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-s.turn }()
		acked, err := s.put(b, ends)
		done <- result{acked, err}
	}()
	select {
	case r := <-done:
		return r.acked, r.err
	case <-ctx.Done():
		return 0, fmt.Errorf("write to %s: %w", s.name, ctx.Err())
	}
}

func (s *Sink) put(b []byte, ends []int) (acked int, err error) {
	if s.torn {
		if _, err := s.w.Write([]byte("\n")); err != nil {
			return 0, fmt.Errorf("write to %s: %w", s.name, err)
		}
		s.torn = false
	}
	n, err := s.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err == nil {
		return len(ends), nil
	}
	whole := 0
	for acked < len(ends) && ends[acked] <= n {
		whole = ends[acked]
		acked++
	}
	s.torn = n > whole
	if acked == len(ends) { // an error that cost nothing
		return acked, nil
	}
	return acked, fmt.Errorf("write to %s: %w", s.name, err)
}

// Close waits for a write that was cut off.
func (s *Sink) Close(ctx context.Context) error {
	s.closed = true
	select {
	case s.turn <- struct{}{}:
		<-s.turn
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close %s: a write is not read: %w", s.name, ctx.Err())
	}
}
