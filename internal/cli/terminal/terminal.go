// Package terminal tells what the standard streams are, so that verbs need not ask.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IO is where a verb writes: changes to Out, status to Err.
type IO struct {
	Out, Err io.Writer
	// OutTTY and ErrTTY tell terminals from files and pipes.
	OutTTY, ErrTTY bool
	// Color is true where Out may be coloured: on a terminal, unless NO_COLOR is set.
	Color bool
	// Width returns Out's present width in columns; 0 where it has none.
	Width func() int
}

// System returns the process's own streams.
func System() *IO {
	out := int(os.Stdout.Fd())
	tty := term.IsTerminal(out)
	return &IO{
		Out: os.Stdout, Err: os.Stderr,
		OutTTY: tty, ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		// https://no-color.org: any non-empty value turns colour off.
		Color: tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: func() int {
			if !tty {
				return 0
			}
			w, _, err := term.GetSize(out)
			if err != nil {
				return 0
			}
			return w
		},
	}
}
