// Package historytest helps tests that write a journal without a recorder.
package historytest

import (
	"sync"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/story"
)

// Judge sets what a recorder reads from the objects of rows: their severities, and what stories need of them.
func Judge(rows []journal.Row) {
	for i := range rows {
		r := &rows[i]
		c := change.Change{Meta: r.Meta}
		c.Before, _ = jsonmap.Decode(r.Before) // objects that cannot be read have no severity
		c.After, _ = jsonmap.Decode(r.After)
		r.Severity = c.Severity()
		if !c.Op.HasObject() || c.Before == nil && c.After == nil {
			continue
		}
		builder().Build(&c, c.Before, c.After, nil)
		owner := c.Owner
		if c.Meta = r.Meta; c.Owner == nil {
			c.Owner = owner
		}
		in := story.Read(&c)
		r.Story, r.Routine = &in, in.Routine
	}
}

var builder = sync.OnceValue(func() *change.Builder {
	rules, err := quiet.New()
	if err != nil {
		panic(err) // the rules of this program
	}
	return &change.Builder{Quiet: rules}
})
