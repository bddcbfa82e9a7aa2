package html

import (
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/managers"
)

// Field is a changed field. Either Lines are set, for values of several lines, or From and To.
type Field struct {
	Path, Manager, From, To string
	// Quiet says that the field is shown although it is quiet.
	Quiet bool
	Lines []Line
}

// Line is a line of a diff or of an object. Class is add, remove, note or empty.
type Line struct{ Class, Sign, Text string }

// Fields returns the fields of an update, those that are not quiet first; quiet ones only with noise. It stops after some
// most lines; cut is the number of fields left out.
func Fields(c *change.Change, noise bool, most int) (all []Field, cut int) {
	for _, quiet := range []bool{false, true} {
		for i := range c.Fields {
			f := &c.Fields[i]
			if f.Quiet != quiet || quiet && !noise {
				continue
			}
			if most <= 0 {
				cut++
				continue
			}
			out := field(f, most)
			most -= 1 + len(out.Lines)
			all = append(all, out)
		}
	}
	return all, cut
}

func field(f *change.FieldChange, most int) Field {
	out := Field{Path: f.Path.String(), Manager: managers.Display(f.Manager, f.Subresource), Quiet: f.Quiet}
	lines := diff.Text([]diff.Change{f.Change}, diff.TextOptions{MaxLines: most})
	if len(lines) > 1 {
		for _, l := range lines[1:] {
			out.Lines = append(out.Lines, lineOf(l))
		}
		return out
	}
	if out.From, out.To = value(f.Op != diff.Add, f.From), value(f.Op != diff.Remove, f.To); f.Op == diff.Reorder {
		out.From, out.To = "order "+diff.Order(f.From), diff.Order(f.To)
	}
	return out
}

// value formats a value on one line.
func value(exists bool, v any) string {
	if !exists {
		return ""
	}
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any, []any:
		return strings.Join(diff.YAML(v), " ")
	}
	return diff.Scalar(v)
}

// lineOf makes a line of a diff. Its text begins with four columns for the mark.
func lineOf(l diff.Line) Line {
	text := ""
	if len(l.Text) >= 4 {
		text = l.Text[4:]
	}
	switch l.Kind {
	case diff.AddLine:
		return Line{"add", "+", text}
	case diff.RemoveLine:
		return Line{"remove", "-", text}
	case diff.NoteLine:
		return Line{"note", "", strings.TrimSpace(l.Text)}
	}
	return Line{"", "", text}
}

// Object returns an object that appeared or disappeared as YAML; nil for other changes. It stops after some lines; cut is
// the number of lines left out.
func Object(c *change.Change, most int) (all []Line, cut int) {
	object, line := c.After, Line{Class: "add", Sign: "+"}
	switch {
	case c.Gone():
		object, line = c.Before, Line{Class: "remove", Sign: "-"}
	case c.Op == event.Snapshot:
		line = Line{}
	case c.Op.Differs():
		return nil, 0
	}
	if len(object) == 0 {
		return nil, 0
	}
	lines := diff.YAML(object)
	if cut = max(len(lines)-max(most, 0), 0); cut > 0 {
		lines = lines[:len(lines)-cut]
	}
	for _, l := range lines {
		line.Text = l
		all = append(all, line)
	}
	return all, cut
}
