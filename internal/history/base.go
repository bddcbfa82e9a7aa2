package history

import (
	"bytes"
	"context"
	"errors"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Base returns the object as its last listed change before an update left it, which is what a consumer of changes has: quiet
// changes may have followed, or other redaction rules. It is nil if that is the state before the update, or if the journal no
// longer has it. seq and before are the update's sequence number and the JSON of its state before.
func (t *Builder) Base(ctx context.Context, seq int64, m *change.Meta, before []byte) (map[string]any, error) {
	q := journal.Query{
		Resources: []string{m.Kind.GroupResource()}, Clusters: []string{m.Kind.ClusterOr(t.Cluster())},
		Namespaces: []string{m.Namespace}, Names: []string{m.Name}, UID: m.UID, Snapshots: true, Before: seq, Limit: 1,
	}
	for e, err := range t.source.Rows(ctx, q) {
		if err != nil {
			return nil, err
		}
		_, after, err := e.Contents(ctx)
		switch {
		case errors.Is(err, journal.ErrPurged): // only what was before it is unknown
		case errors.Is(err, journal.ErrNotFound), Damaged(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if after == nil || bytes.Equal(after, before) {
			return nil, nil
		}
		object, err := jsonmap.Decode(after)
		if err != nil {
			return nil, nil // as if the journal did not have it
		}
		var c change.Change
		c.SetObjects(nil, object) // without managed fields
		return c.After, nil
	}
	return nil, nil
}
