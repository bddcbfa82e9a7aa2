package informer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/informer/internal/raw"
)

// Selection selects the objects of a resource that a Source keeps. The zero value selects all of them.
type Selection struct {
	// Namespaces are exact names, with one stream each; order and duplicates do not matter. No name, or only the
	// empty one, selects the whole cluster in one stream.
	Namespaces []string
	// Labels and Fields are selectors in the API server's syntax.
	Labels, Fields string
	// Keep, if set, receives the key of every object before it is stored; objects for which it returns false are
	// dropped. It must return the same result for the same key and must not panic (panics are not caught);
	// streams call it concurrently. Use it for selections that the server does not support, such as
	// namespace globs.
	Keep func(namespace, name string) bool
}

// namespaces returns the namespaces to open a stream for, sorted; the empty name is the whole cluster.
func namespaces(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{""}, nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		switch {
		case name == "" && len(names) > 1:
			return nil, errors.New("namespaces: the empty name (all namespaces) excludes other names")
		case name != "" && len(validation.IsDNS1123Label(name)) > 0:
			return nil, fmt.Errorf("invalid namespace %q: %s", name, validation.IsDNS1123Label(name)[0])
		}
	}
	return names, nil
}

// canonicalLabels returns a label selector's canonical form, independent of the order of its parts.
func canonicalLabels(text string) (string, error) {
	s, err := labels.Parse(text)
	if err != nil {
		return "", fmt.Errorf("label selector: %w", err)
	}
	requirements, _ := s.Requirements()
	parts := make([]string, len(requirements))
	for i, r := range requirements {
		op := r.Operator()
		if op == selection.DoubleEquals {
			op = selection.Equals
		}
		parts[i] = fmt.Sprintf("%s %s %q", r.Key(), op, r.Values().List())
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ","), nil
}

// canonicalFields is canonicalLabels for a field selector.
func canonicalFields(text string) (string, error) {
	s, err := fields.ParseSelector(text)
	if err != nil {
		return "", fmt.Errorf("field selector: %w", err)
	}
	requirements := s.Requirements()
	parts := make([]string, len(requirements))
	for i, r := range requirements {
		parts[i] = fmt.Sprintf("%s %s %q", r.Field, r.Operator, r.Value)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ","), nil
}

// sharedKey holds the options of a view's source: views with equal keys share a source.
type sharedKey struct {
	gvr                        schema.GroupVersionResource
	namespaces, labels, fields string
	format                     Format
	storage                    Storage
	live                       reflect.Type // the type that LiveStorage keeps
	hot                        int64
	metadataOnly, dropManagedFields,
	paged, noCheckpoint bool
}

// sharedKeyOf returns the key of a view's options; ok is false if they contain functions, which cannot be compared.
func sharedKeyOf(t reflect.Type, gvr schema.GroupVersionResource, o *SourceOptions) (key sharedKey, ok bool, err error) {
	names, err := namespaces(o.Selection.Namespaces)
	if err != nil {
		return key, false, err
	}
	key = sharedKey{
		gvr: gvr, namespaces: strings.Join(names, "/"), format: o.Format, storage: max(o.Storage, CompactStorage), hot: o.hot(),
		metadataOnly: o.MetadataOnly, dropManagedFields: o.DropManagedFields, paged: o.Paged, noCheckpoint: o.NoCheckpoint,
	}
	if o.Storage == LiveStorage {
		key.live = t
	}
	if key.labels, err = canonicalLabels(o.Selection.Labels); err != nil {
		return key, false, err
	}
	if key.fields, err = canonicalFields(o.Selection.Fields); err != nil {
		return key, false, err
	}
	return key, o.Selection.Keep == nil && o.Transform == nil && o.OnState == nil, nil
}

// viewSource finds or opens a source for a view of the type; the source closes with its last view.
func (c *Cluster) viewSource(t reflect.Type, codec *codec, gvr schema.GroupVersionResource, o SourceOptions) (*Source, error) {
	key, share, err := sharedKeyOf(t, gvr, &o)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.shared[key]; share && s != nil && s.join(true) == nil {
		return s, nil
	}
	s, err := newSource(c, gvr, o, raw.Options{})
	if err != nil {
		return nil, err
	}
	s.codecFor(t, codec) // before it starts: LiveStorage decodes the first list already
	if err := c.registerLocked(s); err != nil {
		return nil, err
	}
	if share {
		c.shared[key] = s
	}
	return s, s.join(true)
}
