package capture

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Managed fields are read for attribution, then dropped from the object before and after: they repeat the object and
// differ with every write. The wire does not say who removed a field.

// builder makes changes of deltas.
type builder struct {
	change.Builder
	schemas *openapi.Schemas
	// decode reads two versions: jsonmap.DecodePair, or, where nobody is shown the objects,
	// jsonmap.DecodeChanged.
	decode func(before, after []byte) (b, a map[string]any, err error)
}

// version is a change with the JSON of its objects. Hide, if not nil, makes of the object before it what the
// rules make now, as far as that can be known. What is the same in both objects may be one value in memory.
func (b *builder) version(ctx context.Context, r Resource, op event.Op, d *feed.Delta, hide func(before, after map[string]any) error) (v Version, shown bool, err error) {
	c := &v.Change
	*c = change.Change{
		Op: op, Resource: r,
		Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion,
		At: d.At, Since: d.After, Net: d.Relisted && !d.After.IsZero(),
	}
	if d.New.IsZero() {
		c.ResourceVersion = cmp.Or(d.Final.ResourceVersion, d.Old.ResourceVersion)
	}
	if v.Sum = d.New.Sum(); op == event.Converted {
		// A form may come back, and go again: the time makes each conversion its own. What is recorded once is not
		// found again, so no second finding has to have the same number.
		v.Form = max(1, v.Sum^uint64(d.At.UnixNano())) //nolint:gosec // a time after 1970
	}
	before, after, err := b.objects(&v, d, hide)
	if err != nil {
		return v, false, fmt.Errorf("decode %s: %w", c.Subject(), err)
	}
	var schema diff.Schema
	if op.Differs() {
		if schema, err = b.schemas.For(ctx, r.Group, r.Version, r.Kind); err != nil {
			schema = nil // diff's stated fallback; Schemas counts it
		}
	}
	return v, b.Build(c, before, after, schema), nil
}

// objects reads both versions of a delta, and notes their JSON.
func (b *builder) objects(v *Version, d *feed.Delta, hide func(before, after map[string]any) error) (before, after map[string]any, err error) {
	if v.BeforeJSON, err = d.Old.JSON(); err != nil {
		return nil, nil, err
	}
	if v.AfterJSON, err = d.New.JSON(); err != nil {
		return nil, nil, err
	}
	if hide == nil || v.BeforeJSON == nil {
		return b.decode(v.BeforeJSON, v.AfterJSON)
	}
	if before, err = jsonmap.Decode(v.BeforeJSON); err != nil { // apart from after, which is hidden already
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

// object reads a version; an absent one is nil.
func object(v feed.Version) (map[string]any, error) {
	raw, err := v.JSON()
	if raw == nil || err != nil {
		return nil, err
	}
	return jsonmap.Decode(raw)
}
