package capture

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// builder makes changes of deltas.
type builder struct {
	change.Builder
	schemas *openapi.Schemas
}

// version is a change with the JSON of its objects. Hide, if not nil, makes of the object before it what the
// rules make now, as far as that can be known.
func (b *builder) version(ctx context.Context, r Resource, op event.Op, d *informer.Delta, hide func(before, after map[string]any) error) (v Version, shown bool, err error) {
	c := &v.Change
	*c = change.Change{
		Op: op, Resource: r,
		Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion,
		At: d.At, Since: d.After,
	}
	if d.New.IsZero() {
		c.ResourceVersion = cmp.Or(d.Final.ResourceVersion, d.Old.ResourceVersion)
	}
	var before, after map[string]any
	if v.BeforeJSON, before, err = object(d.Old); err == nil {
		v.AfterJSON, after, err = object(d.New)
	}
	if err == nil && before != nil && hide != nil {
		if err = hide(before, after); err == nil {
			v.BeforeJSON, err = json.Marshal(before)
		}
	}
	if err != nil {
		return v, false, fmt.Errorf("decode %s: %w", c.Subject(), err)
	}
	var schema diff.Schema
	if op == event.Updated {
		if schema, err = b.schemas.For(ctx, r.Group, r.Version, r.Kind); err != nil {
			schema = nil // diff's stated fallback; Schemas counts it
		}
	}
	return v, b.Build(c, before, after, schema), nil
}

// object reads a version; an absent one is nil.
func object(v informer.Version) (raw []byte, o map[string]any, err error) {
	if v.IsZero() {
		return nil, nil, nil
	}
	if raw, err = v.JSON(); err != nil {
		return nil, nil, err
	}
	if o, err = jsonmap.Decode(raw); err != nil {
		return nil, nil, err
	}
	return raw, o, nil
}
