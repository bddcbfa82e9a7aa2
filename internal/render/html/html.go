// Package html writes lines of package render as one page that needs nothing else: no script, no other file, no network.
//
// Everything from the cluster is escaped: as HTML, and control characters and marks that reorder text as in a terminal.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/render"
)

//go:embed page.css
var style string

//go:embed page.html
var source string

// Limits of a page. What exceeds them is left out, and the page says so.
const (
	// MaxEntries is the number of entries: the newest ones are kept.
	MaxEntries = 5000
	// MaxChanges is the number of changes below one entry.
	MaxChanges = 100
	// maxLines bounds the lines below one change, and maxAllLines those of the page.
	maxLines    = 200
	maxAllLines = 100_000
)

// Page is the head of a page.
type Page struct {
	Title, Cluster string
	// Selection is what the user asked for, as a command.
	Selection string
	// Since and Until bound the time range; zero is open.
	Since, Until time.Time
	// Written is the present time. Times are shown in its location.
	Written time.Time
	// Notes say what the page does not show.
	Notes []string
	// Noise shows quiet fields.
	Noise bool
	// Version is the program's.
	Version string
}

// Entry is a line, with the changes that it covers.
type Entry struct {
	render.Line
	Changes []change.Change
	// More is the number of covered changes that are left out.
	More int
}

// Writer writes a page. It is not safe for concurrent use.
type Writer struct {
	w         io.Writer
	page      Page
	templates *template.Template
	left      int // lines of details
	entries   int
	day       string
	err       error
}

// New writes the head of a page.
func New(w io.Writer, p Page) (*Writer, error) {
	o := &Writer{w: w, page: p, left: maxAllLines}
	t, err := template.New("page").Funcs(template.FuncMap{
		"clock": o.clock, "until": o.until,
		"stamp": o.stamp, "machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"css": func() template.CSS { return template.CSS(style) }, //nolint:gosec // our own
	}).Parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse the page's template: %w", err)
	}
	o.templates = t
	return o, o.execute("top", p)
}

func (o *Writer) clock(t time.Time) string {
	return t.In(o.page.Written.Location()).Format(time.TimeOnly)
}

// until formats the end of an interval, with its date if that is another one than that of the beginning.
func (o *Writer) until(from, to time.Time) string {
	from, to = from.In(o.page.Written.Location()), to.In(o.page.Written.Location())
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		return to.Format(time.DateTime)
	}
	return o.clock(to)
}

func (o *Writer) stamp(t time.Time) string {
	return t.In(o.page.Written.Location()).Format("2006-01-02 15:04:05 MST")
}

func (o *Writer) execute(name string, data any) error {
	if o.err != nil {
		return o.err
	}
	var b bytes.Buffer
	if err := o.templates.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	_, o.err = o.w.Write(render.EscapeHTML(b.Bytes()))
	return o.err
}

// shownEntry is what the template shows of an entry.
type shownEntry struct {
	Entry
	Type, Object, SignClass, Tone, Day string
	Below                              []shownChange
}

// shownChange is what the template shows of a change below an entry.
type shownChange struct {
	Op                  event.Op
	At, Until           time.Time // as in render.Line
	Kind, Name, Manager string
	Note                string
	Fields              []Field
	Lines               []Line
	CutFields, CutLines int
	Head                bool
}

var signs = map[string]string{"+": "created", "-": "deleted", "~": "updated", ">": "entered", "<": "left", "·": "folded", "=": "snapshot", "!": "notice"}

// Entry writes an entry.
func (o *Writer) Entry(e Entry) error {
	s := shownEntry{Entry: e, SignClass: signs[e.Sign], Tone: string(e.Severity)}
	if kind, name, ok := strings.Cut(e.Name, "/"); ok && e.Sign != "!" && !strings.ContainsAny(kind, " ") {
		s.Type, s.Object = kind, name
	}
	if day := e.At.In(o.page.Written.Location()).Format("Monday, 2 January 2006"); day != o.day {
		s.Day, o.day = day, day
	}
	for i := range e.Changes {
		if c := &e.Changes[i]; c.Op.HasObject() {
			s.Below = append(s.Below, o.change(c, len(e.Changes)+e.More > 1))
		}
	}
	o.entries++
	return o.execute("entry", s)
}

func (o *Writer) change(c *change.Change, head bool) shownChange {
	s := shownChange{Op: c.Op, Kind: c.Kind.Kind, Name: c.Name, Manager: c.Manager, Head: head}
	if from, to := c.Span(); from.Equal(to) {
		s.At = to
	} else {
		s.At, s.Until = from, to
	}
	most := min(maxLines, o.left)
	switch {
	case c.Blind:
		s.Note = "The state before this change was purged from the journal."
	case c.Op.Differs():
		s.Fields, s.CutFields = Fields(c, o.page.Noise, most)
		if len(s.Fields)+s.CutFields == 0 {
			s.Note = "Only quiet fields changed."
		}
	default:
		s.Lines, s.CutLines = Object(c, most)
	}
	o.left -= 1 + len(s.Fields) + len(s.Lines)
	for i := range s.Fields {
		o.left -= len(s.Fields[i].Lines)
	}
	return s
}

// Close writes the end of the page. It does not close the io.Writer.
func (o *Writer) Close() error {
	return o.execute("bottom", struct {
		Page
		Entries int
	}{o.page, o.entries})
}
