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

	"github.com/tattler-dev/tattler/informer/internal/raw"
)

// Selection says which objects of a resource a Source keeps. The zero value is all of them.
type Selection struct {
	// Namespaces are exact names, each with a stream of its own; their order and repeats mean nothing.
	// None, or only the empty name, is the whole cluster in one stream.
	Namespaces []string
	// Labels and Fields are selectors in the API server's syntax.
	Labels, Fields string
	// Keep, if set, sees the key of every object before it is stored and drops those for which it
	// returns false. It must always answer the same for the same key, and not panic, which is not
	// caught; several streams may call it at once. It serves what the server cannot select, such as
	// namespace globs.
	Keep func(namespace, name string) bool
}

// namespaces returns those to open a stream for, in order; one without a name is all of them.
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
			return nil, errors.New("all namespaces (an empty name) are selected beside one")
		case strings.Contains(name, "/"):
			return nil, fmt.Errorf("%q is not a namespace's name", name)
		}
	}
	return names, nil
}

// canonicalLabels writes a label selector in one form, whatever the order of its parts.
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

// sharedKey says what a view asks for: views that ask for the same share a source.
type sharedKey struct {
	gvr                        schema.GroupVersionResource
	namespaces, labels, fields string
	format                     Format
	storage                    Storage
	live                       reflect.Type // what LiveStorage keeps
	hot                        int64
	metadataOnly, dropManagedFields,
	paged, noCheckpoint bool
}

// sharedKeyOf returns the key of a view's options; ok is false where they have functions, which cannot
// be compared.
func sharedKeyOf(t reflect.Type, gvr schema.GroupVersionResource, o *SourceOptions) (key sharedKey, ok bool, err error) {
	names, err := namespaces(o.Selection.Namespaces)
	if err != nil {
		return key, false, err
	}
	key = sharedKey{
		gvr: gvr, namespaces: strings.Join(names, "/"), format: o.Format, storage: o.Storage, hot: o.hot(),
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

// viewSource finds or opens the source that a view of the type has; it closes with its last view.
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
	s.decodes(t, codec) // before it starts: LiveStorage keeps what the first list has
	if err := c.add(s); err != nil {
		return nil, err
	}
	if share {
		c.shared[key] = s
	}
	return s, s.join(true)
}
