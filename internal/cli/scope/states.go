package scope

import (
	"path"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/usage"
)

// AddStates declares the flags for objects as they were.
func (f *Flags) AddStates(fs *pflag.FlagSet) {
	f.AddCluster(fs)
	fs.StringArrayVarP(&f.Namespaces, "namespace", "n", nil, "`names` or globs, comma-separated; default: all")
	fs.BoolVarP(&f.All, "all-namespaces", "A", false, "all namespaces, as without -n")
	fs.StringArrayVar(&f.Exclude, "exclude-namespace", nil, "`names` or globs to leave out")
	fs.StringVarP(&f.Labels, "selector", "l", "", "label `selector`, such as app=web,tier!=debug")
}

// Has reports whether a namespace is included. Cluster-scoped objects, which have none, are where no namespace is
// named.
func Has(n capture.Namespaces, namespace string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return err == nil && ok
	}
	if namespace == "" {
		return len(n.Include) == 0
	}
	return (len(n.Include) == 0 || slices.ContainsFunc(n.Include, matches)) && !slices.ContainsFunc(n.Exclude, matches)
}

// Labelled returns a function that reports whether an object has the labels of the selector, which is valid.
func (f *Flags) Labelled() (func(object map[string]any) bool, error) {
	selector, err := labels.Parse(f.Labels)
	if err != nil {
		return nil, usage.Errorf("-l: %v", err)
	}
	return func(object map[string]any) bool { return Labelled(selector, object) }, nil
}

// Labelled reports whether an object has the labels. A nil object has not, although a selector such as tier!=debug matches
// an object without labels.
func Labelled(selector labels.Selector, object map[string]any) bool {
	if object == nil {
		return false
	}
	has := labels.Set{}
	m, _ := change.Metadata(object)["labels"].(map[string]any)
	for k, v := range m {
		has[k], _ = v.(string)
	}
	return selector.Matches(has)
}
