package log

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
)

// printer shows changes, the oldest first.
type printer interface {
	Change(c change.Change) error
	// Notice says that a change cannot be shown.
	Notice(at time.Time, text string) error
	// Until shows the held changes that are due.
	Until(now time.Time) error
	// Flush shows all held changes, as of a time.
	Flush(at time.Time) error
}

func (o *Options) printer(s *selected, cluster string) (printer, error) {
	ro := render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: o.Now, Color: o.IO.Color, Width: o.IO.Width(), Location: o.Now().Location(),
		Namespaces: s.Namespaces.One() == "", Full: o.Full || !o.IO.OutTTY, Noise: o.Noise, Flat: o.Flat || s.Partial(),
		Only: s.Paths, Severities: s.lines, From: s.Query.Since,
		Remark: s.via, Clusters: s.several, Cluster: cluster,
	}
	switch o.Output {
	case text:
		f := &folding{width: o.IO.Width}
		f.gate = &gate{out: o.IO.Out, now: f.Now}
		ro.Out = f.gate
		switch {
		case o.HTML != "":
			f.asPage(&ro)
		case o.Tree:
			f.asTree(s, &ro)
		}
		f.Text = render.New(ro)
		f.Before = func() { f.Text.SetWidth(f.width()) }
		return f, nil
	case oneline:
		return &lines{text: render.NewLines(ro, cluster), width: o.IO.Width}, nil
	}
	e, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: cluster, Noise: o.Noise})
	return &events{e, o.IO}, err
}

// folding plays changes back at the times at which they were seen, so that folded lines are due as they were in watch.
type folding struct {
	render.Playback
	gate  *gate // which the Text writes to
	width func() int
	// At most one of these is set. They keep the lines until the end.
	tree *tree
	page *page
}

func (f *folding) Flush(at time.Time) error {
	if err := f.Settle(at); err != nil {
		return err
	}
	f.Text.Forget(f.gate.from)
	return f.Text.Flush(f.Now())
}

// lines prints changes without folding.
type lines struct {
	text  *render.Lines
	width func() int
}

func (l *lines) Change(c change.Change) error {
	l.text.SetWidth(l.width())
	return l.text.Change(c)
}

func (l *lines) Notice(at time.Time, text string) error { return l.text.Notice(at, text) }
func (*lines) Until(time.Time) error                    { return nil }
func (*lines) Flush(time.Time) error                    { return nil }

// events prints events for programs. Notices go to stderr.
type events struct {
	out *render.Events
	io  *terminal.IO
}

func (e *events) Change(c change.Change) error { return e.out.Change(c) }
func (e *events) Notice(_ time.Time, text string) error {
	_, err := fmt.Fprintf(e.io.Err, "! %s\n", terminal.Line(text))
	return err
}
func (*events) Until(time.Time) error { return nil }
func (*events) Flush(time.Time) error { return nil }
