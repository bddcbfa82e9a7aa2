package history

import (
	"context"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Captured completes a change that was just captured and recorded, given the JSON of its objects. It returns what Make
// returns for its entry, without a second diff. The change must have been captured as the journal would build it: from the
// same texts, with its rules and its schema; and it must be judged if it is an update.
func (t *Builder) Captured(ctx context.Context, c change.Change, before, after []byte, lean bool) (change.Change, int, error) {
	c.Meta, c.Names, c.Away = journal.Stored(c.Meta), t.NamesOf(ctx, c.Kind), false
	if lean && c.Op.Differs() {
		return c, 0, nil
	}
	b := build{
		of: object{c.Kind, c.Namespace, c.Name, c.UID}, op: c.Op, before: before, after: after,
		outline: func() change.Change { return c },
		make: func(old, now map[string]any) change.Change {
			if !c.Op.Differs() && now != nil {
				old = nil
			}
			c.SetObjects(old, now)
			return c
		},
	}
	if !c.Op.Differs() {
		return b.decode(false)
	}
	return t.objects(&b, false)
}
