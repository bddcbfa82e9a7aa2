package terminal

import (
	"fmt"
	"io"
	"sync"
)

// Status writes lines to a second stream, and on a terminal a progress line that disappears when anything is written to
// either stream. Its errors are ignored, because they are not the verb's failure. It is safe for concurrent use.
type Status struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	drawn bool // a progress line is on the terminal
}

// NewStatus returns a Status; tty says that w is a terminal on which a line can be redrawn.
func NewStatus(w io.Writer, tty bool) *Status { return &Status{w: w, terminal: tty} }

// Line writes one line.
func (s *Status) Line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.w, Line(fmt.Sprintf(format, args...)))
}

// ECMA-48's erase in line, and the DEC private mode that cuts long lines instead of wrapping them: of a wrapped line, only
// the last row could be erased.
const (
	EraseLine = "\r\x1b[K"
	NoWrap    = "\x1b[?7l"
	Wrap      = "\x1b[?7h"
)

// Progress draws the progress line, replacing the previous one.
func (s *Status) Progress(format string, args ...any) {
	if !s.terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = true
	fmt.Fprint(s.w, EraseLine, NoWrap, Line(fmt.Sprintf(format, args...)), Wrap)
}

// Clear removes the progress line.
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

// Before returns a writer to w that first removes the progress line.
func (s *Status) Before(w io.Writer) io.Writer { return clearing{s, w} }

type clearing struct {
	status *Status
	w      io.Writer
}

func (c clearing) Write(p []byte) (int, error) {
	c.status.mu.Lock()
	c.status.clear()
	c.status.mu.Unlock() // not held while a slow reader blocks the write
	return c.w.Write(p)
}
