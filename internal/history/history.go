// Package history tells the changes of a journal as they were told when they happened: what differs and
// who wrote it is worked out again from the versions that the journal keeps.
//
// A schema that has changed since, and rules that have, show: fields are compared and judged as of now.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/openapi"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Teller makes changes of a journal's entries. It is safe for concurrent use.
type Teller struct {
	reader   *journal.Reader
	builder  change.Builder
	versions versions

	mu      sync.Mutex
	schemas map[journal.Kind]known
	short   map[string][]string // short names by group-resource, as the journal has them
	named   map[string]bool     // group-resources that were looked up in short
}

// known is a kind's schema as it was when the journal ended with change upTo.
type known struct {
	raw    []byte
	schema diff.Schema
	upTo   int64
}

// New returns a Teller that calls quiet what the rules do.
func New(r *journal.Reader, rules *quiet.Set) *Teller {
	return &Teller{reader: r, builder: change.Builder{Quiet: rules}, schemas: map[journal.Kind]known{}, named: map[string]bool{}}
}

// Change reads the objects of an entry and returns the change. Its errors are those of Entry.Contents, but
// for journal.ErrPurged: see Make.
func (t *Teller) Change(ctx context.Context, e *journal.Entry) (change.Change, error) {
	before, after, err := e.Contents(ctx)
	if err != nil && !errors.Is(err, journal.ErrPurged) {
		c := t.outline(ctx, e)
		return c, fmt.Errorf("read %s: %w", c.Subject(), err)
	}
	c, _, err := t.Make(ctx, e, before, after, false)
	return c, err
}

// outline is a change without what differs.
func (t *Teller) outline(ctx context.Context, e *journal.Entry) change.Change {
	return change.Change{
		Op: e.Op, Resource: t.resource(ctx, e.Kind),
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, Owner: e.Owner,
		At: e.At, Since: e.Since, Net: e.Net, Time: e.Time, Gap: e.Gap, Absence: e.Absence, Quiet: e.Quiet, Manager: e.Manager, Epoch: e.Epoch, Form: e.Form,
	}
}

// Make returns the change of an entry whose contents were read. Where they are no objects, the change
// that comes with the error tells the rest. Where nothing is known of what was before, it says so: see
// change.Change.Blind. Lean leaves out the objects of an update or a conversion, which is several times faster. Decoded
// is how much JSON the change holds: what before and after have in common counts once.
func (t *Teller) Make(ctx context.Context, e *journal.Entry, before, after []byte, lean bool) (c change.Change, decoded int, err error) {
	if !e.Op.Differs() {
		return t.decode(ctx, e, before, after, false)
	}
	if b, a := t.versions.pair(objectOf(e), before, after); a != nil {
		c = t.make(ctx, e, b.Object(), a.Object())
		t.versions.put(objectOf(e), a)
		decoded = len(before) + len(after) - a.Shared()
	} else if c, decoded, err = t.decode(ctx, e, before, after, lean); err == nil && lean && wholeObject(&c) {
		c, decoded, err = t.decode(ctx, e, before, after, false)
	}
	if lean {
		c.Judge()
		c.Before, c.After = nil, nil
	}
	return c, decoded, err
}

// wholeObject reports whether the only change listed is of the object itself, of which From and To hold all.
func wholeObject(c *change.Change) bool { return len(c.Fields) == 1 && len(c.Fields[0].Path) == 0 }

// decode is Make of objects that are not kept. With changed, it decodes only what can have changed: see
// jsonmap.DecodeChanged.
func (t *Teller) decode(ctx context.Context, e *journal.Entry, before, after []byte, changed bool) (c change.Change, decoded int, err error) {
	if !e.Op.HasObject() {
		return t.outline(ctx, e), 0, nil
	}
	old, now, decoded, err := jsonmap.DecodeSized(before, after, changed)
	if err != nil {
		c = t.outline(ctx, e)
		return c, 0, fmt.Errorf("decode %s: %w", c.Subject(), err)
	}
	return t.make(ctx, e, old, now), decoded, nil
}

// make makes the change between two versions, and takes the managed fields out of them.
func (t *Teller) make(ctx context.Context, e *journal.Entry, old, now map[string]any) change.Change {
	c := t.outline(ctx, e)
	if !e.Op.Differs() && now != nil {
		old = nil // what the object was before a selection let it in, or before it was recreated
	}
	var schema diff.Schema
	if e.Op.Differs() {
		schema = t.schema(ctx, e)
	}
	c.Blind = old == nil && (e.Op.Differs() || c.Gone())
	t.builder.Build(&c, old, now, schema)
	c.Time, c.Owner = e.Time, e.Owner
	if c.Blind {
		c.Manager, c.Quiet = e.Manager, e.Quiet
	}
	return c
}

// schema is the kind's; nil, with which a diff does what it can, where the journal has none yet. It comes with
// the first update that needs it, and so does another one: the journal is asked again for a change that it did
// not have the last time.
func (t *Teller) schema(ctx context.Context, e *journal.Entry) diff.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.schemas[e.Kind]
	if e.Seq <= k.upTo {
		return k.schema
	}
	raw, upTo, err := t.reader.Schema(ctx, e.Kind)
	if err != nil {
		return k.schema
	}
	if !bytes.Equal(raw, k.raw) {
		k.raw = raw
		if k.schema, err = openapi.Unmarshal(raw); err != nil {
			k.schema = nil
		}
	}
	k.upTo = upTo
	t.schemas[e.Kind] = k
	return k.schema
}
