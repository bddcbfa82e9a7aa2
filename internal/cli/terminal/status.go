package terminal

import (
	"fmt"
	"io"
	"sync"
)

// Status is a stream beside another: lines, and on a terminal a progress line that makes room for whatever
// is written next to either stream. Nobody waits for it: an error there is not the verb's failure. It is
// safe for concurrent use.
type Status struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	drawn bool // a progress line is on the terminal
}

// NewStatus makes one; tty says that w is a terminal on which a line can be drawn again.
func NewStatus(w io.Writer, tty bool) *Status { return &Status{w: w, terminal: tty} }

// Line writes one line.
func (s *Status) Line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.w, Line(fmt.Sprintf(format, args...)))
}

// ECMA-48's erase in line, and the DEC private mode by which what is too long is cut instead of
// wrapped: of a wrapped line only the last row could be erased.
const (
	EraseLine = "\r\x1b[K"
	NoWrap    = "\x1b[?7l"
	Wrap      = "\x1b[?7h"
)

// Progress draws the progress line, in place of the one before.
func (s *Status) Progress(format string, args ...any) {
	if !s.terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = true
	fmt.Fprint(s.w, EraseLine, NoWrap, Line(fmt.Sprintf(format, args...)), Wrap)
}

// Clear takes the progress line away.
func (s *Status) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *Status) clear() {
	if s.drawn {
		s.drawn = false
		fmt.Fprint(s.w, EraseLine)
	}
}

// Before returns a writer to w that takes the progress line away first.
func (s *Status) Before(w io.Writer) io.Writer { return clearing{s, w} }

type clearing struct {
	status *Status
	w      io.Writer
}

func (c clearing) Write(p []byte) (int, error) {
	c.status.mu.Lock()
	c.status.clear()
	c.status.mu.Unlock() // not held while a reader is waited for
	return c.w.Write(p)
}
