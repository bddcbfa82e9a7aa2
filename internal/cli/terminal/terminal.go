// Package terminal tells what the standard streams are, so that verbs need not ask, and makes text
// from elsewhere fit for one line of them.
package terminal

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// IO is where a verb writes: changes to Out, status to Err.
type IO struct {
	Out, Err io.Writer
	// OutTTY and ErrTTY tell terminals from files and pipes; ErrTTY is false for a terminal on which
	// a line cannot be drawn again.
	OutTTY, ErrTTY bool
	// Color is true where Out may be coloured: on a terminal, unless NO_COLOR is set.
	Color bool
	// Width returns Out's present width in columns; 0 where it is not a terminal.
	Width func() int
}

// System returns the process's own streams.
func System() *IO {
	out := int(os.Stdout.Fd())
	tty := term.IsTerminal(out)
	dumb := os.Getenv("TERM") == "dumb"
	return &IO{
		Out: os.Stdout, Err: os.Stderr,
		OutTTY: tty, ErrTTY: term.IsTerminal(int(os.Stderr.Fd())) && !dumb,
		// https://no-color.org: any non-empty value turns colour off.
		Color: tty && os.Getenv("NO_COLOR") == "" && !dumb,
		Width: func() int {
			if !tty {
				return 0
			}
			return widthOf(out)
		},
	}
}

// unknownWidth is the width of a terminal that does not know its size, such as one that a program without a terminal
// of its own has opened.
const unknownWidth = 80

func widthOf(terminal int) int {
	w, _, err := term.GetSize(terminal)
	if err != nil || w <= 0 {
		return unknownWidth
	}
	return w
}

var breaks = regexp.MustCompile(`\s*[\n\r\t\v\f]\s*`)

// Line keeps a text to one line that cannot command the terminal: line breaks become spaces, what
// does not print is written as in a Go string. Servers send pages of HTML, and names are what others
// chose.
func Line(text string) string {
	text = breaks.ReplaceAllString(strings.TrimRight(text, " \n\r\t"), " ")
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// Count is a number of things: "1 object", "2 objects".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
