package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// endpoint is a path of the API. The handler and its description are made from the same table.
type endpoint struct {
	path, summary string
	parameters    []parameter
	expensive     bool // it may read many changes or objects
	answer        any  // the zero value of what handle returns; nil: the OpenAPI document
	handle        func(a *api, r *http.Request) (any, error)
	// stream, instead of handle, sends lines.
	stream func(a *api, r *http.Request, send func(Line) error) error
}

// parameter is a parameter of a request.
type parameter struct {
	name, doc string
	kind      string // the JSON type
	required  bool
}

var (
	limit = parameter{name: "limit", kind: "integer", doc: "the most values in an answer"}
	atOne = parameter{name: "at", kind: "string", doc: "a time, as since; default: now, which differs from page to page"}
	id    = parameter{name: "id", kind: "string", doc: "the change's id, or its beginning", required: true}
	q     = parameter{name: "query", kind: "string", doc: "a query of the journal, as JSON; an empty range selects nothing"}
	// qObjects has only what selects objects.
	qObjects = parameter{name: "query", kind: "string", doc: "a query of the journal's objects, as JSON: without what selects changes"}
)

// conditions returns the named conditions of a selection, or all of them. An endpoint has those that it applies.
func conditions(names ...string) (all []parameter) {
	for _, p := range selection.Parameters {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			all = append(all, parameter{name: p.Name, doc: p.Doc, kind: p.Kind})
		}
	}
	return all
}

// named returns the conditions that say which objects are meant, and further ones.
func named(further ...string) []parameter {
	return conditions(append([]string{"type", "name", "cluster", "namespace", "exclude-namespace", "field-selector"}, further...)...)
}

// inPath reports whether a parameter is a part of the path.
func (e *endpoint) inPath(p parameter) bool { return strings.Contains(e.path, "{"+p.name+"}") }

// query returns the parameters that follow the path.
func (e *endpoint) query() (all []usage.Parameter) {
	for _, p := range e.parameters {
		if !e.inPath(p) {
			all = append(all, usage.Parameter{Name: p.name, Repeatable: p.kind == "array"})
		}
	}
	return all
}

// check returns an error for parameters that are missing, or that the endpoint does not apply: without a misspelled or a foreign filter, the answer
// would have everything, as it would without one that cannot be decoded.
func (e *endpoint) check(r *http.Request) error {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(http.StatusBadRequest, "the parameters cannot be read: %v; write %%25 for %%", err)
	}
	for _, p := range e.parameters {
		if p.required && !e.inPath(p) && !given.Has(p.name) {
			return problem(http.StatusBadRequest, "%s: required", p.name)
		}
		for _, value := range given[p.name] {
			if err := p.checkValue(value); err != nil {
				return err
			}
		}
	}
	return usage.CheckParameters(given, e.query(), func(name string) (paths []string) {
		for _, other := range endpoints() {
			if !strings.HasPrefix(other.path, "raw/") && slices.ContainsFunc(other.query(), func(p usage.Parameter) bool { return p.Name == name }) {
				paths = append(paths, Root+other.path)
			}
		}
		return paths
	})
}

// checkValue returns an error for a parameter that is given without a value. As a filter that is left out, it would select
// everything, where a variable of a script was empty.
func (p *parameter) checkValue(value string) error {
	blank := " "
	if p.kind == "array" {
		blank = " ,"
	}
	switch {
	case strings.Trim(value, blank) != "":
		return nil
	case p.kind == "boolean":
		return problem(http.StatusBadRequest, "%s: it has no value: say true or false, or leave it out", p.name)
	}
	return problem(http.StatusBadRequest, "%s: it has no value: leave it out, or give it one", p.name)
}

// endpoints returns all paths below Root. It is a function because the document of one of them describes all.
func endpoints() []endpoint {
	return []endpoint{
		{path: "journal", summary: "The journal: its cluster, its newest change, and up to when it was recorded", answer: Info{}, handle: (*api).info},
		{path: "changes", summary: "Changes, as events", expensive: true, answer: Changes{}, handle: (*api).changes, parameters: append(conditions(),
			parameter{name: "before", kind: "integer", doc: "only changes before this sequence number"},
			parameter{name: "after", kind: "integer", doc: "only changes after this sequence number"},
			parameter{name: "order", kind: "string", doc: "newest (default) or oldest first"},
			parameter{name: "objects", kind: "boolean", doc: "with the objects before and after"},
			limit,
		)},
		{path: "changes/{id}", summary: "One complete change, with its objects", parameters: []parameter{id}, answer: Change{}, handle: (*api).change},
		{path: "kinds", summary: "The recorded kinds", answer: Kinds{}, handle: (*api).kinds, parameters: []parameter{
			{name: "namespace", kind: "array", doc: "only kinds that you may see in one of these namespaces, not globs; repeatable"},
		}},
		{path: "names", summary: "Names of objects, for suggestions", answer: Names{}, handle: (*api).names, parameters: []parameter{
			{name: "type", kind: "array", doc: "TYPE; repeatable; default: all"},
			{name: "namespace", kind: "string", doc: "only in this namespace, not a glob"},
			{name: "prefix", kind: "string", doc: "only names that begin with this"},
			limit,
		}},
		{path: "objects", summary: "Objects as they were at a time", expensive: true, answer: Objects{}, handle: (*api).objects, parameters: append(named("selector"),
			atOne, parameter{name: "after", kind: "string", doc: "next of the page before"}, limit,
		)},
		{path: "differences", summary: "Net differences between since and until", expensive: true, answer: Differences{}, handle: (*api).differences,
			parameters: named("selector", "since", "until", "noise")},
		{path: "versions", summary: "The history of an object, the newest version first", expensive: true, answer: Versions{}, handle: (*api).versions, parameters: append(named(),
			atOne, parameter{name: "before", kind: "integer", doc: "next of the page before, which was of the same object; at has no effect then"}, limit,
		)},
		{path: "blame", summary: "An object's YAML, with the change that led to each line", expensive: true, answer: Blame{}, handle: (*api).blame,
			parameters: append(named(), atOne)},
		{path: "status", summary: "The daemon's state, as tattler status -o json", answer: control.Status{}, handle: (*api).status},
		{path: "openapi.json", summary: "This document", handle: (*api).openapi},

		{path: "raw/rows", summary: "Lossless: a page of entries", expensive: true, answer: Rows{}, handle: (*api).rawRows, parameters: []parameter{q}},
		{path: "raw/contents", summary: "Lossless: the objects of some entries", answer: Contents{}, handle: (*api).rawContents, parameters: []parameter{
			{name: "seq", kind: "string", doc: "sequence numbers, separated by commas", required: true},
		}},
		{path: "raw/id/{id}", summary: "Lossless: the entry with an id", answer: Entry{}, handle: (*api).rawID, parameters: []parameter{id}},
		{path: "raw/states", summary: "Lossless: objects as they were at a time, as lines", answer: Line{}, stream: (*api).rawStates, parameters: []parameter{
			qObjects, {name: "at", kind: "string", doc: "the time, in RFC 3339", required: true},
		}},
		{path: "raw/stories", summary: "Stories, as the commands of this version read them, as lines", answer: Line{}, stream: (*api).rawStories, parameters: []parameter{q}},
		{path: "raw/story/{id}", summary: "The story whose id begins with id, as a line", answer: Line{}, stream: (*api).rawStory, parameters: []parameter{{name: "id", kind: "string", doc: "the beginning of an id", required: true}}},
		{path: "raw/between", summary: "Lossless: objects at both ends of a query's times, as lines", answer: Line{}, stream: (*api).rawBetween, parameters: []parameter{qObjects}},
		{path: "raw/history", summary: "Lossless: the changes of an object up to one of them, as lines", answer: Line{}, stream: (*api).rawHistory, parameters: []parameter{
			{name: "seq", kind: "integer", doc: "the newest of them", required: true},
		}},
		{path: "raw/names", summary: "Lossless: names of objects", answer: Names{}, handle: (*api).rawNames, parameters: []parameter{
			{name: "resource", kind: "array", doc: "group-resources, such as deployments.apps"},
			{name: "namespace", kind: "string", doc: "only in this namespace, not a glob"},
			{name: "prefix", kind: "string", doc: "only names that begin with this"},
			limit,
		}},
		{path: "raw/schema", summary: "Lossless: the merge-key schema of a kind", answer: Schema{}, handle: (*api).rawSchema, parameters: []parameter{
			{name: "group", kind: "string"}, {name: "version", kind: "string"}, {name: "resource", kind: "string", required: true},
			{name: "kind", kind: "string"}, {name: "namespaced", kind: "boolean", required: true}, {name: "cluster", kind: "string"},
			{name: "seq", kind: "integer", doc: "the change to compare; without it, the newest"},
		}},
		{path: "raw/short-names", summary: "Lossless: the short names of kinds", answer: ShortNames{}, handle: (*api).rawShortNames},
	}
}
