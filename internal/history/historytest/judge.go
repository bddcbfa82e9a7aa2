// Package historytest helps tests that write a journal without a recorder.
package historytest

import (
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Judge sets the severities of rows by their objects, as a recorder does.
func Judge(rows []journal.Row) {
	for i := range rows {
		r := &rows[i]
		c := change.Change{Meta: r.Meta}
		c.Before, _ = jsonmap.Decode(r.Before) // objects that cannot be read have no severity
		c.After, _ = jsonmap.Decode(r.After)
		c.Judge()
		r.Meta = c.Meta
	}
}
