package change

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Builder completes changes: it diffs the versions, attributes fields to managers and marks quiet ones. It is
// safe for concurrent use.
type Builder struct {
	Quiet *quiet.Set
}

// Build completes a change whose Op, Kind, Namespace, Name, At and Since are set, perhaps Known and Successor, from its two versions, of
// which one may be nil. The change keeps them, and their managed fields are removed after attribution. With a
// nil schema, lists are compared without merge keys from the server.
func (b *Builder) Build(c *Change, before, after map[string]any, schema diff.Schema) {
	latest := after
	if latest == nil {
		latest = before
	}
	c.Before, c.After = before, after
	c.Owner, c.Manager = Controller(latest), managers.Unknown
	entries := managers.Parse(latest)
	earlier := Metadata(before)["managedFields"]
	c.cut(append(c.Known, before)...)
	c.Known, c.Successor = nil, nil
	dropManagedFields(before)
	dropManagedFields(after)
	switch {
	case c.Gone():
	case c.Op == event.Converted: // it has no writer, and its time is unknown
		if !c.Blind {
			b.fields(c, managers.Entries{}, schema)
		}
		c.Time, c.Since, c.Net, c.Quiet = c.At, time.Time{}, false, true
	case c.Op != event.Updated:
		c.Managers, c.Manager = entries.List(), entries.Creator()
		c.Time = created(latest, c.At)
	case c.Blind:
		c.Managers, c.Time = entries.List(), c.At
	default:
		c.Managers = entries.List()
		b.fields(c, entries, schema)
		c.attribute()
		c.unmoved = unmoved(c.Managers, earlier)
		c.Time = written(c)
	}
}

// fields fills in the differences.
func (b *Builder) fields(c *Change, entries managers.Entries, schema diff.Schema) {
	for _, f := range diff.Objects(c.Before, c.After, schema) {
		fc := FieldChange{Change: f, Manager: managers.Unknown, Quiet: b.isQuiet(c.Kind, &f)}
		if f.Op != diff.Remove && f.Op != diff.Reorder { // the server does not record who removed a field or moved elements
			fc.Manager, fc.Subresource = entries.Owner(f.Path, f.To)
		}
		c.Fields = append(c.Fields, fc)
		c.Unkeyed = c.Unkeyed || schema == nil && ofList(&f)
	}
}

// ofList reports whether a difference was found by comparing elements of a list.
func ofList(f *diff.Change) bool {
	_, from := f.From.([]any)
	_, to := f.To.([]any)
	return from && to || slices.ContainsFunc(f.Path, func(e diff.Elem) bool { return e.Kind != diff.Field })
}

// attribute sets what follows from the fields of an update: whether it is quiet, and its manager.
func (c *Change) attribute() {
	c.Quiet, c.Manager = true, managers.Unknown
	manager, several := "", false
	for i := range c.Fields {
		if f := &c.Fields[i]; !f.Quiet {
			c.Quiet = false
			who := f.Writer()
			several = several || manager != "" && manager != who
			manager = who
		}
	}
	if manager != "" && !several {
		c.Manager = manager
	}
}

// isQuiet applies the rules. The API version is always quiet: it is the version that we requested, and changes
// when the server stops serving that. So is a new order of a list with merge keys in the metadata or the status: the order
// there means nothing, and controllers that collect such a list anew write it in any order. In a spec, and in other fields,
// it is what someone wants: env variables refer to earlier ones, init containers and webhooks run in their order, and a
// pod template in another order replaces the pods.
func (b *Builder) isQuiet(k Kind, f *diff.Change) bool {
	p := f.Path
	switch {
	case len(p) == 1 && p[0].Name == "apiVersion":
		return true
	case f.Op == diff.Reorder && (p[0].Name == "metadata" || p[0].Name == "status"):
		return true
	}
	return b.Quiet.Quiet(k.Group, k.Resource, p)
}

// Metadata returns an object's metadata; nil if it has none.
func Metadata(obj map[string]any) map[string]any {
	m, _ := obj["metadata"].(map[string]any)
	return m
}

// dropManagedFields removes managedFields after attribution: they repeat the whole object and differ with every
// write.
func dropManagedFields(obj map[string]any) {
	meta := Metadata(obj)
	if _, ok := meta["managedFields"]; !ok { // metadata without it may be shared, and is not written to
		return
	}
	delete(meta, "managedFields")
}

// Controller returns the owner whose controller field is true; there is at most one.
func Controller(obj map[string]any) *event.Owner {
	refs, _ := Metadata(obj)["ownerReferences"].([]any)
	for _, r := range refs {
		ref, _ := r.(map[string]any)
		if is, _ := ref["controller"].(bool); !is {
			continue
		}
		kind, _ := ref["kind"].(string)
		name, _ := ref["name"].(string)
		uid, _ := ref["uid"].(string)
		return &event.Owner{Kind: kind, Name: name, UID: uid}
	}
	return nil
}

// Timestamp returns a time field of the metadata; the server writes whole seconds.
func Timestamp(obj map[string]any, field string) time.Time {
	s, _ := Metadata(obj)[field].(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func created(obj map[string]any, fallback time.Time) time.Time {
	if t := Timestamp(obj, "creationTimestamp"); !t.IsZero() {
		return t
	}
	return fallback
}

// written returns the time of an update: the newest time of the entries of its fields' managers, if the update can have
// happened then, or if the entry did not have it before. An entry holds the time of its last change, in whole seconds; a
// write that does not change the entry leaves its time. If all fields have unknown managers, as removed ones have, it is the
// newest time of an entry that moved: it also moves when its manager applies the object without a field.
func written(c *Change) time.Time {
	var last time.Time
	old := false // last may be the time of an earlier write
	times := TimesOf(c.Managers)
	for i := range c.Fields {
		if e := times[writer{c.Fields[i].Manager, c.Fields[i].Subresource}]; e.time.After(last) {
			last, old = e.time, c.unmoved == nil || c.unmoved[e.at]
		}
	}
	if last.IsZero() {
		last = moved(c)
	}
	seenLate := !old && c.Since.IsZero() && last.Before(c.At)
	if last.IsZero() || !c.canBe(last) && !seenLate {
		return c.At
	}
	return last
}

// moved returns the newest time of the entries that the object did not have before; zero if there are none, or if those before
// are unknown.
func moved(c *Change) (last time.Time) {
	for i, before := range c.unmoved {
		if t, err := time.Parse(time.RFC3339, c.Managers[i].Time); err == nil && !before {
			last = later(last, t)
		}
	}
	return last
}

// writer is a manager that writes to a subresource; empty is the object itself.
type writer struct{ manager, subresource string }

// entryTime is the time of an entry.
type entryTime struct {
	time time.Time
	at   int // which entry has it
}

// Times are the newest times of the managers' entries. An object can have thousands of entries, and a change as many fields.
type Times map[writer]entryTime

// TimesOf returns the times of entries; none for a manager whose entries have no time.
func TimesOf(entries []event.Manager) Times {
	times := Times{}
	for i, m := range entries {
		w := writer{m.Manager, m.Subresource}
		if t, err := time.Parse(time.RFC3339, m.Time); err == nil && t.After(times[w].time) {
			times[w] = entryTime{t, i}
		}
	}
	return times
}

// Of returns when a manager wrote last; the zero time if that is unknown.
func (t Times) Of(manager, subresource string) time.Time { return t[writer{manager, subresource}].time }

// canBe reports whether the change can have happened at a time, by clocks that may differ a little.
func (c *Change) canBe(t time.Time) bool {
	const skew = 5 * time.Second
	from := c.At
	if !c.Since.IsZero() {
		from = c.Since
	}
	return !t.Before(from.Add(-skew)) && !t.After(c.At.Add(skew))
}

// unmoved reports for each manager whether its entry had the same time in the managedFields of the object before; nil if
// these are unknown.
func unmoved(managers []event.Manager, before any) []bool {
	entries, _ := before.([]any)
	if len(entries) == 0 {
		return nil
	}
	was := map[event.Manager]bool{}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		text := func(field string) string { s, _ := entry[field].(string); return s }
		was[event.Manager{Manager: text("manager"), Operation: text("operation"), Subresource: text("subresource"), Time: text("time")}] = true
	}
	out := make([]bool, len(managers))
	for i := range managers {
		out[i] = was[managers[i]]
	}
	return out
}

// Subject names the object in errors: "configmaps/web in shop".
func (c *Change) Subject() string {
	s := c.Kind.GroupResource() + "/" + c.Name
	if c.Namespace != "" {
		s += " in " + c.Namespace
	}
	return s
}

// SetObjects gives objects to a change that was passed on without them, and removes their managed fields.
func (c *Change) SetObjects(before, after map[string]any) {
	dropManagedFields(before)
	dropManagedFields(after)
	c.Before, c.After = before, after
}

// Replaced reports whether the only listed difference is the whole object. It is then listed only in part if the objects
// were decoded in part.
func (c *Change) Replaced() bool { return len(c.Fields) == 1 && len(c.Fields[0].Path) == 0 }
