// Package log is the sink that writes changes to stdout: as text for people or as JSON lines.
//
// A write cannot be undone: after an error, or a call whose context ended, part of a message may have been written.
// The next message then begins on a new line. If the stream is not read, the sink blocks but not its caller: at most
// one write is left waiting.
package log

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a log sink.
type Options struct {
	// Format is the form of each change: text or json. Default: text.
	Format Format `yaml:"format"`
}

// Format is the form of a change.
type Format string

// The formats. Text is the output of the message's Text, or else one line with the time, the operation and the
// object's path.
const (
	Text Format = "text"
	JSON Format = "json"
)

// Validate returns an error that names the wrong key.
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

	writeSem chan struct{} // held during a write; guards the fields below
	w        io.Writer
	torn     bool // the last write ended within a message

	closed bool
}

// New returns a sink for a stream, which it does not close. The name describes the stream, such as stdout.
func New(w io.Writer, name string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("log sink: %w", err)
	}
	return &Sink{name: name, json: o.Format == JSON, w: w, writeSem: make(chan struct{}, 1)}, nil
}

func (s *Sink) String() string { return "log " + s.name }

// UsesText implements sink.TextSink.
func (s *Sink) UsesText() bool { return !s.json }

// Send writes the messages in one call.
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
			unshown = &sink.PermanentError{Err: fmt.Errorf("render as text: %w", err)}
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

// write writes b, which the caller must not use afterwards, and returns the number of messages written.
func (s *Sink) write(ctx context.Context, b []byte, ends []int) (acked int, err error) {
	if len(b) == 0 {
		return len(ends), nil
	}
	select {
	case s.writeSem <- struct{}{}:
	case <-ctx.Done(): // an earlier write still blocks
		return 0, fmt.Errorf("write to %s: %w", s.name, ctx.Err())
	}
	type result struct {
		acked int
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-s.writeSem }()
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
	if acked == len(ends) { // every message was written in spite of the error
		return acked, nil
	}
	return acked, fmt.Errorf("write to %s: %w", s.name, err)
}

// Close waits for a write that is still blocked.
func (s *Sink) Close(ctx context.Context) error {
	s.closed = true
	select {
	case s.writeSem <- struct{}{}:
		<-s.writeSem
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close %s: the stream is not being read: %w", s.name, ctx.Err())
	}
}
