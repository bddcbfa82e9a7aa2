package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/when"
)

// form is the filter as the page shows it.
type form struct {
	// Values are the parameters of the URL.
	Values map[string]string
	// Ops are the checkboxes of operations.
	Ops, Severities, Ranges, Lanes []option
	// Clusters are the recorded clusters, if there are several.
	Clusters []string
	// Types are suggestions of kinds.
	Types []string
	// Chips are the active filters, each with the URL without it.
	Chips []chip
	// FlatURL and FoldURL switch between an entry for each change and folded ones.
	FlatURL, FoldURL string
	Flat             bool
	// More says that a rarely used filter is in use.
	More bool
	// Problem says why nothing can match.
	Problem string
	// Share is the URL that shows the same to every reader and at any time.
	Share string
}

// option is a choice. URL chooses it.
type option struct {
	Name, Label, URL string
	On               bool
}

type chip struct{ Name, Value, Without string }

var shownOps = []event.Op{event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Snapshot}

var (
	ranges = []option{{Name: "15m", Label: "15 min"}, {Name: "1h", Label: "1 h"}, {Name: "6h", Label: "6 h"}, {Name: "24h", Label: "1 d"}, {Name: "168h", Label: "7 d"}, {Name: "", Label: "all"}}
	lanes  = []option{{Name: "", Label: "no lanes"}, {Name: "object", Label: "lanes per object"}, {Name: "manager", Label: "lanes per manager"}}
)

// form describes a filter.
func (p *Page) form(ctx context.Context, f *filter) (form, error) {
	out := form{
		Values: map[string]string{}, Flat: f.values.Has("flat"), FlatURL: f.with("/", "flat", "1"), FoldURL: f.with("/", "flat", ""),
		Problem: f.unknown,
	}
	for _, name := range parameters {
		v := strings.Join(f.values[name], ",")
		out.Values[name] = v
		switch name {
		case "flat", "lanes", within:
			continue
		case "path", "where", "severity", "selector", "field-selector", "exclude-namespace", "humans", "noise":
			out.More = out.More || v != ""
		}
		if v != "" {
			out.Chips = append(out.Chips, chip{cmp.Or(map[string]string{"q": "text"}[name], name), v, f.with("/", name, "")})
		}
	}
	for _, op := range shownOps {
		out.Ops = append(out.Ops, option{Name: string(op), Label: string(op), On: slices.Contains(f.Query.Ops, op)})
	}
	for _, s := range []event.Severity{event.Failure, event.Warning, event.Recovery, event.Normal} {
		out.Severities = append(out.Severities, option{Name: string(s), Label: string(s), On: slices.Contains(strings.Split(out.Values["severity"], ","), string(s))})
	}
	for _, r := range ranges {
		r.URL = f.with("/", "since", r.Name, "until", "", "at", "")
		r.On = sameAge(f.values.Get("since"), r.Name) && !f.values.Has("until")
		out.Ranges = append(out.Ranges, r)
	}
	for _, l := range lanes {
		l.URL = f.with("/", "lanes", l.Name)
		l.On = f.values.Get("lanes") == l.Name
		out.Lanes = append(out.Lanes, l)
	}
	clusters, err := p.past.several(ctx)
	if err != nil {
		return out, err
	}
	out.Clusters = clusters
	kinds, err := p.past.source.Kinds(ctx)
	if err != nil {
		return out, err
	}
	for _, k := range kinds {
		if gr := k.GroupResource(); !slices.Contains(out.Types, gr) {
			out.Types = append(out.Types, gr)
		}
	}
	return out, nil
}

// sameAge reports whether two texts are the same, or the same age, such as 1w and 168h.
func sameAge(a, b string) bool {
	x, okA := when.Age(a)
	y, okB := when.Age(b)
	return a == b || okA && okB && x == y
}

// earliest and latest are the ends of the times that a URL can name: see when.Parse and RFC 3339.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
)

// nameable returns the nearest time that a URL can name.
func nameable(t time.Time) time.Time {
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}

// maxWindow is the longest time range, well below the longest time.Duration.
const maxWindow = 200 * 365 * 24 * time.Hour

// window returns the shown time range.
func (p *Page) window(ctx context.Context, f *filter) (from, to time.Time, err error) {
	from, to = f.Query.Since, f.Query.Until
	if to.IsZero() {
		to = p.o.Now()
		if !p.o.Recording(ctx) { // the journal ends earlier
			if at, err := p.past.source.RecordedUntil(ctx); err == nil && !at.IsZero() && at.Before(to) && at.After(from) {
				to = at.Add(time.Second)
			}
		}
	}
	if from.IsZero() {
		if from, err = p.past.oldest(ctx); from.IsZero() || !from.Before(to) {
			from = to.Add(-time.Hour)
		}
		if err != nil {
			return from, to, err
		}
	}
	if to.Sub(from) > maxWindow {
		return from, to, mistake("since and until: the time between %s and %s is longer than 200 years, which the page cannot show", stamp(from), stamp(to))
	}
	return from, to, nil
}
