package web

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// filter is what a URL selects: the parameters of package selection, flat and lanes. It is for one goroutine.
type filter struct {
	values url.Values // as in the URL, without what is empty
	*selection.Selection
	// flat lists each change. Otherwise stories stand for routine changes.
	flat bool
	// clusters are the selected clusters, if they are several: then a line names its own. own is the journal's name.
	clusters []string
	own      string
	// unknown says which kind or cluster the journal does not have.
	unknown string
}

// parameters are those of a filter, in the order of the form.
var parameters = func() (names []string) {
	for _, p := range selection.Parameters {
		names = append(names, p.Name)
	}
	return append(names, "flat", "lanes", "at", within)
}()

// filter reads the parameters of a URL.
func (p *Page) filter(ctx context.Context, in url.Values) (*filter, error) {
	f := &filter{values: url.Values{}}
	for _, name := range parameters {
		for _, v := range in[name] {
			if v = strings.TrimSpace(v); v != "" {
				f.values.Add(name, v)
			}
		}
	}
	o, err := selection.FromValues(f.values)
	if err == nil {
		f.Selection, err = o.Parse(p.o.Now().UTC())
	}
	if err == nil {
		err = f.Resolve(ctx, p.past.builder)
	}
	var wrong *usage.Error
	if errors.As(err, &wrong) {
		return nil, &UserError{wrong.Text}
	}
	if err != nil {
		return nil, err
	}
	known, err := p.past.source.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	if f.own = p.past.source.Cluster(); len(known) > 1 && len(f.Query.Clusters) != 1 {
		f.clusters = known
	}
	if err := journal.CheckClusters(f.Query.Clusters, known); err != nil {
		f.unknown = err.Error()
	}
	if len(f.Types.Unknown) > 0 {
		f.unknown = selection.Explain(ctx, p.past.builder, f.Types.Unknown[0]).Error()
	}
	f.confine()
	f.flat = f.values.Has("flat") || f.Partial() || f.ReadsObjects()
	return f, nil
}

// end returns the end of the selected time, as of now.
func (f *filter) end(now time.Time) time.Time {
	if until := f.Query.Until; !until.IsZero() && until.Before(now) {
		return until
	}
	return now
}

// noise reports whether quiet changes and fields are shown.
func (f *filter) noise() bool { return f.Selection != nil && f.Noise }

// with returns the URL of a path with the filter's parameters, of which pairs of names and values replace some. An empty
// value removes a parameter.
func (f *filter) with(path string, pairs ...string) string {
	v := url.Values{}
	for name, values := range f.values {
		v[name] = values
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			v.Del(pairs[i])
		} else {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	if path == "/" && !slices.Contains(pairs, "before") { // another view, which is narrowed anew
		v.Del(within)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// fixed returns the URL in which times of day and days are moments, which mean the same for every reader; empty if all
// times are moments, or ages, which move with the clock.
func (f *filter) fixed(path string) string {
	var pairs []string
	for name, at := range map[string]time.Time{"since": f.Query.Since, "until": f.Query.Until} {
		text := f.values.Get(name)
		_, relative := when.Age(text)
		if _, err := time.Parse(time.RFC3339Nano, text); text != "" && err != nil && !relative {
			pairs = append(pairs, name, machine(at))
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return f.with(path, pairs...)
}
