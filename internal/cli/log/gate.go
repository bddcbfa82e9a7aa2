package log

import (
	"io"
	"slices"
	"strings"
	"time"
)

// gate is between a folding and the output. Until it opens, it keeps the last stories and drops those that are
// played back before a time, which only complete the stories after it.
type gate struct {
	out  io.Writer
	from time.Time // of the play; nothing before it is shown
	keep int       // this many stories; 0: none is kept, all are written
	now  func() time.Time

	stories []string
	shown   int  // stories that passed, also those that were not kept
	opened  bool // from now on everything is written
}

func (g *gate) Write(b []byte) (int, error) {
	if g.now().Before(g.from) && !g.opened {
		return len(b), nil
	}
	if g.opened || g.keep == 0 {
		g.shown++
		return g.out.Write(b)
	}
	for line := range strings.Lines(string(b)) {
		if n := len(g.stories); n > 0 && isDetail(line) {
			g.stories[n-1] += line
			continue
		}
		g.shown++
		if g.stories = append(g.stories, line); len(g.stories) > 2*g.keep {
			g.stories = slices.Delete(g.stories, 0, g.keep)
		}
	}
	return len(b), nil
}

// open writes the last stories; what comes later passes.
func (g *gate) open() error {
	g.opened = true
	last := g.stories[max(len(g.stories)-g.keep, 0):]
	g.stories = nil
	if len(last) == 0 {
		return nil
	}
	_, err := io.WriteString(g.out, strings.Join(last, ""))
	return err
}

// isDetail is true for a line below the head of a story: it is indented, where a head begins with its time.
func isDetail(line string) bool {
	if rest, styled := strings.CutPrefix(line, "\x1b["); styled {
		_, line, _ = strings.Cut(rest, "m")
	}
	return strings.HasPrefix(line, " ")
}
