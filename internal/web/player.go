package web

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// player folds changes to lines, as tattler log does.
type player struct {
	render.Playback
	line func(render.Line)
}

func newPlayer(f *filter, line func(render.Line)) *player {
	p := &player{line: line}
	p.Text = render.New(render.Options{
		Each: func(l render.Line) { p.line(l) }, Terminal: true, Location: time.UTC, Today: p.Now,
		Namespaces: true, Flat: f.flat, Clusters: len(f.clusters) > 0, Cluster: f.own,
	})
	return p
}

// damaged shows that a change cannot be read.
func (p *player) damaged(e *journal.Entry, err error) {
	p.line(render.Line{At: e.At, Sign: "!", Name: fmt.Sprintf("change %s (%s) cannot be shown: %v", e.ID, e.Op, err), Changes: []int64{e.Seq}})
}
