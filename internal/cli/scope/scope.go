// Package scope reads the flags that select namespaces, labels, fields and paths.
package scope

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Flags are kubectl's selection flags, and further ones.
type Flags struct {
	Namespaces, Exclude []string
	All                 bool
	Labels, Fields      string
	// Clusters are names of recorded clusters; empty selects all. Only the flags for recorded objects have it.
	Clusters []string
}

// words are the differences between the flags for watched and for recorded objects.
type words struct{ namespaces, all, exclude, labels, fields string }

// Add declares the flags for watched objects; without describes the namespaces without a flag.
func (f *Flags) Add(fs *pflag.FlagSet, without string) {
	f.add(fs, words{
		namespaces: without, all: "all namespaces, and cluster-scoped kinds", exclude: "; implies -A",
		labels: ", such as app=web,tier!=debug", fields: ", such as status.phase=Running",
	})
}

// AddPast declares the flags for recorded objects.
func (f *Flags) AddPast(fs *pflag.FlagSet) {
	f.AddCluster(fs)
	f.add(fs, words{
		namespaces: "all", all: "all namespaces, as without -n",
		labels: " for the object before or after the change", fields: " on metadata.name or metadata.namespace",
	})
}

// AddCluster declares the flag that selects recorded clusters.
func (f *Flags) AddCluster(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.Clusters, "cluster", nil, "`names` of clusters, if several are recorded")
}

func (f *Flags) add(fs *pflag.FlagSet, w words) {
	fs.StringArrayVarP(&f.Namespaces, "namespace", "n", nil, "`names` or globs, comma-separated; default: "+w.namespaces)
	fs.BoolVarP(&f.All, "all-namespaces", "A", false, w.all)
	fs.StringArrayVar(&f.Exclude, "exclude-namespace", nil, "`names` or globs to leave out"+w.exclude)
	fs.StringVarP(&f.Labels, "selector", "l", "", "label `selector`"+w.labels)
	fs.StringVar(&f.Fields, "field-selector", "", "field `selector`"+w.fields)
}

// Patterns reads the paths of a flag.
func Patterns(flag string, texts []string) ([]diff.Pattern, error) {
	var all []diff.Pattern
	for _, text := range texts {
		p, err := diff.ParsePattern(text)
		if err != nil {
			return nil, usage.Errorf("%s: %v", flag, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// Validate checks the flags without contacting the server. It also refuses names that would change the path of a request,
// or a selector.
func (f *Flags) Validate() error {
	if f.All && len(f.Namespaces) > 0 {
		return usage.Errorf("-A and -n exclude each other")
	}
	n := f.names()
	if err := n.Validate(); err != nil {
		return err
	}
	for _, name := range slices.Concat(n.Include, n.Exclude) {
		if !IsGlob(name) && len(validation.IsDNS1123Label(name)) > 0 {
			return usage.Errorf("%q is not a namespace name: it may have only a-z, 0-9 and -, and at most 63 characters", name)
		}
	}
	if _, err := labels.Parse(f.Labels); err != nil {
		return usage.Errorf("invalid label selector %q: %v", f.Labels, err)
	}
	if _, err := fields.ParseSelector(f.Fields); err != nil {
		return usage.Errorf("invalid field selector %q: %v", f.Fields, err)
	}
	return nil
}

// Within returns the selected namespaces, or otherwise if no flag was set.
func (f *Flags) Within(otherwise capture.Namespaces) capture.Namespaces {
	if len(f.Namespaces) == 0 && !f.All && len(f.Exclude) == 0 {
		return otherwise
	}
	return f.names()
}

// Given reports whether any flag was set.
func (f *Flags) Given() bool {
	return f.All || f.Labels != "" || f.Fields != "" || len(f.Namespaces)+len(f.Exclude) > 0
}

func (f *Flags) names() capture.Namespaces {
	return capture.Namespaces{Include: split(f.Namespaces), Exclude: split(f.Exclude)}
}

// split returns the comma-separated names of a repeatable flag, without duplicates.
func split(values []string) []string {
	var names []string
	for _, v := range values {
		for _, n := range strings.Split(v, ",") {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// IsGlob reports whether a name is a pattern.
func IsGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }
