// Package history rebuilds the changes of a journal: it computes the differences and who wrote them from the versions
// that the journal stores.
//
// It uses the schemas of a change's time and the current rules, so a change can have other quiet fields than when it was
// recorded, but not other paths. Its severity is the recorded one.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/openapi"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Builder builds changes from a journal's entries. It is safe for concurrent use.
type Builder struct {
	source   Source
	builder  change.Builder
	versions versions

	mu      sync.Mutex
	schemas map[journal.Kind]known
	short   map[string][]string // the journal's short names, by group-resource
	named   map[string]bool     // group-resources that were looked up in short
}

// Cluster is the name of the cluster of kinds that name none.
func (t *Builder) Cluster() string { return t.source.Cluster() }

// known is a kind's schema for a range of changes.
type known struct {
	raw        []byte
	schema     diff.Schema
	from, upTo int64
}

// New returns a Builder that applies the given quiet rules.
func New(s Source, rules *quiet.Set) *Builder {
	return &Builder{source: s, builder: change.Builder{Quiet: rules}, schemas: map[journal.Kind]known{}, named: map[string]bool{}}
}

// Kinds returns the recorded kinds.
func (t *Builder) Kinds(ctx context.Context) ([]journal.Kind, error) { return t.source.Kinds(ctx) }

// Change reads the objects of an entry and returns the change. It fails like Entry.Contents, except that ErrPurged is not
// an error: see Make.
func (t *Builder) Change(ctx context.Context, e *journal.Entry) (change.Change, error) {
	before, after, err := e.Contents(ctx)
	if err != nil && !errors.Is(err, journal.ErrPurged) {
		c := t.outline(ctx, e)
		return c, fmt.Errorf("read %s: %w", c.Subject(), err)
	}
	c, _, err := t.Make(ctx, e, before, after, false)
	return c, err
}

// outline returns a change without objects and differences.
func (t *Builder) outline(ctx context.Context, e *journal.Entry) change.Change {
	return change.Change{Seq: e.Seq, Meta: e.Meta, Names: t.NamesOf(ctx, e.Kind)}
}

// Make returns the change of an entry whose contents were read. If they are not objects, the error comes with a change
// that has the rest. Any other error is temporary: the kind's schema could not be read. If the state before is unknown, the
// change is Blind. Lean omits the objects of an update or a
// conversion, which is several times faster. Decoded is the size of the decoded JSON; what both versions share counts once.
func (t *Builder) Make(ctx context.Context, e *journal.Entry, before, after []byte, lean bool) (c change.Change, decoded int, err error) {
	schema, err := t.schema(ctx, e)
	if err != nil {
		return t.outline(ctx, e), 0, err
	}
	b := build{
		of: objectOf(e), op: e.Op, before: before, after: after,
		outline: func() change.Change { return t.outline(ctx, e) },
		make:    func(old, now map[string]any) change.Change { return t.make(ctx, e, old, now, schema) },
	}
	if !e.Op.Differs() {
		return b.decode(false)
	}
	c, decoded, err = t.objects(&b, lean)
	if lean {
		c.Before, c.After = nil, nil
	}
	return c, decoded, err
}

// build is a change that is made from the texts of its objects.
type build struct {
	of            object
	op            event.Op
	before, after []byte
	outline       func() change.Change // without objects
	make          func(old, now map[string]any) change.Change
}

// objects makes an update or a conversion, with kept versions if possible. Lean decodes only what may differ.
func (t *Builder) objects(b *build, lean bool) (c change.Change, decoded int, err error) {
	if was, is := t.versions.pair(b.of, b.before, b.after); is != nil {
		c = b.make(was.Object(), is.Object())
		t.versions.put(b.of, is)
		return c, len(b.before) + len(b.after) - is.Shared(), nil
	}
	if c, decoded, err = b.decode(lean); err == nil && lean && c.Replaced() {
		c, decoded, err = b.decode(false)
	}
	return c, decoded, err
}

// decode makes the change without kept versions. With changed, it decodes only what may differ: see jsonmap.DecodeChanged.
func (b *build) decode(changed bool) (c change.Change, decoded int, err error) {
	if !b.op.HasObject() {
		return b.outline(), 0, nil
	}
	old, now, decoded, err := jsonmap.DecodeSized(b.before, b.after, changed)
	if err != nil {
		c = b.outline()
		return c, 0, &ContentError{c.Subject(), err}
	}
	return b.make(old, now), decoded, nil
}

// make builds the change between two versions, and removes their managed fields.
func (t *Builder) make(ctx context.Context, e *journal.Entry, old, now map[string]any, schema diff.Schema) change.Change {
	c := t.outline(ctx, e)
	if !e.Op.Differs() && now != nil {
		old = nil // from before a selection let the object in, or before it was recreated
	}
	c.Blind = old == nil && (e.Op.Differs() || c.Gone())
	t.builder.Build(&c, old, now, schema)
	c.Time, c.Owner = e.Time, e.Owner
	if c.Blind {
		c.Manager, c.Quiet = e.Manager, e.Quiet
	}
	if c.Crossed() {
		c.Manager = e.Manager
	}
	return c
}

// schema returns the kind's schema when a change was recorded; nil, with which a diff falls back to heuristics, if it had
// none. A new schema is recorded with the first update that needs it, so the journal is read again for each change that it
// did not have the last time.
func (t *Builder) schema(ctx context.Context, e *journal.Entry) (diff.Schema, error) {
	if !e.Op.Differs() {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.schemas[e.Kind]
	if k.from <= e.Seq && e.Seq <= k.upTo {
		return k.schema, nil
	}
	of, err := t.source.Schema(ctx, e.Kind, e.Seq)
	if Damaged(err) {
		of.JSON = nil
	} else if err != nil {
		return nil, fmt.Errorf("read schema of %s: %w", e.Kind.GroupResource(), err)
	}
	if !bytes.Equal(of.JSON, k.raw) {
		k.raw = of.JSON
		if k.schema, err = openapi.Unmarshal(of.JSON); err != nil {
			k.schema = nil
		}
	}
	k.from, k.upTo = of.From, of.UpTo
	t.schemas[e.Kind] = k
	return k.schema, nil
}
