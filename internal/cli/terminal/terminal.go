// Package terminal describes the standard streams for the verbs, and makes foreign text safe to print on one line.
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
	// OutTTY and ErrTTY report whether Out and Err are terminals; ErrTTY is false for a terminal on which a line cannot be
	// redrawn.
	OutTTY, ErrTTY bool
	// Color reports whether Out may be coloured: on a terminal, unless NO_COLOR is set.
	Color bool
	// Width returns Out's present width in columns; 0 if it is not a terminal.
	Width func() int
}

// System returns the process's streams.
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

// unknownWidth is the assumed width of a terminal that does not know its size, such as one that a program without a terminal
// has opened.
const unknownWidth = 80

func widthOf(terminal int) int {
	w, _, err := term.GetSize(terminal)
	if err != nil || w <= 0 {
		return unknownWidth
	}
	return w
}

var breaks = regexp.MustCompile(`\s*[\n\r\t\v\f]\s*`)

// Line makes a text one line that cannot control the terminal: line breaks become spaces, and unprintable characters are
// escaped as in a Go string. Servers send pages of HTML, and names can be hostile.
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
