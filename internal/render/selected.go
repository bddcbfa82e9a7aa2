package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// selected returns the fields that Options.Only selects of an object that appeared or disappeared, and the number of
// further ones.
func (t *Text) selected(c change.Change) (fields []diff.Change, more int) {
	obj := c.After
	if obj == nil {
		obj = c.Before
	}
	if len(t.o.Only) == 0 || obj == nil {
		return nil, 0
	}
	fields, more = diff.Select(obj, t.o.Only)
	return slices.DeleteFunc(fields, func(f diff.Change) bool {
		return slices.ContainsFunc(t.o.Ignore, func(p diff.Pattern) bool { return p.Covers(f.Path) })
	}), more
}

// printSelected prints the selected fields below a head: "+ path: value" if the object appeared, "- path: value" if it
// disappeared.
func (t *Text) printSelected(c change.Change) {
	sign, kind := "", diff.PlainLine
	switch {
	case c.Op == event.Created, c.Op == event.Entered:
		sign, kind = "+ ", diff.AddLine
	case c.Gone():
		sign, kind = "- ", diff.RemoveLine
	}
	fields, more := t.selected(c)
	var lines []diff.Line
	for _, f := range fields {
		lines = append(lines, valueLines(f.Path.String(), sign, kind, f.To)...)
	}
	if !t.o.Full && len(lines) > bodyLines {
		more += len(lines) - bodyLines
		lines = lines[:bodyLines]
	}
	for _, l := range lines {
		t.line(t.detail(lineStyles[l.Kind], l.Text))
	}
	if more > 0 {
		t.line(t.detail(dim, fmt.Sprintf("… %d more", more)))
	}
}

// valueLines returns a path and its value, which is below the path if it has several lines.
func valueLines(path, sign string, kind diff.LineKind, v any) []diff.Line {
	lines := diff.Text([]diff.Change{{Op: diff.Add, To: v}}, diff.TextOptions{MaxLines: -1})
	const whole = "(the object): " // the empty path as diff prints it
	if said, ok := strings.CutPrefix(lines[0].Text, whole+"+ "); ok && len(lines) == 1 {
		return []diff.Line{{Kind: kind, Text: sign + path + ": " + said}}
	}
	lines[0].Text = sign + path + ":"
	for i := range lines {
		lines[i].Kind = kind
		if i > 0 {
			lines[i].Text = "    " + strings.TrimPrefix(lines[i].Text, "  + ")
		}
	}
	return lines
}
