package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// route is a path that only shows something, with the parameters that it applies.
type route struct {
	path       string
	parameters []string
	handle     http.HandlerFunc
}

// switches are the parameters that are given or not: their value is 1.
var switches = []string{"flat", "quiet", "all"}

// routes returns the pages and parts of pages. Those of the timeline have the same filter, so that their links keep it.
func (p *Page) routes() []route {
	timeline := func(further ...string) []string { return slices.Concat(parameters, further) }
	all := []route{
		{"/{$}", timeline("before"), p.answer(p.timeline)},
		{"/entries", timeline("before"), p.answer(p.older)},
		{"/histogram", timeline("before"), p.answer(p.counts)}, // the script asks for it with the page's parameters
		{"/unfold", timeline("story", "after"), p.answer(p.unfold)},
		{"/live", timeline("after"), p.live},
		{"/object", []string{"type", "name", "namespace", "cluster", "version", "view", "with", "quiet", "all"}, p.answer(p.object)},
		{"/changes/{id}", []string{"view", "all"}, p.answer(p.change)},
		{"/changes/{id}/event.json", nil, p.answer(p.event)},
	}
	if p.o.Console != nil {
		all = append(all,
			route{"/status", nil, p.answer(p.status)},
			route{"/status/sink", []string{"name", "after", "done"}, p.answer(p.sink)},
			route{orderPath, []string{"do", "sink", "id", "since", "position", "all"}, p.answer(p.confirm)},
		)
	}
	return all
}

// checked refuses an address with parameters that the path does not apply: a page that leaves out a misspelled filter looks
// complete.
func (p *Page) checked(r route) http.HandlerFunc {
	var known []usage.Parameter
	for _, name := range r.parameters {
		known = append(known, usage.Parameter{Name: name, Repeatable: r.path != "/object" && slices.ContainsFunc(selection.Parameters, func(s selection.Parameter) bool {
			return s.Name == name && s.Kind == "array"
		})})
	}
	return func(w http.ResponseWriter, req *http.Request) {
		if err := p.checkParameters(req.URL.Query(), known); err != nil {
			p.refuse(w, req, err)
			return
		}
		r.handle(w, req)
	}
}

func (p *Page) checkParameters(given url.Values, known []usage.Parameter) error {
	err := usage.CheckParameters(given, known, func(name string) (paths []string) {
		for _, other := range p.routes() {
			if slices.Contains(other.parameters, name) {
				paths = append(paths, strings.TrimSuffix(other.path, "{$}"))
			}
		}
		return paths
	})
	var wrong *usage.Error
	if errors.As(err, &wrong) {
		return &UserError{wrong.Text}
	}
	for _, name := range switches {
		if v := given.Get(name); given.Has(name) && v != "1" && v != "true" {
			return mistake("%s: %q is not 1; leave the parameter out to turn it off", name, v)
		}
	}
	return nil
}

// refuse answers with an error instead of the page.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p.answer(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
}
