package selection

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/internal/usage"
)

// Parameter is a condition as a user writes it: a parameter of the page and of the API, and a flag of log with the same name,
// or its arguments (type and name).
type Parameter struct {
	Name string
	// Doc describes the parameter of a URL. Kind is its JSON type: array, string or boolean.
	Doc, Kind string

	flag  string               // the flag's help; empty: see Objects, and noise, which each verb declares
	whole bool                 // a comma does not separate values, because a value may have one
	in    func(o *Options) any // a *[]string, *string or *bool
}

// Parameters are all conditions, in the order of the documentation. A list is a repeated parameter, or separated by commas
// where no value has one.
var Parameters = complete([]Parameter{
	{Name: "type", Doc: "TYPE, such as deploy or deployments.apps, or TYPE/NAME; repeatable", in: func(o *Options) any { return &o.Types }},
	{Name: "name", Doc: "name of an object, of any type if there is no type; repeatable", in: func(o *Options) any { return &o.Names }},
	{Name: "cluster", Doc: "name of a cluster, if several are recorded; repeatable", in: func(o *Options) any { return &o.Clusters }},
	{Name: "namespace", Doc: "name or glob; repeatable", in: func(o *Options) any { return &o.Namespaces }},
	{Name: "exclude-namespace", Doc: "name or glob to leave out; repeatable", in: func(o *Options) any { return &o.Exclude }},
	{Name: "selector", Doc: "label selector, such as app=web,tier!=debug", in: func(o *Options) any { return &o.Labels }},
	{Name: "field-selector", Doc: "metadata.name or metadata.namespace", in: func(o *Options) any { return &o.Fields }},
	{Name: "since", Doc: "from this time on: 30m, 3d, 10:42 or RFC 3339", flag: "only changes from this `time` on", in: func(o *Options) any { return &o.Since }},
	{Name: "until", Doc: "before this time", flag: "only changes before this `time`, which may be in the future", in: func(o *Options) any { return &o.Until }},
	{Name: "op", Doc: "created, updated, deleted, entered, left, gap, absent, snapshot or converted; repeatable", in: func(o *Options) any { return &o.Ops },
		flag: "only these `operations`: created, updated, deleted, entered, left, gap, absent, snapshot, converted (with --noise)"},
	{Name: "manager", Doc: "field manager or glob; repeatable", flag: "only what these `managers` wrote; globs such as kubectl*", in: func(o *Options) any { return &o.Managers }},
	{Name: "path", Doc: "only changes below this path; repeatable", flag: "only changes below this `path`; repeatable", whole: true, in: func(o *Options) any { return &o.Paths }},
	{Name: "where", Doc: "only where this expression (CEL) is true", flag: "only changes for which this CEL `expression` is true", in: func(o *Options) any { return &o.Where }},
	{Name: "severity", Doc: "failure, warning, recovery or change; repeatable", in: func(o *Options) any { return &o.Severities },
		flag: "only lines of these `severities`: failure, warning, recovery, change"},
	{Name: "q", Doc: "words that must occur in the kind, name, namespace, manager, or in a changed path or value", in: func(o *Options) any { return &o.Text }},
	{Name: "humans", Doc: "leave out routine changes by controllers", flag: "leave out routine changes by controllers", in: func(o *Options) any { return &o.Humans }},
	{Name: "noise", Doc: "also quiet changes and fields", in: func(o *Options) any { return &o.Noise }},
})

// complete sets the kinds.
func complete(all []Parameter) []Parameter {
	for i := range all {
		switch all[i].in(&Options{}).(type) {
		case *[]string:
			all[i].Kind = "array"
		case *string:
			all[i].Kind = "string"
		default:
			all[i].Kind = "boolean"
		}
	}
	return all
}

// AddFlags declares the flags of the named conditions, or of all that have a flag.
func (o *Options) AddFlags(fs *pflag.FlagSet, names ...string) {
	for _, p := range Parameters {
		if p.flag == "" || len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		switch to := p.in(o).(type) {
		case *[]string:
			if p.whole {
				fs.StringArrayVar(to, p.Name, nil, p.flag)
			} else {
				fs.StringSliceVar(to, p.Name, nil, p.flag)
			}
		case *string:
			fs.StringVar(to, p.Name, "", p.flag)
		case *bool:
			fs.BoolVar(to, p.Name, false, p.flag)
		}
	}
}

// FromValues reads the parameters of a URL, and ignores others. Parse checks what they say.
func FromValues(v url.Values) (Options, error) {
	o := Options{parameters: true}
	for _, p := range Parameters {
		switch to := p.in(&o).(type) {
		case *[]string:
			for _, text := range v[p.Name] {
				parts := []string{text}
				if !p.whole {
					parts = strings.Split(text, ",")
				}
				for _, part := range parts {
					if part = strings.TrimSpace(part); part != "" {
						*to = add(*to, part)
					}
				}
			}
		case *string:
			*to = v.Get(p.Name)
		case *bool:
			on, err := strconv.ParseBool(v.Get(p.Name))
			if err != nil && v.Get(p.Name) != "" {
				return o, usage.Errorf("%s: %q is not true or false", p.Name, v.Get(p.Name))
			}
			*to = on
		}
	}
	if len(o.Types) > 1 && !slices.ContainsFunc(o.Types, func(t string) bool { return strings.Contains(t, "/") }) {
		o.Types = []string{strings.Join(o.Types, ",")}
	}
	return o, nil
}
