package web

import (
	"context"
	"slices"
	"time"
)

// form is the filter as the page shows it.
type form struct {
	// Values are the parameters of the URL.
	Values map[string]string
	// Ops are the checkboxes of operations.
	Ops []option
	// Kinds are suggestions.
	Kinds []string
	// Chips are the active filters, each with the URL without it.
	Chips []chip
	// Ranges are the preset times.
	Ranges []option
	// Flat and Fold are URLs.
	FlatURL, FoldURL string
	Flat             bool
	More             bool // the rarely used filters are in use
}

type option struct {
	Name, Label, URL string
	On               bool
}

type chip struct{ Name, Value, Without string }

var shownOps = []string{"created", "updated", "deleted", "entered", "left", "gap", "absent", "snapshot"}

var ranges = []option{{Name: "15m", Label: "15 min"}, {Name: "1h", Label: "1 h"}, {Name: "6h", Label: "6 h"}, {Name: "24h", Label: "1 d"}, {Name: "168h", Label: "7 d"}, {Name: "", Label: "all"}}

// form describes a filter.
func (p *Page) form(ctx context.Context, f *filter) (form, error) {
	out := form{Values: map[string]string{}, Flat: f.values.Has("flat"), FlatURL: f.with("/", "flat", "1"), FoldURL: f.with("/", "flat", "")}
	for _, name := range parameters {
		for _, v := range f.values[name] {
			if out.Values[name] == "" {
				out.Values[name] = v
			} else {
				out.Values[name] += "," + v
			}
		}
		if v := out.Values[name]; v != "" && name != "flat" {
			out.Chips = append(out.Chips, chip{name, v, f.with("/", name, "")})
		}
	}
	chosen := split(f.values["op"])
	for _, op := range shownOps {
		out.Ops = append(out.Ops, option{Name: op, Label: op, On: slices.Contains(chosen, op)})
	}
	for _, r := range ranges {
		r.URL = f.with("/", "since", r.Name, "until", "")
		r.On = f.values.Get("since") == r.Name && !f.values.Has("until")
		out.Ranges = append(out.Ranges, r)
	}
	kinds, err := p.o.Past.kinds(ctx)
	if err != nil {
		return out, err
	}
	for _, k := range kinds {
		if gr := k.GroupResource(); !slices.Contains(out.Kinds, gr) {
			out.Kinds = append(out.Kinds, gr)
		}
	}
	return out, nil
}

// window returns the shown time range.
func (p *Page) window(ctx context.Context, f *filter) (from, to time.Time, err error) {
	from, to = f.query.Since, f.query.Until
	if to.IsZero() {
		to = p.o.Now()
		if !p.o.Recording(ctx) {
			if at, err := p.o.Past.recordedUntil(ctx); err == nil && !at.IsZero() && at.Before(to) {
				to = at.Add(time.Second)
			}
		}
	}
	if from.IsZero() {
		if from, err = p.o.Past.oldest(ctx); err != nil {
			return from, to, err
		}
		if from.IsZero() || !from.Before(to) {
			from = to.Add(-time.Hour)
		}
	}
	return from, to, nil
}
