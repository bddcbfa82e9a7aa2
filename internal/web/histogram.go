package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// histogram counts changes over time.
type histogram struct {
	From, To time.Time
	// Start and End are the ends of the first and the last bar.
	Start, End time.Time
	Step       time.Duration
	Bars       []bar
	Labels     []label
	// Total is the number of counted changes, Max that of the highest bar.
	Total, Max int
	// Note says what was counted if not everything was.
	Note string
	// Out is the URL of twice the time range; empty if all is shown.
	Out string
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
var stack = []struct {
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
	return d/maxBars/last*last + last
}

// counts serves the histogram alone.
func (p *Page) counts(w http.ResponseWriter, r *http.Request) error {
	f, _, err := p.request(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	h, err := p.histogram(r.Context(), f)
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "histogram", h)
}

// histogram counts what a filter selects.
func (p *Page) histogram(ctx context.Context, f *filter) (*histogram, error) {
	from, to, err := p.window(ctx, f)
	if err != nil {
		return nil, err
	}
	h := &histogram{From: from, To: to, Step: stepOf(to.Sub(from))}
	start := from.Truncate(h.Step)
	n := int(to.Sub(start)/h.Step) + 1
	counts := make([][4]int, n)
	if err := p.scanCounts(ctx, f, h, start, counts); err != nil {
		return nil, err
	}
	h.draw(f, start, counts)
	return h, nil
}

// scanCounts counts by reading changes, up to a bound.
func (p *Page) scanCounts(ctx context.Context, f *filter, h *histogram, start time.Time, counts [][4]int) error {
	q := f.query()
	read := 0
	for e, err := range p.past.rows(ctx, q) {
		if err != nil {
			return err
		}
		i := int(e.Time.Sub(start) / h.Step)
		if read++; read > maxRead {
			h.Note = "counted the newest " + thousands(maxRead)
			h.UncountedTo = min(scaleX, max(0, i*scaleX/len(counts)))
			break
		}
		if c := classOf(e.Op); c >= 0 && i >= 0 && i < len(counts) {
			counts[i][c]++
		}
	}
	return nil
}

// draw makes the bars.
func (h *histogram) draw(f *filter, start time.Time, counts [][4]int) {
	for _, c := range counts {
		sum := c[0] + c[1] + c[2] + c[3]
		h.Total += sum
		h.Max = max(h.Max, sum)
	}
	h.Start, h.End = start, start.Add(time.Duration(len(counts))*h.Step)
	n := len(counts)
	for i, c := range counts {
		b := bar{From: start.Add(time.Duration(i) * h.Step), X: i * scaleX / n}
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
		at := start.Add(time.Duration(n) * h.Step * time.Duration(i) / labels)
		l := label{at, "t", clock(at)}
		if h.Step >= time.Hour {
			l = label{at, "d", at.UTC().Format("2 Jan 15:04")}
		}
		h.Labels = append(h.Labels, l)
	}
	if f.values.Has("since") || f.values.Has("until") {
		d := h.To.Sub(h.From) / 2
		h.Out = f.with("/", "since", machine(h.From.Add(-d)), "until", machine(h.To.Add(d)))
	}
}

// Inner is the drawn width: bars are a little apart.
func (b bar) Inner() int { return max(b.Width-1, 1) }
