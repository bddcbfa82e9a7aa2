package selection

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/internal/usage"
)

// Objects are the conditions on the objects of changes, without their kinds, as a user writes them.
type Objects struct {
	Namespaces, Exclude []string
	// All is kubectl's -A.
	All            bool
	Labels, Fields string
	// Clusters are names of recorded clusters; empty selects all. Only the flags for recorded objects have it.
	Clusters []string
}

// words are the differences between the flags for watched and for recorded objects.
type words struct{ namespaces, all, exclude, labels, fields string }

// Add declares the flags for watched objects; without describes the namespaces without a flag.
func (o *Objects) Add(fs *pflag.FlagSet, without string) {
	o.add(fs, words{
		namespaces: without, all: "all namespaces, and cluster-scoped kinds", exclude: "; implies -A",
		labels: ", such as app=web,tier!=debug", fields: ", such as status.phase=Running",
	})
}

// AddPast declares the flags for changes of recorded objects.
func (o *Objects) AddPast(fs *pflag.FlagSet) {
	o.AddCluster(fs)
	o.add(fs, words{
		namespaces: "all", all: "all namespaces, as without -n",
		labels: " for the object before or after the change", fields: " on metadata.name or metadata.namespace",
	})
}

// AddStates declares the flags for recorded objects as they were.
func (o *Objects) AddStates(fs *pflag.FlagSet) {
	o.AddCluster(fs)
	o.add(fs, words{namespaces: "all", all: "all namespaces, as without -n", labels: ", such as app=web,tier!=debug"})
}

// AddCluster declares the flag that selects recorded clusters.
func (o *Objects) AddCluster(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Clusters, "cluster", nil, "`names` of clusters, if several are recorded")
}

func (o *Objects) add(fs *pflag.FlagSet, w words) {
	fs.StringArrayVarP(&o.Namespaces, "namespace", "n", nil, "`names` or globs, comma-separated; default: "+w.namespaces)
	fs.BoolVarP(&o.All, "all-namespaces", "A", false, w.all)
	fs.StringArrayVar(&o.Exclude, "exclude-namespace", nil, "`names` or globs to leave out"+w.exclude)
	fs.StringVarP(&o.Labels, "selector", "l", "", "label `selector`"+w.labels)
	if w.fields != "" {
		fs.StringVar(&o.Fields, "field-selector", "", "field `selector`"+w.fields)
	}
}

// Validate checks the flags without contacting the server.
func (o *Objects) Validate() error {
	if o.All && len(o.Namespaces) > 0 {
		return usage.Errorf("-A and -n exclude each other")
	}
	if err := o.names().Validate(); err != nil {
		return err
	}
	_, _, err := Selectors(o.Labels, o.Fields)
	return err
}

// Within returns the selected namespaces, or otherwise if no flag was set.
func (o *Objects) Within(otherwise Namespaces) Namespaces {
	if len(o.Namespaces) == 0 && !o.All && len(o.Exclude) == 0 {
		return otherwise
	}
	return o.names()
}

// Given reports whether any flag was set.
func (o *Objects) Given() bool {
	return o.All || o.Labels != "" || o.Fields != "" || len(o.Namespaces)+len(o.Exclude) > 0
}

func (o *Objects) names() Namespaces {
	return Namespaces{Include: split(o.Namespaces), Exclude: split(o.Exclude)}
}

// split returns the comma-separated names of a repeatable flag, without duplicates.
func split(values []string) (names []string) {
	for _, v := range values {
		names = add(names, strings.Split(v, ",")...)
	}
	return slices.Clip(names)
}
