package change

import (
	"slices"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// Paths narrow changes to the user's paths: an update shows the fields that Only matches and Ignore does not cover.
type Paths struct{ Only, Ignore []diff.Pattern }

// Narrow removes the other fields of a change, which has its objects. It returns false if nothing of the change is left to
// show. Gaps are always shown.
func (p Paths) Narrow(c *Change) (shown bool) {
	switch {
	case len(p.Only)+len(p.Ignore) == 0, c.Blind, !c.Op.HasObject():
		return true
	case !c.Op.Differs():
		return len(p.Only) == 0 || c.Touches(p.Only)
	}
	var left []FieldChange
	ignored := false
	for _, f := range c.Fields {
		switch {
		case covered(p.Ignore, f.Path):
			ignored = ignored || !f.Quiet
		case len(p.Only) == 0 || touches(p.Only, f.Change):
			left = append(left, f)
		}
	}
	c.Fields = left
	quiet := !slices.ContainsFunc(left, func(f FieldChange) bool { return !f.Quiet })
	if c.Op == event.Updated {
		c.attribute()
		c.Time = written(c)
	}
	return (len(p.Only) == 0 || len(left) > 0) && !(ignored && quiet)
}

// Touches reports whether a change affects one of the paths. An object that appears or disappears affects all
// the paths it has.
func (c *Change) Touches(paths []diff.Pattern) bool {
	if c.Blind {
		return true // the fields are no longer known
	}
	if !c.Op.Differs() {
		whole := c.After
		if whole == nil {
			whole = c.Before
		}
		return len(paths) == 0 || touches(paths, diff.Change{Op: diff.Add, To: any(whole)})
	}
	return slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return touches(paths, f.Change) })
}

func covered(ps []diff.Pattern, path diff.Path) bool {
	return slices.ContainsFunc(ps, func(p diff.Pattern) bool { return p.Covers(path) })
}

func touches(ps []diff.Pattern, c diff.Change) bool {
	return slices.ContainsFunc(ps, func(p diff.Pattern) bool { return p.Touches(c) })
}
