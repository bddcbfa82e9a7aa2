package log

import (
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/scope"
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
	single := len(s.Namespaces.Include) == 1 && !scope.IsGlob(s.Namespaces.Include[0])
	ro := render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: o.Now, Color: o.IO.Color, Width: o.IO.Width(), Location: o.Now().Location(),
		Namespaces: !single, Full: o.Full || !o.IO.OutTTY, Noise: o.Noise, Flat: o.Flat || s.Partial(),
		Only: s.Paths, Severities: s.lines, From: s.Query.Since,
		Remark: s.via, Clusters: s.several, Cluster: cluster,
	}
	switch o.Output {
	case text:
		f := &folding{width: o.IO.Width}
		f.gate = &gate{out: o.IO.Out, now: func() time.Time { return f.now }}
		ro.Out = f.gate
		switch {
		case o.HTML != "":
			f.asPage(&ro)
		case o.Tree:
			f.asTree(s, &ro)
		}
		f.text = render.New(ro)
		return f, nil
	case oneline:
		return &lines{text: render.NewLines(ro, cluster), width: o.IO.Width}, nil
	}
	e, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: cluster, Noise: o.Noise})
	return &events{e, o.IO}, err
}

// lag is the maximum delay between a change's time and its arrival here through the journal. Folded lines wait that much
// longer, so that they are complete.
const lag = 500 * time.Millisecond

// folding plays changes back at the times at which they were seen, so that folded lines are due as they were in watch.
type folding struct {
	text  *render.Text
	gate  *gate // which text writes to
	order render.Order
	width func() int
	now   time.Time // of the playback. It never goes back, although kinds are not seen in order
	// At most one of these is set. They keep the lines until the end.
	tree *tree
	page *page
}

func (f *folding) Change(c change.Change) error {
	return f.list(slices.Concat(f.order.Due(c.At), f.order.Add(c.At, c)))
}

func (f *folding) Notice(at time.Time, text string) error {
	if err := f.list(f.order.Rest()); err != nil {
		return err
	}
	if err := f.advance(at); err != nil {
		return err
	}
	return f.text.Notice(f.now, text)
}

func (f *folding) Until(at time.Time) error {
	if err := f.list(f.order.Due(at)); err != nil {
		return err
	}
	return f.advance(at.Add(-lag))
}

func (f *folding) Flush(at time.Time) error {
	if err := f.list(f.order.Rest()); err != nil {
		return err
	}
	if err := f.advance(at); err != nil {
		return err
	}
	f.text.Forget(f.gate.from)
	return f.text.Flush(f.now)
}

func (f *folding) list(changes []change.Change) error {
	for _, c := range changes {
		if err := f.advance(c.At); err != nil {
			return err
		}
		if err := f.text.Change(f.now, c); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the playback's time, and prints folded lines that become due.
func (f *folding) advance(to time.Time) error {
	f.text.SetWidth(f.width())
	for due, ok := f.text.Next(); ok && !due.After(to); due, ok = f.text.Next() {
		if due.After(f.now) {
			f.now = due
		}
		if err := f.text.Tick(f.now); err != nil {
			return err
		}
	}
	if to.After(f.now) {
		f.now = to
	}
	return nil
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
