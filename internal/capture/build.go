package capture

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/openapi"
)

// Managed fields are read for attribution, then dropped from the object before and after: they repeat the object and
// differ with every write. The wire does not say who removed a field.

// builder builds changes from deltas.
type builder struct {
	change.Builder
	schemas *openapi.Schemas
}

// narrow adds what narrows the interval of a deletion: the object's final state, and its successor, the next object of its
// name among the deltas that came after it in one batch. One that cannot be read does not.
func (b *builder) narrow(c *change.Change, d *feed.Delta, rest []feed.Delta) {
	if final, err := object(d.Final); err == nil && final != nil {
		c.Known = append(c.Known, final)
	}
	i := slices.IndexFunc(rest, func(next feed.Delta) bool { return next.Op == informer.Added && next.Key == d.Key })
	if i >= 0 && rest[i].UID != d.UID { // it may have left the selection and be back
		c.Successor, _ = object(rest[i].New)
	}
}

// version builds a change with the JSON of its objects. If hide is not nil, it redacts the old object by the
// current rules, as far as that is possible. rest are the deltas after d in its batch. Parts that are equal in both objects
// may share memory.
func (b *builder) version(ctx context.Context, r Resource, op event.Op, d *feed.Delta, rest []feed.Delta, hide func(before, after map[string]any) error) (v Version, err error) {
	c := &v.Change
	*c = change.Change{Names: r.Names(), Meta: change.Meta{
		Op: op, Kind: r.ID(),
		Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion,
		At: d.At, Since: d.After, Net: d.Relisted && !d.After.IsZero(),
	}}
	if d.New.IsZero() {
		c.ResourceVersion = cmp.Or(d.Final.ResourceVersion, d.Old.ResourceVersion)
	}
	if v.Sum = d.New.Sum(); op == event.Converted {
		// An object can change form and back again, so the time makes each conversion unique. A recorded
		// conversion is not found a second time, so the number need not be reproducible.
		v.Form = max(1, v.Sum^uint64(d.At.UnixNano())) //nolint:gosec // a time after 1970
	}
	before, after, err := b.objects(&v, d, hide)
	if err != nil {
		return v, fmt.Errorf("decode %s: %w", c.Subject(), err)
	}
	for _, obj := range []map[string]any{after, before} { // it may be newer, or older, than discovery
		if kind, _ := obj["kind"].(string); kind != "" {
			c.Kind.Kind = kind
			break
		}
	}
	var schema diff.Schema
	if op.Differs() {
		if schema, err = b.schemas.For(ctx, r.Group, r.Version, c.Kind.Kind); err != nil {
			schema = nil // diff falls back to comparing without a schema
		}
	}
	if d.Relisted && c.Since.IsZero() {
		c.Since = change.Existed(before, after, c.At)
		c.Net = !c.Since.IsZero()
	}
	if c.Gone() && !c.Since.IsZero() {
		b.narrow(c, d, rest)
	}
	v.ManagedFields = change.Metadata(after)["managedFields"]
	b.Build(c, before, after, schema)
	v.schema = schema
	v.Exact = hide == nil && !c.Replaced() && (before != nil || !op.Differs() && !c.Gone())
	return v, nil
}

// objects decodes both versions of a delta and stores their JSON in v.
func (b *builder) objects(v *Version, d *feed.Delta, hide func(before, after map[string]any) error) (before, after map[string]any, err error) {
	if v.BeforeJSON, err = d.Old.JSON(); err != nil {
		return nil, nil, err
	}
	if v.AfterJSON, err = d.New.JSON(); err != nil {
		return nil, nil, err
	}
	if hide == nil || v.BeforeJSON == nil {
		return jsonmap.DecodePair(v.BeforeJSON, v.AfterJSON)
	}
	if before, err = jsonmap.Decode(v.BeforeJSON); err != nil { // shares nothing with after, which is already redacted
		return nil, nil, err
	}
	if _, after, err = jsonmap.DecodePair(nil, v.AfterJSON); err != nil {
		return nil, nil, err
	}
	if err = hide(before, after); err != nil {
		return nil, nil, err
	}
	v.BeforeJSON, err = jsonmap.Encode(before)
	return before, after, err
}

// object decodes a version; nil if it is absent.
func object(v feed.Version) (map[string]any, error) {
	raw, err := v.JSON()
	if raw == nil || err != nil {
		return nil, err
	}
	return jsonmap.Decode(raw)
}
