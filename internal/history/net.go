package history

import (
	"context"
	"slices"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Net returns the change that leads from one state of an object to a later one, whatever happened between the two:
// its time and id are those of the last change before the later state; those of an object that the earlier state did not
// have are of the change with which it appeared. An object that neither had is a Change without an operation.
func (t *Builder) Net(ctx context.Context, before, after *journal.State) (change.Change, error) {
	op := event.Updated
	switch was, is := before.Presence == journal.Present, after.Presence == journal.Present; {
	case !was && !is:
		op = ""
	case !was:
		op = event.Created
	case !is:
		op = event.Deleted
	}
	e := journal.Entry{Meta: journal.Meta{Op: op, Kind: after.Kind, Namespace: after.Namespace, Name: after.Name, UID: after.UID}}
	last, err := t.leading(ctx, op, after.Last)
	if err != nil {
		return t.outline(ctx, &e), err
	}
	if last != nil {
		e.Seq, e.ID, e.ResourceVersion, e.Owner, e.Time, e.At, e.Since, e.Net, e.Manager =
			last.Seq, last.ID, last.ResourceVersion, last.Owner, last.Time, last.At, last.Since, last.Net, last.Manager
	}
	old, now, err := jsonmap.DecodePair(before.JSON, after.JSON)
	if err != nil {
		c := t.outline(ctx, &e)
		return c, &ContentError{c.Subject(), err}
	}
	schema, err := t.schema(ctx, &e)
	if err != nil {
		return t.outline(ctx, &e), err
	}
	c := t.make(ctx, &e, old, now, schema)
	c.Op = op
	if op == event.Created && last != nil {
		c.Manager = last.Manager
	}
	return c, nil
}

// leading returns the change that a net change has its time from: the last one, but for an object that is new the newest one
// with which it appeared.
func (t *Builder) leading(ctx context.Context, op event.Op, last *journal.Entry) (*journal.Entry, error) {
	appears := []event.Op{event.Created, event.Entered, event.Snapshot}
	if op != event.Created || last == nil || slices.Contains(appears, last.Op) {
		return last, nil
	}
	q := journal.Query{
		Clusters: []string{last.Kind.ClusterOr(t.source.Cluster())}, Resources: []string{last.Kind.GroupResource()}, Names: []string{last.Name}, UID: last.UID,
		Ops: appears, Before: last.Seq, Limit: 1,
	}
	if last.Namespace != "" {
		q.Namespaces = []string{last.Namespace}
	}
	for e, err := range t.source.Rows(ctx, q) {
		return &e, err
	}
	return last, nil
}
