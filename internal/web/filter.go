package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// filter is what a URL selects.
type filter struct {
	values url.Values // as in the URL, without what is empty
	query  journal.Query
	flat   bool
}

// parameters are those that select changes, in the order of the form.
var parameters = []string{"kind", "name", "namespace", "op", "manager", "since", "until", "flat"}

// parseFilter reads the parameters of a URL.
func parseFilter(in url.Values, now time.Time) (*filter, error) {
	f := &filter{values: url.Values{}}
	for _, name := range parameters {
		for _, v := range in[name] {
			if v = strings.TrimSpace(v); v != "" {
				f.values.Add(name, v)
			}
		}
	}
	f.query.Namespaces, f.query.Resources, f.query.Names = split(f.values["namespace"]), split(f.values["kind"]), split(f.values["name"])
	f.query.Managers = split(f.values["manager"])
	for _, op := range split(f.values["op"]) {
		f.query.Ops = append(f.query.Ops, event.Op(op))
		f.query.Snapshots = f.query.Snapshots || op == string(event.Snapshot)
	}
	f.flat = f.values.Has("flat") || len(f.query.Ops) > 0 || len(f.query.Managers) > 0
	for _, t := range []struct {
		name string
		to   *time.Time
	}{{"since", &f.query.Since}, {"until", &f.query.Until}} {
		text := f.values.Get(t.name)
		if text == "" {
			continue
		}
		if d, err := time.ParseDuration(text); err == nil {
			*t.to = now.Add(-d)
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, mistake("%s: %q is not a time: say 1h, or 2026-11-24T10:42:00Z", t.name, text)
		}
		*t.to = at
	}
	if !f.query.Until.IsZero() && !f.query.Since.Before(f.query.Until) {
		return nil, mistake("since is not before until")
	}
	return f, nil
}

// split splits values at commas.
func split(values []string) (all []string) {
	for _, v := range values {
		for _, part := range strings.Split(v, ",") {
			if part = strings.TrimSpace(part); part != "" && !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

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
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
