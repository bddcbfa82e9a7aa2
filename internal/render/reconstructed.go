package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/reconstruct"
)

// signReconstructed marks what nobody saw. Live changes never have it.
const signReconstructed = "≈"

// fieldsShown bounds the fields below a reconstructed line, unless Options.Full is set.
const fieldsShown = 6

// Reconstructed prints a reconstructed entry, dimmed and under its own sign. It affects no line about a change.
func (t *Text) Reconstructed(e reconstruct.Entry) error {
	d := &e.Data
	r := row{
		at: e.Time, sign: signReconstructed, namespace: d.Resource.Namespace, name: t.typeName(e.Kind.ID(), e.Kind.Names()) + "/" + d.Resource.Name,
		info: factText(&e), severity: event.Normal,
	}
	if !e.Since.IsZero() {
		r.at, r.until = e.Since, e.Time
	}
	switch d.Fact {
	case event.FactCreated, event.FactWritten, event.FactDeleting, event.FactRollout, event.FactRelease:
		r.manager = managers.Display(d.Manager, d.Subresource)
		if d.Subresource == "status" {
			r.manager = d.Manager
		}
	case event.FactEvent:
		r.name, r.manager = d.About, d.Manager
	}
	t.dimmed(func() string { return t.head(r) })
	if d.Fact == event.FactWritten && (d.Subresource == "status" || e.AtCreation) && !t.o.Full {
		return t.write() // its fields are the whole status, or the new object
	}
	if d.Fact == event.FactCreated && !t.o.Full && len(t.o.Only) == 0 {
		return t.write()
	}
	t.reconstructedFields(&e)
	return t.write()
}

// dimmed prints a line without colours of its own.
func (t *Text) dimmed(line func() string) {
	color := t.o.Color
	t.o.Color = false
	text := line()
	t.o.Color = color
	t.muted = false
	t.line(t.style(dim, text))
}

// factText describes an entry.
func factText(e *reconstruct.Entry) string {
	d := &e.Data
	switch d.Fact {
	case event.FactCreated:
		return "created"
	case event.FactWritten:
		if e.AtCreation && d.Subresource != "status" {
			return "last write, in the same second"
		}
		if d.Subresource == "status" {
			return "wrote the status"
		}
		if n := int64(len(e.Fields)) + d.More; n > 0 {
			return "last write; owns " + plural(n, "field")
		}
		return "last write"
	case event.FactDeleting:
		return "deletion requested"
	case event.FactRollout:
		if d.Previous == "" {
			return "revision ? → " + d.Revision
		}
		return "revision " + d.Previous + " → " + d.Revision
	case event.FactRelease:
		if d.Status == "" {
			return fmt.Sprintf("release %s v%s recorded", d.Release, d.Revision)
		}
		return fmt.Sprintf("release %s v%s %s", d.Release, d.Revision, d.Status)
	case event.FactCondition:
		return conditionsText(d.Conditions)
	case event.FactTerminated:
		return terminatedText(e)
	case event.FactRestarted:
		return fmt.Sprintf("%s started again (restart %d)", d.Container, d.Restarts)
	case event.FactFinished:
		return joined("finished", " ", lasted(d.Began, e))
	case event.FactEvent:
		text := joined(joined(d.Reason, ": ", d.Message), " ", eventCount(e))
		if d.Status != "" && d.Status != "Normal" {
			text = d.Status + " " + text
		}
		return text
	}
	return string(d.Fact)
}

// conditionsText lists conditions: "Ready True, Progressing False (reason)".
func conditionsText(cs []event.ConditionFact) string {
	parts := make([]string, len(cs))
	for i, c := range cs {
		parts[i] = c.Type + " " + c.Status
		if c.Reason != "" && (c.Status != "True" || len(cs) == 1) {
			parts[i] += " (" + c.Reason + ")"
		}
	}
	return strings.Join(parts, ", ")
}

func terminatedText(e *reconstruct.Entry) string {
	d := &e.Data
	text := d.Container + " ended"
	if d.ExitCode != nil {
		text += " with " + strconv.FormatInt(*d.ExitCode, 10)
	}
	if d.Reason != "" && d.Reason != "Error" && d.Reason != "Completed" {
		text += " (" + d.Reason + ")"
	}
	return joined(text, " ", lasted(d.Began, e))
}

// lasted returns the duration up to an entry, which has two known ends.
func lasted(began *time.Time, e *reconstruct.Entry) string {
	if began == nil || began.After(e.Time) || !e.Since.IsZero() {
		return ""
	}
	return after(moment{server: *began}, moment{server: e.Time})
}

func eventCount(e *reconstruct.Entry) string {
	if e.Data.Count <= 1 {
		return ""
	}
	over := ""
	if b := e.Data.Began; b != nil && e.Time.Sub(*b) >= time.Second {
		over = " in " + Duration(e.Time.Sub(*b))
	}
	return fmt.Sprintf("(%d times%s)", e.Data.Count, over)
}

// reconstructedFields prints the differences of templates, or what a manager owns.
func (t *Text) reconstructedFields(e *reconstruct.Entry) {
	fields, more := specFirst(e.Fields), e.Data.More
	if len(fields) > fieldsShown && !t.o.Full {
		more += int64(len(fields) - fieldsShown)
		fields = fields[:fieldsShown]
	}
	for _, f := range fields {
		if e.Data.Fact == event.FactRollout {
			for _, l := range diff.Text([]diff.Change{f}, diff.TextOptions{}) {
				t.dimmed(func() string { return t.detail(plain, l.Text) })
			}
			continue
		}
		text := f.Path.String()
		if f.To != nil {
			text = ownedText(f)
		}
		t.dimmed(func() string { return t.detail(plain, text) })
	}
	if more > 0 {
		t.dimmed(func() string { return t.detail(plain, fmt.Sprintf("… %d more", more)) })
	}
}

// specFirst returns the fields without those of the metadata, and then these.
func specFirst(fields []diff.Change) []diff.Change {
	var spec, meta []diff.Change
	for _, f := range fields {
		if field(f.Path, 0) == "metadata" {
			meta = append(meta, f)
		} else {
			spec = append(spec, f)
		}
	}
	return append(spec, meta...)
}

// ownedText is a field and its present value, on one line.
func ownedText(f diff.Change) string {
	switch v := f.To.(type) {
	case map[string]any:
		return fmt.Sprintf("%s: {%s}", f.Path, ellipsis(len(v)))
	case []any:
		return fmt.Sprintf("%s: [%s]", f.Path, ellipsis(len(v)))
	default:
		return f.Path.String() + ": " + diff.Scalar(v)
	}
}

func ellipsis(n int) string {
	if n == 0 {
		return ""
	}
	return "…"
}

// Heading prints a line of the program between reconstructed and other lines.
func (t *Text) Heading(text string) error {
	t.muted = false
	t.line(t.style(dim, "── "+escape(text)))
	return t.write()
}

// Reconstructed prints a reconstructed entry as an event of another CloudEvents type.
func (e *Events) Reconstructed(entry reconstruct.Entry) error {
	line, err := encode(entry.Event(e.o.Cluster))
	if err != nil {
		return fmt.Errorf("encode reconstructed event of %s/%s: %w", entry.Data.Resource.Resource, entry.Data.Resource.Name, err)
	}
	return e.print(line)
}
