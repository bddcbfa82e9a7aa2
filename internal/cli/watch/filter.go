package watch

import (
	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
)

// filter decides which changes are shown, and how.
type filter struct {
	*selection.Selection
	ignore []diff.Pattern
	// each says that each change has its own line. A summary of an object's state would be wrong if some of its changes are
	// left out.
	each bool
	// lines are the severities of printed lines, including summaries; nil: all.
	lines []event.Severity
}

// filter reads the flags.
func (o *Options) filter() (f *filter, err error) {
	f = &filter{}
	if f.Selection, err = o.Live(); err != nil {
		return nil, err
	}
	if f.ignore, err = selection.Patterns("--ignore-path", o.IgnorePaths); err != nil {
		return nil, err
	}
	f.each = o.Flat || f.Partial() || len(f.ignore) > 0
	if f.lines = f.Query.Severities; o.Output != render.JSON && o.Output != render.YAML && !f.each {
		f.Query.Severities = nil // a line combines changes of several
	}
	return f, nil
}

// shows reports whether a change is shown, and listed whether its own severity is selected.
func (f *filter) shows(c *change.Change) (shown, listed bool) {
	if len(f.lines) > 0 {
		c.Judge()
	}
	return f.Query.Has(&c.Meta, "") && f.Matches(c), selection.HasSeverity(f.lines, &c.Meta)
}
