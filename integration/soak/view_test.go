package soak

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// view is one informer under observation.
type view interface {
	label() string
	source() *informer.Source
	has(informer.Key) bool
	state() map[informer.Key]version
	replayed() map[informer.Key]version
	// equal returns an error if the cache, or the replay of its changes, differs from a fresh list.
	equal(ctx context.Context) error
	// verify returns the problems found so far.
	verify(*ledger) error
}

// watched is the view of one Go type.
type watched[T informer.Object] struct {
	name string
	*informer.Informer[T]
	// list requests the informer's objects from the server through client-go.
	list   func(context.Context) ([]T, error)
	kind   schema.GroupVersionKind // of the informer's objects; client-go's lists omit it
	normal func(T)                 // applies the source's transform to a listed object

	trails  []*trail[T]
	mirrors []*replica[T]
	indexes []func(want map[informer.Key]T) error // each returns an error if an index differs
	feeds   []*feedTrail
}

func (v *watched[T]) label() string            { return v.name }
func (v *watched[T]) source() *informer.Source { return v.Source() }

func (v *watched[T]) has(k informer.Key) bool {
	_, err := v.Get(k.Namespace, k.Name)
	return err == nil
}

func (v *watched[T]) state() map[informer.Key]version { return versions(readable(v.All())) }

// readable skips the errors of a loop over objects: a failed decoding is counted (verify), and the object is
// missing in comparisons.
func readable[T informer.Object](objects iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for o, err := range objects {
			if err == nil && !yield(o) {
				return
			}
		}
	}
}

// replayed is the state replayed by the first trail, which is cheaper than state.
func (v *watched[T]) replayed() map[informer.Key]version {
	tr := v.trails[0]
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return maps.Clone(tr.state)
}

func versions[T informer.Object](objects func(func(T) bool)) map[informer.Key]version {
	out := map[informer.Key]version{}
	for o := range objects {
		out[keyOf(o)] = version{o.GetUID(), o.GetResourceVersion()}
	}
	return out
}

func keyOf(o informer.Object) informer.Key {
	return informer.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (v *watched[T]) equal(ctx context.Context) error {
	listed, err := v.list(ctx)
	if err != nil {
		return fmt.Errorf("%s: list: %w", v.name, err)
	}
	want := map[informer.Key]T{}
	for _, o := range listed {
		if !v.kind.Empty() {
			o.GetObjectKind().SetGroupVersionKind(v.kind)
		}
		if v.normal != nil {
			v.normal(o)
		}
		want[keyOf(o)] = o
	}
	wanted := versions(slices.Values(listed))
	// Subscribers are notified in the background.
	if err := clustertest.Poll(ctx, 50*time.Millisecond, func() error { return v.diff(wanted) }); err != nil {
		return wrap(v.name, err)
	}
	errs := []error{v.cache(want, wanted)}
	for _, m := range v.mirrors {
		errs = append(errs, wrap(m.name, m.differs(want)))
	}
	for _, differs := range v.indexes {
		errs = append(errs, differs(want))
	}
	return wrap(v.name, errors.Join(errs...))
}

// diff returns an error if the state replayed from the changes differs from want.
func (v *watched[T]) diff(want map[informer.Key]version) error {
	var errs []error
	for _, tr := range v.trails {
		errs = append(errs, wrap(tr.name, tr.diff(want)))
	}
	for _, m := range v.mirrors {
		errs = append(errs, wrap(m.name, m.diff(want)))
	}
	for _, f := range v.feeds {
		errs = append(errs, wrap(f.name, f.diff(want)))
	}
	return errors.Join(errs...)
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// cache compares every way of reading with the list.
func (v *watched[T]) cache(want map[informer.Key]T, wanted map[informer.Key]version) error {
	got := map[informer.Key]T{}
	for o, err := range v.All() {
		if err != nil {
			return err
		}
		got[keyOf(o)] = o
	}
	if err := differ(versions(maps.Values(got)), wanted); err != nil {
		return err
	}
	keys := map[informer.Key]bool{}
	for k, err := range v.Keys() {
		if err != nil {
			return err
		}
		keys[k] = true
	}
	if len(keys) != len(want) || v.Len() != len(want) {
		return fmt.Errorf("%d keys, and length %d, want %d", len(keys), v.Len(), len(want))
	}
	n := 0
	for k, w := range want {
		if !keys[k] || !reflect.DeepEqual(got[k], w) {
			return fmt.Errorf("%v differs from the list's:\n%+v\nwant\n%+v", k, got[k], w)
		}
		if n++; n%16 != 0 {
			continue
		}
		one, err := v.Get(k.Namespace, k.Name)
		if err != nil {
			return fmt.Errorf("get %v: %w", k, err)
		}
		if !reflect.DeepEqual(one, w) {
			return fmt.Errorf("get %v: differs from the list's:\n%+v\nwant\n%+v", k, one, w)
		}
	}
	return v.selected(wanted, want)
}

// selected compares reads of a part with the list.
func (v *watched[T]) selected(wanted map[informer.Key]version, want map[informer.Key]T) error {
	ns, app := namespaces[0], labels.SelectorFromSet(labels.Set{appLabel: "app-07"})
	all, some := 0, map[informer.Key]version{}
	for k, ver := range wanted {
		if k.Namespace != ns {
			continue
		}
		all++
		if app.Matches(labels.Set(want[k].GetLabels())) {
			some[k] = ver
		}
	}
	if err := differ(versions(readable(v.List(ns, app))), some); err != nil {
		return fmt.Errorf("in %s, with %v: %w", ns, app, err)
	}
	for o, err := range v.List(ns, nil) {
		if err != nil {
			return err
		}
		if all--; o.GetNamespace() != ns {
			return fmt.Errorf("in %s there is %v", ns, keyOf(o))
		}
	}
	for o, err := range v.List("nowhere", nil) {
		if err != nil {
			return err
		}
		return fmt.Errorf("in a namespace that does not exist there is %v", keyOf(o))
	}
	if all != 0 {
		return fmt.Errorf("in %s %d objects are missing", ns, all)
	}
	return nil
}

func (v *watched[T]) verify(l *ledger) error {
	var errs []error
	for _, tr := range v.trails {
		errs = append(errs, tr.verify(l))
	}
	for _, m := range v.mirrors {
		errs = append(errs, m.verify())
	}
	for _, f := range v.feeds {
		errs = append(errs, f.verify(l))
	}
	for _, st := range v.Source().Status() {
		if st.DecodeErrors+st.LossyDecodes+st.Dropped.Unreadable+st.Dropped.Transform > 0 {
			errs = append(errs, fmt.Errorf("objects were lost: %+v", st))
		}
	}
	return wrap(v.name, errors.Join(errs...))
}

// indexed adds an index to the view; equal compares it with a separate computation.
func indexed[T informer.Object, K comparable](v *watched[T], name string, values func(T) []K) *informer.Index[T, K] {
	ix := informer.AddIndex(v.Informer, name, values)
	v.indexes = append(v.indexes, func(want map[informer.Key]T) error {
		expect := map[K]map[informer.Key]version{}
		for k, o := range want {
			for _, value := range values(o) {
				if expect[value] == nil {
					expect[value] = map[informer.Key]version{}
				}
				expect[value][k] = version{o.GetUID(), o.GetResourceVersion()}
			}
		}
		return wrap("index "+name, wrong(ix, expect))
	})
	return ix
}

func wrong[T informer.Object, K comparable](ix *informer.Index[T, K], expect map[K]map[informer.Key]version) error {
	values, err := ix.Values()
	if err != nil {
		return err
	}
	if len(values) != len(expect) {
		return fmt.Errorf("%d values, want %d", len(values), len(expect))
	}
	if n := ix.Failed(); n > 0 {
		return fmt.Errorf("%d failures", n)
	}
	n := 0
	for value, objects := range expect {
		keys, err := ix.Keys(value)
		if err != nil {
			return err
		}
		if len(keys) != len(objects) {
			return fmt.Errorf("%v has %d keys, want %d", value, len(keys), len(objects))
		}
		for _, k := range keys {
			if _, ok := objects[k]; !ok {
				return fmt.Errorf("%v has %v", value, k)
			}
		}
		if n++; n%8 != 0 {
			continue // decoding is expensive
		}
		if err := differ(versions(readable(ix.Get(value))), objects); err != nil {
			return fmt.Errorf("%v: %w", value, err)
		}
	}
	return nil
}
