package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// Lines prints one line for each change, without folding: the beginning of its event's id, then the line of Text without
// details. It is not safe for concurrent use.
type Lines struct {
	text    *Text
	cluster string
}

// idShown is the number of printed characters of an id: as many as the journal's index has, and few enough to type.
const idShown = 8

// NewLines returns a Lines. The ids depend on the cluster's name. Options for folding and details have no effect.
func NewLines(o Options, cluster string) *Lines {
	l := &Lines{New(o), cluster}
	l.SetWidth(o.Width)
	return l
}

// SetWidth changes Options.Width.
func (l *Lines) SetWidth(columns int) {
	if columns > 0 {
		columns = max(columns-idShown-1, 1)
	}
	l.text.SetWidth(columns)
}

// Change prints a change. Without Options.Noise it leaves out quiet updates.
func (l *Lines) Change(c change.Change) error {
	if c.Quiet && !l.text.o.Noise {
		return nil
	}
	t := l.text
	id := change.Event(l.cluster, &c).ID
	r := l.row(c)
	t.remark(&r)
	line := t.head(r)
	t.line(t.style(yellow, id[:idShown]) + " " + line)
	return t.write()
}

// Notice prints a message of the program.
func (l *Lines) Notice(at time.Time, text string) error {
	l.text.line(strings.Repeat(" ", idShown+1) + l.text.head(row{at: at, sign: signNotice, name: text}))
	return l.text.write()
}

// row returns the row of a change.
func (l *Lines) row(c change.Change) row {
	t := l.text
	r := t.row(c, signUpdated)
	r.owned, r.manager = false, unknown
	switch c.Op {
	case event.Gap:
		r.sign, r.manager = signNotice, ""
		r.name = t.gapText(c)
	case event.Absent:
		r.sign, r.manager, r.note = signNotice, "", ""
		r.name = absenceText(c)
	case event.Created:
		r.sign, r.manager = signCreated, c.Manager
	case event.Deleted:
		r.sign, r.info = signDeleted, existedFor(c)
	case event.Entered:
		r.sign, r.info, r.manager = signEntered, "entered the selection", crossedBy(c)
	case event.Left:
		r.sign, r.info, r.manager = signLeft, "left the selection", crossedBy(c)
	case event.Converted:
		if r.info = servedOtherwise; c.Blind {
			r.info = unknownBefore
		}
	case event.Snapshot:
		r.sign, r.info, r.manager = signSnapshot, stateOf(c.Kind, c.After), ""
	default:
		fields, _ := t.visible(c)
		if r.info, r.manager = firstOf(fields).String(), managersOf(c, fields); c.Blind {
			r.info = unknownBefore
		}
	}
	if words, ok := helm(c); ok && c.Op != event.Converted {
		r.name, r.info = words, ""
		if c.Gone() {
			r.info = existedFor(c)
		}
	}
	if fields, more := t.selected(c); !c.Op.Differs() && len(fields) > 0 {
		value := valueLines(fields[0].Path.String(), "", diff.PlainLine, fields[0].To)[0].Text
		if more += len(fields) - 1; more > 0 {
			value += fmt.Sprintf(", %d more", more)
		}
		r.info = value
	}
	if isEvent(c.Kind) {
		return eventRow(r, c)
	}
	return r
}
