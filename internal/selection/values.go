package selection

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Parameters are the names of the parameters of a selection in a URL, in the order of the documentation. They are log's flags, and
// type and name for its arguments. Lists are repeated parameters, or separated by commas where no value has one.
var Parameters = []string{
	"type", "name", "cluster", "namespace", "exclude-namespace", "selector", "field-selector", "since", "until",
	"op", "manager", "path", "where", "severity", "q", "humans", "noise",
}

// FromValues reads the parameters of a URL, and ignores others. Parse checks what they say.
func FromValues(v url.Values) (Options, error) {
	list := func(name string) (all []string) {
		for _, text := range v[name] {
			for part := range strings.SplitSeq(text, ",") {
				if part = strings.TrimSpace(part); part != "" && !slices.Contains(all, part) {
					all = append(all, part)
				}
			}
		}
		return all
	}
	var err error
	flag := func(name string) bool {
		text := v.Get(name)
		if text == "" {
			return false
		}
		on, e := strconv.ParseBool(text)
		if e != nil && err == nil {
			err = usage.Errorf("%s: %q is not true or false", name, text)
		}
		return on
	}
	o := Options{
		Types: list("type"), Names: list("name"),
		Scope: scope.Flags{
			Clusters: list("cluster"), Namespaces: list("namespace"), Exclude: list("exclude-namespace"),
			Labels: v.Get("selector"), Fields: v.Get("field-selector"),
		},
		Since: v.Get("since"), Until: v.Get("until"), Ops: list("op"), Managers: list("manager"),
		Paths: slices.DeleteFunc(slices.Clone(v["path"]), func(s string) bool { return s == "" }), Where: v.Get("where"),
		Severities: list("severity"), Text: v.Get("q"), Humans: flag("humans"), Noise: flag("noise"), parameters: true,
	}
	if len(o.Types) > 1 && !slices.ContainsFunc(o.Types, func(t string) bool { return strings.Contains(t, "/") }) {
		o.Types = []string{strings.Join(o.Types, ",")}
	}
	return o, err
}
