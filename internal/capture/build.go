package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture/managers"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
)

// builder makes changes of deltas: it diffs, attributes and marks what is quiet.
type builder struct {
	schemas *openapi.Schemas
	quiet   *quiet.Set
	// only and ignore are the user's paths: an update shows the fields that only touches and
	// ignore does not cover.
	only, ignore []diff.Pattern
}

// build makes the change of a delta whose operation is decided already. It returns false where the
// user's paths leave nothing of it.
func (b *builder) build(ctx context.Context, r Resource, op event.Op, d informer.Delta) (Change, bool, error) {
	c := Change{
		Op: op, Resource: r,
		Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID),
		At: d.At, Since: d.After, Manager: managers.Unknown,
	}
	before, err := object(d.Old)
	if err != nil {
		return c, false, fmt.Errorf("decode %s: %w", c.subject(), err)
	}
	after, err := object(d.New)
	if err != nil {
		return c, false, fmt.Errorf("decode %s: %w", c.subject(), err)
	}
	c.Before, c.After = before, after
	latest, version := after, d.New.ResourceVersion
	if latest == nil {
		latest, version = before, d.Old.ResourceVersion
		if d.Final.ResourceVersion != "" {
			version = d.Final.ResourceVersion
		}
	}
	c.ResourceVersion = version
	c.Owner = controller(latest)

	entries := managers.Parse(latest)
	dropManagedFields(before)
	dropManagedFields(after)
	if gone(c) {
		c.Time = c.At
		return c, b.shows(after, before), nil
	}
	c.Managers = entries.List()
	if op != event.Updated {
		c.Manager = entries.Creator()
		c.Time = created(latest, c.At)
		return c, b.shows(after, before), nil
	}
	schema, err := b.schemas.For(ctx, r.Group, r.Version, r.Kind)
	if err != nil {
		schema = nil // diff's stated fallback; Schemas counts it
	}
	shown := b.fields(&c, entries, schema)
	c.Time = written(&c)
	return c, shown, nil
}

// fields fills in what differs. It returns false where the user's paths leave nothing.
func (b *builder) fields(c *Change, entries managers.Entries, schema diff.Schema) bool {
	c.Quiet = true
	manager, several := "", false
	touched, ignored := len(b.only) == 0, false
	for _, f := range diff.Objects(c.Before, c.After, schema) {
		if covered(b.ignore, f.Path) {
			ignored = ignored || !b.isQuiet(c.Resource, f.Path)
			continue
		}
		if len(b.only) > 0 && !touches(b.only, f) {
			continue
		}
		touched = true
		fc := FieldChange{Change: f, Manager: managers.Unknown, Quiet: b.isQuiet(c.Resource, f.Path)}
		if f.Op != diff.Remove { // the server does not say who removed a field
			fc.Manager, fc.Subresource = entries.Owner(f.Path, f.To)
		}
		if !fc.Quiet {
			c.Quiet = false
			who := managers.Display(fc.Manager, fc.Subresource)
			several = several || (manager != "" && manager != who)
			manager = who
		}
		c.Fields = append(c.Fields, fc)
	}
	if manager != "" && !several {
		c.Manager = manager
	}
	return touched && !(ignored && c.Quiet)
}

// isQuiet asks the rules. The version of the API is quiet besides: it is the one that we asked for, and
// changes when that is not served any more.
func (b *builder) isQuiet(r Resource, p diff.Path) bool {
	return p.String() == "apiVersion" || b.quiet.Quiet(r.Group, r.Resource, p)
}

// shows applies --path to an object that comes or goes as a whole.
func (b *builder) shows(after, before map[string]any) bool {
	if len(b.only) == 0 {
		return true
	}
	whole := after
	if whole == nil {
		whole = before
	}
	return touches(b.only, diff.Change{Op: diff.Add, To: any(whole)})
}

func covered(ps []diff.Pattern, p diff.Path) bool {
	for _, pattern := range ps {
		if pattern.Covers(p) {
			return true
		}
	}
	return false
}

func touches(ps []diff.Pattern, c diff.Change) bool {
	for _, pattern := range ps {
		if pattern.Touches(c) {
			return true
		}
	}
	return false
}

func object(v informer.Version) (map[string]any, error) {
	if v.IsZero() {
		return nil, nil
	}
	return v.Object()
}

func metadata(obj map[string]any) map[string]any {
	m, _ := obj["metadata"].(map[string]any)
	return m
}

// dropManagedFields takes out what attribution has read: it repeats the whole object and differs
// with every write.
func dropManagedFields(obj map[string]any) {
	delete(metadata(obj), "managedFields")
}

// controller is the owner whose controller field is true; there is at most one.
func controller(obj map[string]any) *event.Owner {
	refs, _ := metadata(obj)["ownerReferences"].([]any)
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

// timestamp reads a time field of the metadata; the server writes whole seconds.
func timestamp(obj map[string]any, field string) time.Time {
	s, _ := metadata(obj)[field].(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func created(obj map[string]any, fallback time.Time) time.Time {
	if t := timestamp(obj, "creationTimestamp"); !t.IsZero() {
		return t
	}
	return fallback
}

// written is when an update happened: the time that its managers' entries give, where they give one
// and it lies in the interval in which the update can have happened. An entry's time tells its
// last change, in whole seconds; a write that changed nothing of the entry leaves it old.
func written(c *Change) time.Time {
	var last time.Time
	for _, f := range c.Fields {
		for _, m := range c.Managers {
			if m.Manager != f.Manager || m.Subresource != f.Subresource {
				continue
			}
			if t, err := time.Parse(time.RFC3339, m.Time); err == nil && t.After(last) {
				last = t
			}
		}
	}
	const skew = 5 * time.Second
	from := c.At.Add(-skew)
	if !c.Since.IsZero() {
		from = c.Since.Add(-skew)
	}
	if last.Before(from) || last.After(c.At.Add(skew)) {
		return c.At
	}
	return last
}

// subject names the object for an error: "cm/web in shop".
func (c *Change) subject() string {
	s := c.Resource.GroupResource() + "/" + c.Name
	if c.Namespace != "" {
		s += " in " + c.Namespace
	}
	return s
}
