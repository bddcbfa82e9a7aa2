package log

import (
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/story"
)

// printer shows changes, the oldest first.
type printer interface {
	Change(c change.Change) error
	// Notice says that a change cannot be shown.
	Notice(at time.Time, text string) error
	// Until shows the lines that are due.
	Until(now time.Time) error
	// Flush shows all lines that wait, as of a time.
	Flush(at time.Time) error
}

func (o *Options) printer(s *selected, cluster string) (printer, error) {
	ro := render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: o.Now, Color: o.IO.Color, Width: o.IO.Width(), Location: o.Now().Location(),
		Namespaces: s.Namespaces.One() == "", Full: o.Full || !o.IO.OutTTY, Noise: o.Noise, Flat: o.Flat || s.Partial(), Stories: o.folds(s.Selection), StoryIDs: true,
		Only:   s.Paths,
		Remark: s.via, Clusters: s.several, Cluster: cluster,
	}
	switch o.Output {
	case text:
		f := &folding{o: o}
		switch {
		case o.HTML != "":
			f.asPage(&ro)
		case o.Tree:
			f.asTree(s, &ro)
		}
		f.text = render.New(ro)
		f.live = render.NewLive(f.text)
		return f, nil
	case oneline:
		return &lines{text: render.NewLines(ro, cluster), width: o.IO.Width}, nil
	}
	e, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: cluster, Noise: o.Noise})
	return &events{e, o.IO}, err
}

// folding prints changes, and stories in place of routine ones.
type folding struct {
	o       *Options
	text    *render.Text
	live    *render.Live
	order   render.Order // of changes of different kinds
	follows bool         // the past is shown
	// At most one of these is set. They keep the lines until the end.
	tree *tree
	page *page
	head render.Line // of the next Write, for a tree
}

// entry is a line as data, and as text with its details.
type entry struct {
	render.Line
	text  string
	story *story.Tree // that it is about; nil: a change
}

func (f *folding) Change(c change.Change) error {
	return f.changes(slices.Concat(f.order.Due(c.At), f.order.Add(c.At, c)))
}

func (f *folding) changes(all []change.Change) error {
	f.resize()
	for _, c := range all {
		if err := f.text.Change(c.At, c); err != nil {
			return err
		}
	}
	return nil
}

// story prints a story. While new ones arrive, those that go on have lines from time to time.
func (f *folding) story(s *story.Tree) error {
	if err := f.changes(f.order.Rest()); err != nil {
		return err
	}
	if f.page != nil {
		f.page.story = s
		defer func() { f.page.story = nil }()
	}
	if f.follows {
		return f.live.Story(f.o.Now(), s)
	}
	return f.text.Story(s, f.o.Now())
}

func (f *folding) Notice(at time.Time, text string) error {
	if err := f.changes(f.order.Rest()); err != nil {
		return err
	}
	return f.text.Notice(at, text)
}

// resize follows the width of the terminal.
func (f *folding) resize() {
	f.text.SetWidth(f.o.IO.Width())
}

func (f *folding) Until(now time.Time) error {
	f.follows = true
	if err := f.changes(f.order.Rest()); err != nil {
		return err
	}
	return f.live.Tick(now)
}

func (f *folding) Flush(at time.Time) error {
	if err := f.changes(f.order.Rest()); err != nil {
		return err
	}
	if err := f.live.Flush(at); err != nil {
		return err
	}
	return f.text.Flush(at)
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
