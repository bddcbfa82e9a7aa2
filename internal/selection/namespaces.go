package selection

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/internal/usage"
)

// Namespaces selects namespaces. The zero value is the whole cluster.
type Namespaces struct {
	// Include and Exclude are names or globs (*, ?, [a-z]). An empty Include selects every namespace and the
	// cluster-scoped kinds.
	Include, Exclude []string
}

// Validate checks the names and globs, and that the exclusions leave something: an empty selection would mean every
// namespace.
func (n Namespaces) Validate() error {
	for _, name := range slices.Concat(n.Include, n.Exclude) {
		if err := CheckNamespace(name); err != nil {
			return err
		}
	}
	if len(n.Include) > 0 && !slices.ContainsFunc(n.Include, func(p string) bool {
		return IsGlob(p) || !MatchesAny(n.Exclude, p)
	}) {
		return usage.Errorf("nothing to watch: of the namespaces %s, all are excluded", strings.Join(n.Include, ", "))
	}
	return nil
}

// CheckNamespace checks a name or a glob. A name that is not a namespace's might change the path of a request, or a selector.
func CheckNamespace(name string) error {
	if name == "" {
		return usage.Errorf("an empty namespace name")
	}
	if _, err := path.Match(name, ""); err != nil {
		return usage.Errorf("invalid namespace pattern %q: %v", name, err)
	}
	if !IsGlob(name) && len(validation.IsDNS1123Label(name)) > 0 {
		return usage.Errorf("%q is not a namespace name: it may have only a-z, 0-9 and -, and at most 63 characters", name)
	}
	return nil
}

// Has reports whether a namespace is selected. The name of no namespace, that of cluster-scoped objects, is empty: it is
// selected where nothing is included, or where Include has it.
func (n Namespaces) Has(name string) bool {
	if name == "" {
		return len(n.Include) == 0 || slices.Contains(n.Include, "")
	}
	return (len(n.Include) == 0 || MatchesAny(n.Include, name)) && !MatchesAny(n.Exclude, name)
}

// One returns the namespace if only one can be selected; otherwise it is empty.
func (n Namespaces) One() string {
	if len(n.Include) != 1 || IsGlob(n.Include[0]) {
		return ""
	}
	return n.Include[0]
}

// String describes the namespaces for display.
func (n Namespaces) String() string {
	s := "all namespaces"
	switch {
	case n.One() != "":
		s = "namespace " + n.One()
	case len(n.Include) > 0:
		s = "namespaces " + strings.Join(n.Include, ", ")
	}
	if len(n.Exclude) > 0 {
		s += " without " + strings.Join(n.Exclude, ", ")
	}
	return s
}

// IsGlob reports whether a name is a pattern.
func IsGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

// MatchesAny reports whether one of some names or globs matches a name.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// Selectors parses selectors of labels and of fields in the server's syntax.
func Selectors(labelSelector, fieldSelector string) (l labels.Selector, f fields.Selector, err error) {
	if l, err = labels.Parse(labelSelector); err != nil {
		return nil, nil, usage.Errorf("invalid label selector %q: %v", labelSelector, err)
	}
	if f, err = fields.ParseSelector(fieldSelector); err != nil {
		return nil, nil, usage.Errorf("invalid field selector %q: %v", fieldSelector, err)
	}
	return l, f, nil
}
