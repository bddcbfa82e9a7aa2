package log

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/render"
)

// gate stands between a folding and the output. Until it opens, it keeps the last stories. It drops stories from before a
// time, which are played back only to complete later ones.
type gate struct {
	out  io.Writer
	from time.Time // nothing before it is shown
	keep int       // number of stories to keep; 0: write all at once
	now  func() time.Time
	// take, if set, receives the stories, and out nothing.
	take func(entry)
	head render.Line // of the next Write

	stories []string
	entries []entry // instead of stories, with take
	shown   int     // stories that passed, kept or not
	opened  bool    // everything is written at once
}

func (g *gate) Write(b []byte) (int, error) {
	if g.now().Before(g.from) && !g.opened {
		return len(b), nil
	}
	if g.take != nil {
		g.entry(entry{g.head, string(b)})
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

// entry is a story as data, and as text.
type entry struct {
	render.Line
	text string
}

func (g *gate) entry(e entry) {
	switch g.shown++; {
	case g.opened || g.keep == 0:
		g.take(e)
		return
	case len(g.entries) == 2*g.keep:
		g.entries = slices.Delete(g.entries, 0, g.keep)
	}
	g.entries = append(g.entries, e)
}

// line receives a story that has no text.
func (g *gate) line(l render.Line) {
	if g.opened || !g.now().Before(g.from) {
		g.entry(entry{Line: l})
	}
}

// open writes the last stories. Later ones pass through.
func (g *gate) open() error {
	g.opened = true
	for _, e := range g.entries[max(len(g.entries)-g.keep, 0):] {
		g.take(e)
	}
	g.entries = nil
	last := g.stories[max(len(g.stories)-g.keep, 0):]
	g.stories = nil
	if len(last) == 0 {
		return nil
	}
	_, err := io.WriteString(g.out, strings.Join(last, ""))
	return err
}

// isDetail reports whether a line is below the head of a story: it is indented, whereas a head begins with its time.
func isDetail(line string) bool {
	if rest, styled := strings.CutPrefix(line, "\x1b["); styled {
		_, line, _ = strings.Cut(rest, "m")
	}
	return strings.HasPrefix(line, " ")
}
