package log

import (
	"slices"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// selected says which changes are read, and how they are printed.
type selected struct {
	*selection.Selection
	// several says that changes of more than one cluster are selected, so that lines name theirs.
	several bool
	// related are the objects of --related; nil without it. Names are the printed names of kinds.
	related *history.Related
	names   map[[2]string]string
}

// selection reads the flags.
func (o *Options) selection() (*selected, error) {
	s, err := o.Parse(o.Now())
	switch {
	case err != nil:
		return nil, err
	case o.Follow && !s.Query.Until.IsZero():
		return nil, usage.Errorf("--until and -f exclude each other")
	case o.Limit < 0:
		return nil, usage.Errorf("--limit cannot be negative")
	case !slices.Contains([]string{text, oneline, render.JSON, render.YAML}, o.Output):
		return nil, usage.Errorf("unknown output %q: use text, oneline, json or yaml", o.Output)
	}
	if err := o.together(); err != nil {
		return nil, err
	}
	return &selected{Selection: s}, nil
}

// folds reports whether stories stand for routine changes.
func (o *Options) folds(s *selection.Selection) bool {
	return o.Output == text && !o.Flat && o.Story == "" && !s.Partial()
}

// selects reports whether an entry that the query selects is selected.
func (s *selected) selects(e *journal.Entry) bool { return s.related == nil || s.related.Has(e) }
