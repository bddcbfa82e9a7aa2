package daemon

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// maker makes the items of pumps that need the same parts of changes.
type maker struct {
	cluster string
	tell    *history.Builder
	lean    bool                                                       // the sinks do not need the objects of updates
	filters bool                                                       // a sink has a filter, which reads the fields of updates
	patches bool                                                       // a sink includes patches
	text    func(io.Writer, change.Change) error                       // nil: sinks use their own form
	story   func(so sink.Story, sent bool, c change.Change) sink.Story // nil: sinks use their own words
}

// entry makes the item of an entry. Damaged content is reported in the item; an error is temporary.
func (m *maker) entry(ctx context.Context, e *journal.Entry) (it deliver.Item, err error) {
	it.Seq = e.Seq
	if e.Quiet {
		return it, nil
	}
	before, after, err := e.Contents(ctx)
	var damage *journal.DamagedError
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return it, nil // retention was faster
	case errors.As(err, &damage):
		it.Err = err
	case errors.Is(err, journal.ErrPurged): // the change says so itself
	case err != nil:
		return it, err
	}
	c, decoded, err := m.tell.Make(ctx, e, before, after, m.lean)
	if err != nil && !history.Damaged(err) {
		return it, err
	}
	if it.Err == nil {
		it.Err = err
	}
	m.fill(&it, c, decoded)
	return it, m.base(ctx, &it, before)
}

// captured makes the item of a change that was just recorded. An error is temporary.
func (m *maker) captured(seq int64, v *capture.Version) (deliver.Item, error) {
	it := deliver.Item{Seq: seq}
	if v.Quiet {
		return it, nil
	}
	ctx := context.Background()
	c, decoded, err := m.tell.Captured(ctx, v.Change, v.BeforeJSON, v.AfterJSON, m.lean)
	it.Err = err
	m.fill(&it, c, decoded)
	return it, m.base(ctx, &it, v.BeforeJSON)
}

// base sets what a patch begins with.
func (m *maker) base(ctx context.Context, it *deliver.Item, before []byte) (err error) {
	if m.patches && it.Err == nil && it.Change.Op == event.Updated && !it.Change.Quiet {
		if it.Base, err = m.tell.Base(ctx, it.Seq, &it.Change.Meta, before); it.Base != nil {
			it.Size += decodedGrowth * len(before)
		}
	}
	return err
}

// capturedSize returns about how many bytes the item of captured keeps in memory.
func (m *maker) capturedSize(v *capture.Version) int {
	switch {
	case v.Quiet:
		return 0
	case m.lean && v.Op.Differs():
		return leanSize(v.Fields)
	case v.Op.Differs() && m.patches: // the item has another state before, too
		return decodedGrowth*(2*len(v.BeforeJSON)+len(v.AfterJSON)) + leanSize(v.Fields)
	case v.Op.Differs():
		return decodedGrowth*(len(v.BeforeJSON)+len(v.AfterJSON)) + leanSize(v.Fields)
	}
	return decodedGrowth * max(len(v.BeforeJSON), len(v.AfterJSON))
}

func leanSize(fields []change.FieldChange) int { return 1<<10 + changesSize(fields) }

// fill sets what an item has of its change.
func (m *maker) fill(it *deliver.Item, c change.Change, decoded int) {
	c.Kind.Cluster = c.Kind.ClusterOr(m.cluster) // for texts
	it.Change, it.Size = &c, decodedGrowth*decoded
	it.Event = sync.OnceValue(func() *event.Event {
		e := change.Whole(m.cluster, &c)
		return &e
	})
	ev := it.Event
	it.JSON = sync.OnceValues(func() ([]byte, error) { return ev().MarshalJSON() })
	if m.lean && c.Op.Differs() { // the objects were dropped
		it.Size = leanSize(c.Fields)
		if !m.filters { // the event has all that is needed, in half the memory
			it.Size = 1<<10 + eventSize(c.Fields)
			ev()
			c.Fields = nil
		}
	}
	if m.text != nil && !m.lean && it.Err == nil {
		it.Text = func(w io.Writer) error { return m.text(w, c) }
	}
	if m.story != nil && !m.lean && it.Err == nil {
		it.Story = func(so sink.Story, sent bool) sink.Story { return m.story(so, sent, c) }
	}
}
