package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/managers"
)

// appeared prints an object that is not new: it was in the first list, or now matches the selection.
func (t *Text) appeared(c change.Change) {
	t.counts.Shown++
	r := t.row(c, signSnapshot)
	if c.Op == event.Entered {
		r.sign, r.info, r.manager = signEntered, "entered the selection", crossedBy(c)
	} else {
		r.info = stateOf(c.Kind, c.After)
	}
	t.begin(r)
	t.printSelected(c)
	t.whole(c.After)
}

// unknown stands for a manager that the server does not name: such as of a deletion.
const unknown = "?"

// crossedBy names the manager with whose write an object entered or left the selection.
func crossedBy(c change.Change) string { return cmp.Or(c.Manager, unknown) }

func (t *Text) created(c change.Change) {
	o := t.track(c)
	f := &fold{since: momentOf(c), to: c.After}
	if c.Owner != nil && foldedWhenCreated(c) && !t.o.Flat {
		if o.fold == nil { // otherwise it was received twice, and its pending changes must stay
			f.created = true
			o.fold = f
		}
		t.add(o, c, nil)
		t.schedule(o)
		return
	}
	t.printCreated(c)
	f.from, f.origin = c.After, c.After
	if o.fold == nil && !t.o.Flat && moving(c.Kind, f.from, c.After) {
		o.fold = f
	}
	t.schedule(o)
}

// foldedWhenCreated reports whether the line of an object that a controller created waits for its next state.
func foldedWhenCreated(c change.Change) bool {
	return isPod(c.Kind) || memberKinds[c.Kind.GroupKind()] && workloadKinds[c.Owner.Kind]
}

// printCreated prints a created object.
func (t *Text) printCreated(c change.Change) {
	t.counts.Shown++
	r := t.row(c, signCreated)
	if c.Owner != nil {
		r.info = stateWhenCreated(c.Kind, c.After)
	} else {
		r.manager = c.Manager
	}
	t.begin(r)
	switch {
	case len(t.o.Only) > 0:
		t.printSelected(c)
	case c.Owner == nil || t.o.Whole:
		t.body(c.Kind, c.After)
	}
}

func (t *Text) updated(now time.Time, c change.Change) {
	shown, onlyState := t.visible(c)
	if len(shown) == 0 {
		if c.Blind && (t.o.Noise || !c.Quiet) {
			t.counts.Shown++
			r := t.row(c, signUpdated)
			r.info, r.manager = unknownBefore, managersOf(c, nil)
			t.begin(r)
		} else {
			t.counts.Quiet++
		}
		if o := t.objects[keyOf(c)]; o != nil && o.fold != nil {
			o.fold.to = c.After // an observedGeneration ends a rollout
			t.schedule(o)
		}
		return
	}
	t.flushFailure(now, c)
	o := t.track(c)
	switch pod := c.Owner != nil && isPod(c.Kind); {
	case t.o.Flat:
		t.printChange(now, o, c, shown)
	case onlyState, pod && o.fold != nil && o.fold.created, pod && terminating(c.After):
		t.add(o, c, shown)
	default:
		t.printChange(now, o, c, shown)
		if o.fold == nil && moving(c.Kind, c.Before, c.After) {
			o.fold = &fold{since: causeOf(c), origin: c.Before, from: c.Before}
		}
		if o.fold != nil {
			o.fold.spec(c)
			o.fold.to = c.After
		}
	}
	t.schedule(o)
}

// servedOtherwise describes a conversion.
const servedOtherwise = "is served in another form"

// converted prints an object that the API server serves in another form. No client wrote it, so it does not count as a
// change in a summary.
func (t *Text) converted(c change.Change) {
	if o := t.objects[keyOf(c)]; o != nil && o.fold != nil {
		o.fold.to = c.After
		t.schedule(o)
	}
	if !t.o.Noise {
		t.counts.Quiet++
		return
	}
	t.counts.Shown++
	r := t.row(c, signUpdated)
	if r.info, r.manager = servedOtherwise, unknown; c.Blind {
		r.info = unknownBefore
	}
	t.begin(r)
	fields := make([]diff.Change, len(c.Fields))
	for i, f := range c.Fields {
		fields[i] = f.Change
	}
	t.details(fields)
}

// visible returns the fields to show, and whether they all describe state.
func (t *Text) visible(c change.Change) (shown []change.FieldChange, onlyState bool) {
	onlyState = true
	for _, f := range c.Fields {
		if f.Quiet && !t.o.Noise || t.o.Stories && !t.o.Noise && c.UID != "" && isState(c, f) {
			continue
		}
		shown = append(shown, f)
		onlyState = onlyState && isState(c, f)
	}
	return shown, onlyState
}

// printChange prints an update at once, unless its object has had too many lines.
func (t *Text) printChange(now time.Time, o *object, c change.Change, fields []change.FieldChange) {
	if t.o.Watching && !t.mayPrint(now, o) {
		t.counts.Pending++
		if f := o.fold; f != nil && f.pending() > 0 {
			o.hot.fold(f.pending(), f.latest, f.lateSpan, "")
			o.hot.changes.add(f.pendingNumbers()...)
			f.rebase()
		}
		o.hot.add(c, fields)
		return
	}
	t.counts.Shown++
	r := t.row(c, signUpdated)
	r.manager = managersOf(c, fields)
	plain := make([]diff.Change, len(fields))
	for i, f := range fields {
		plain[i] = f.Change
	}
	if c.Owner != nil && (!t.o.Flat || t.o.Stories) || t.o.Each != nil {
		r.info = firstOf(fields).String()
		t.begin(r)
		return
	}
	t.begin(r)
	t.details(plain)
}

// managersOf names the manager of all fields, or else every manager, in the order of the fields.
func managersOf(c change.Change, fields []change.FieldChange) string {
	if c.Manager != unknown && c.Manager != "" {
		return c.Manager
	}
	var names []string
	for _, f := range fields {
		if changesEveryWrite(f.Path) && len(fields) > 1 {
			continue
		}
		name := managers.Display(f.Manager, f.Subresource)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return unknown
	}
	return strings.Join(names, ", ")
}

// counted adds the number of changes in a line, and the flag that shows them.
func (t *Text) counted(r row, f *fold) row {
	r.changes = f.pendingNumbers()
	switch {
	case r.owned:
		r.count = "(" + plural(f.pending(), "change") + ")"
	case f.members.count > 0:
		r.count, r.hint = "("+plural(f.pending(), "change")+")", "--flat"
	default:
		r.count, r.hint = "("+plural(f.count, "status change")+")", "--flat"
	}
	return r
}
