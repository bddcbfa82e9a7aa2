package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
)

// histogram counts changes over time.
type histogram struct {
	From, To time.Time
	// Start and End are the ends of the first and the last bar.
	Start, End time.Time
	Step       time.Duration
	Bars       []bar
	Labels     []label
	// Form has the preset time ranges.
	Form form
	// Total is the number of counted changes, Max that of the highest bar.
	Total, Max int
	// Note says what was counted if not everything was.
	Note string
	// Out is the URL of twice the time range; empty if all is shown.
	Out string
	// Damaged says that nothing was counted, because the journal is damaged.
	Damaged bool
	// UncountedTo is the end, in thousandths of the width, of the time that was not counted.
	UncountedTo int
	Marks       []mark
}

// bar is a column of the histogram, in thousandths of its width and of its height.
type bar struct {
	X, Width int
	From, To time.Time
	URL      string
	Parts    []part
	Total    int
}

type part struct {
	Class     string
	N         int
	Y, Height int
}

// label is a time below the bars; Class says how it is formatted.
type label struct {
	Time        time.Time
	Class, Text string
}

// mark is a time in which changes may be missing: a gap, or an absence of the daemon.
type mark struct {
	Class, Text string
	X, Width    int
	URL         string
}

// stack is the order of operations in a bar, from below.
var stack = [...]struct {
	class string
	ops   []event.Op
}{
	{"updated", []event.Op{event.Updated, event.Converted}},
	{"created", []event.Op{event.Created, event.Entered}},
	{"deleted", []event.Op{event.Deleted, event.Left}},
	{"snapshot", []event.Op{event.Snapshot}},
}

// classOf returns the index of an operation's class in stack; -1 if it is not counted.
func classOf(op event.Op) int {
	for i, s := range stack {
		if slices.Contains(s.ops, op) {
			return i
		}
	}
	return -1
}

const (
	// maxBars is the highest number of bars.
	maxBars = 120
	// scale is the width and the height of the drawing.
	scaleX, scaleY = 1000, 100
)

// steps are the lengths of time of a bar.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// stepOf returns the shortest length for a time range.
func stepOf(d time.Duration) time.Duration {
	for _, s := range steps {
		if d <= maxBars*s {
			return s
		}
	}
	last := steps[len(steps)-1]
	return (d/(maxBars*last) + 1) * last //nolint:durationcheck // a number of steps
}

// counts serves the histogram alone.
func (p *Page) counts(w http.ResponseWriter, r *http.Request) error {
	f, _, err := p.request(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	p.narrowings.use(r.Context(), f)
	if _, err := p.narrow(r.Context(), f); err != nil {
		return err
	}
	h, err := p.histogram(r.Context(), f)
	if err != nil {
		return err
	}
	if h.Form, err = p.form(r.Context(), f); err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "histogram", h)
}

// histogram counts what a filter selects.
func (p *Page) histogram(ctx context.Context, f *filter) (*histogram, error) {
	from, to, err := p.window(ctx, f)
	h := &histogram{From: from, To: to, Step: stepOf(to.Sub(from))}
	if h.Damaged, err = p.withoutDamage("time range", err); err != nil {
		return nil, err
	}
	h.Start = from.Truncate(h.Step)
	n := int(to.Add(h.Step-1).Sub(h.Start) / h.Step)
	h.End = h.Start.Add(time.Duration(n) * h.Step)
	counts := make([][len(stack)]int, n)
	if !h.Damaged {
		if h.Damaged, err = p.withoutDamage("histogram", p.tally(ctx, f, h, counts)); err != nil {
			return nil, err
		}
	}
	if h.Damaged {
		clear(counts)
		h.Marks, h.UncountedTo, h.Note = nil, h.x(h.End), "changes are not counted, because "+partDamaged
	}
	h.draw(f, counts)
	return h, nil
}

// tally counts, and marks gaps and absences.
func (p *Page) tally(ctx context.Context, f *filter, h *histogram, counts [][len(stack)]int) (err error) {
	if counter, can := p.past.source.(access.Counter); can && f.countable() {
		err = p.count(ctx, f, counter, h, counts)
	} else {
		err = p.scan(ctx, f, h, counts)
	}
	if err != nil {
		return err
	}
	return p.marks(ctx, f, h)
}

const partDamaged = "a part of the journal is damaged: tattler journal verify names it"

// withoutDamage reports whether the journal is damaged where a part of a page reads it: the rest of the page still helps. It
// returns other errors.
func (p *Page) withoutDamage(part string, err error) (damaged bool, _ error) {
	var damage *journal.DamagedError
	if !errors.As(err, &damage) {
		return false, err
	}
	p.o.Log.Error("cannot make a part of a page", "part", part, "error", err)
	return true, nil
}

// countable reports whether the journal's counts know everything that the filter needs.
func (f *filter) countable() bool {
	return !f.ReadsObjects() && len(f.Query.Names)+len(f.Query.Fields) == 0 && !f.Noise
}

// count uses the journal's counts.
func (p *Page) count(ctx context.Context, f *filter, counter access.Counter, h *histogram, counts [][len(stack)]int) error {
	q := f.Query
	q.Since, q.Until = h.From, h.To
	all, err := counter.Counts(ctx, q, h.Step)
	if err != nil {
		return err
	}
	for _, s := range all {
		c := classOf(s.Op)
		if c < 0 {
			continue
		}
		for i, n := range s.Counts {
			if i < len(counts) {
				counts[i][c] += n
			}
		}
	}
	return nil
}

const (
	// maxScan is how many changes are read for a histogram or for lanes, where the journal's counts do not suffice.
	maxScan = 20_000
	// maxScanTime is how long that may take.
	maxScanTime = 80 * time.Millisecond
)

// scanned calls each with the newest matching changes of the shown time, as many as can be read quickly, and returns how
// many were read and the time of the oldest; zero if all were read.
func (p *Page) scanned(ctx context.Context, f *filter, h *histogram, each func(*journal.Entry)) (read int, until time.Time, err error) {
	q := f.Query
	q.Since, q.Until = h.From, h.To
	var deadline time.Time // it counts from when the viewer's rights are known
	last := h.To
	for e, err := range p.past.rows(journal.WithPause(ctx, p.budget(maxScanTime)), q) {
		if deadline.IsZero() {
			deadline = p.deadline(maxScanTime)
		}
		var paused *journal.Paused
		if errors.As(err, &paused) || err == nil && (read == maxScan || read%16 == 15 && time.Now().After(deadline)) {
			return read, last, nil
		}
		if err != nil {
			return read, until, err
		}
		read++
		last = e.Time
		ok, err := p.matches(ctx, f, &e)
		if err != nil {
			return read, until, err
		}
		if ok {
			each(&e)
		}
	}
	return read, time.Time{}, nil
}

// scan counts by reading changes, up to a bound.
func (p *Page) scan(ctx context.Context, f *filter, h *histogram, counts [][len(stack)]int) error {
	read, until, err := p.scanned(ctx, f, h, func(e *journal.Entry) {
		i := int(e.Time.Sub(h.Start) / h.Step)
		if c := classOf(e.Op); c >= 0 && i >= 0 && i < len(counts) {
			counts[i][c]++
		}
	})
	if err == nil && !until.IsZero() {
		h.UncountedTo = h.x(until)
		h.Note = "counted among the newest " + thousands(read) + " changes; earlier ones are not counted"
	}
	return err
}

// x returns the place of a time, in thousandths of the width.
func (h *histogram) x(at time.Time) int {
	all := h.End.Sub(h.Start)
	d := min(max(at.Sub(h.Start), 0), all)
	return int(float64(scaleX) * float64(d) / float64(all))
}

// maxMarks bounds the marks of a histogram.
const maxMarks = 100

// marks marks gaps and absences, and the moment that the reader asked about.
func (p *Page) marks(ctx context.Context, f *filter, h *histogram) error {
	q := f.Query
	q.Since, q.Until, q.Ops, q.Managers, q.Severities, q.Limit = h.From, h.To, []event.Op{event.Gap, event.Absent}, nil, nil, maxMarks
	for e, err := range p.past.rows(ctx, q) {
		if err != nil {
			return err
		}
		m := mark{Class: string(e.Op), X: h.x(e.Since), Text: "a gap of " + e.Kind.GroupResource() + ": versions were not seen"}
		if e.Since.IsZero() {
			m.X = h.x(e.At)
		}
		if e.Op == event.Absent {
			m.Text = "nothing was recorded: tattler did not run, or could not record"
		}
		m.Width = max(h.x(e.At)-m.X, 2)
		h.Marks = append(h.Marks, m)
	}
	if at, err := time.Parse(time.RFC3339Nano, f.values.Get("at")); err == nil {
		h.Marks = append(h.Marks, mark{Class: "moment", X: h.x(at), Width: 2, Text: "the moment in question"})
	}
	return nil
}

// draw makes the bars.
func (h *histogram) draw(f *filter, counts [][len(stack)]int) {
	for _, c := range counts {
		sum := 0
		for _, k := range c {
			sum += k
		}
		h.Total += sum
		h.Max = max(h.Max, sum)
	}
	n := len(counts)
	for i, c := range counts {
		b := bar{From: h.Start.Add(time.Duration(i) * h.Step), X: i * scaleX / n}
		b.To = b.From.Add(h.Step)
		b.Width = (i+1)*scaleX/n - b.X
		y := scaleY
		for k, s := range stack {
			if c[k] == 0 {
				continue
			}
			b.Total += c[k]
			height := max(1, c[k]*scaleY/h.Max)
			y -= height
			b.Parts = append(b.Parts, part{s.class, c[k], max(0, y), height})
		}
		b.URL = f.with("/", "since", machine(b.From), "until", machine(b.To))
		h.Bars = append(h.Bars, b)
	}
	const labels = 6
	for i := range labels {
		at := h.Start.Add(time.Duration(n) * h.Step * time.Duration(i) / labels)
		l := label{at, "t", clock(at)}
		if h.Step >= time.Hour {
			l = label{at, "d", at.UTC().Format("2 Jan 15:04")}
		}
		h.Labels = append(h.Labels, l)
	}
	if f.values.Has("since") || f.values.Has("until") {
		d := h.To.Sub(h.From) / 2
		if from, to := nameable(h.From.Add(-d)), nameable(h.To.Add(d)); to.Sub(from) <= maxWindow && (!from.Equal(h.From) || !to.Equal(h.To)) {
			h.Out = f.with("/", "since", machine(from), "until", machine(to))
		}
	}
}

// Inner is the drawn width: bars are a little apart.
func (b bar) Inner() int { return max(b.Width-1, 1) }
