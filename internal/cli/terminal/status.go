package watch

import (
	"fmt"
	"io"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// status is the stream beside the changes: lines, and on a terminal a progress line that makes room
// for whatever is written next to either stream. Nobody waits for it: an error there is not the
// verb's failure.
type status struct {
	w        io.Writer
	terminal bool
	drawn    bool // a progress line is on the terminal
}

// line writes one line.
func (s *status) line(format string, args ...any) {
	s.clear()
	fmt.Fprintln(s.w, terminal.Line(fmt.Sprintf(format, args...)))
}

// ECMA-48's erase in line, and the DEC private mode by which what is too long is cut instead of
// wrapped: of a wrapped line only the last row could be erased.
const (
	eraseLine = "\r\x1b[K"
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

// progress draws the progress line, in place of the one before.
func (s *status) progress(format string, args ...any) {
	if !s.terminal {
		return
	}
	s.drawn = true
	fmt.Fprint(s.w, eraseLine, noWrap, terminal.Line(fmt.Sprintf(format, args...)), wrap)
}

// clear takes the progress line away.
func (s *status) clear() {
	if s.drawn {
		s.drawn = false
		fmt.Fprint(s.w, eraseLine)
	}
}

// before returns a writer to w that takes the progress line away first.
func (s *status) before(w io.Writer) io.Writer { return clearing{s, w} }

type clearing struct {
	status *status
	w      io.Writer
}

func (c clearing) Write(p []byte) (int, error) {
	c.status.clear()
	return c.w.Write(p)
}
