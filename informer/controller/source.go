package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
)

// Source maps the changes of an informer to keys.
type Source struct {
	wait      func(context.Context) error
	subscribe func(*Controller) (feed func(context.Context) error, err error)
	all       func(*Controller) // queues the keys of all objects
}

// For maps changes to the objects themselves. It decodes nothing.
func For[T informer.Object](i *informer.Informer[T], when ...Predicate[T]) Source {
	return source(i, when, func(c *informer.Change[T]) ([]Key, error) { return []Key{c.Key}, nil },
		func() ([]Key, error) { return keysOf(i) })
}

func keysOf[T informer.Object](i *informer.Informer[T]) (keys []Key, err error) {
	for key, err := range i.Keys() {
		if err != nil {
			return keys, fmt.Errorf("read all keys: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// ownerKind is the kind of owners.
type ownerKind struct {
	schema.GroupKind
	namespaced bool
}

// Owned maps changes of children to their owners of a kind, by the controller owner reference; if the owner changed, to both
// owners. The kind is that of the owners' informer. The controller waits until both informers are synced, and asks the API
// server for the kind's name and whether it is namespaced.
func Owned[T, U informer.Object](children *informer.Informer[T], owners *informer.Informer[U], when ...Predicate[T]) Source {
	var of atomic.Pointer[ownerKind] // set before the first change
	s := Map(children, func(obj T) []Key {
		ref, kind := metav1.GetControllerOfNoCopy(obj), of.Load()
		if ref == nil || ref.Kind != kind.Kind {
			return nil
		}
		if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != kind.Group {
			return nil
		}
		if !kind.namespaced {
			return []Key{{Name: ref.Name}}
		}
		return []Key{{Namespace: obj.GetNamespace(), Name: ref.Name}}
	}, when...)
	return s.and(owners.Wait).and(func(ctx context.Context) error {
		kind, namespaced, err := owners.Source().Kind(ctx)
		of.Store(&ownerKind{kind, namespaced})
		return err
	})
}

// Map maps changes to the keys that a function returns for the object; for an update, for the old and the new object. To
// look up keys in an index, see Indexed.
func Map[T informer.Object](i *informer.Informer[T], keys func(obj T) []Key, when ...Predicate[T]) Source {
	return mapped(i, func(obj T) ([]Key, error) { return keys(obj), nil }, when)
}

// Indexed maps changes to the objects that an index holds under the changed object's values; for an update, those of the
// old and the new object. It follows references backwards, such as from a ConfigMap to the objects that use it:
//
//	byConfig := informer.AddIndex(sites, "config", func(s *Site) []string { return []string{s.Namespace + "/" + s.Spec.Config} })
//	controller.Indexed(configMaps, byConfig, func(m *corev1.ConfigMap) []string { return []string{m.Namespace + "/" + m.Name} })
//
// The controller waits until both informers are synced. For objects that get the value later, add For.
func Indexed[T, U informer.Object, K comparable](i *informer.Informer[T], index *informer.Index[U, K], values func(obj T) []K, when ...Predicate[T]) Source {
	s := mapped(i, func(obj T) (keys []Key, failed error) {
		for _, value := range values(obj) {
			some, err := lookup(index, value)
			keys, failed = append(keys, some...), errors.Join(failed, err)
		}
		return keys, failed
	}, when)
	return s.and(index.Informer().Wait)
}

// lookup returns the keys under a value, even while the index is being built.
func lookup[T informer.Object, K comparable](index *informer.Index[T, K], value K) ([]Key, error) {
	keys, err := index.Keys(value)
	if !errors.Is(err, informer.ErrIndexBuilding) {
		return keys, err
	}
	err = nil
	for obj, e := range index.Get(value) {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		keys = append(keys, Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
	}
	return keys, err
}

func mapped[T informer.Object](i *informer.Informer[T], keys func(obj T) ([]Key, error), when []Predicate[T]) Source {
	return source(i, when, func(c *informer.Change[T]) ([]Key, error) {
		var all []Key
		var failed error
		add := func(has bool, object func() (T, error)) {
			if !has {
				return
			}
			obj, err := object()
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			some, err := guard(func() ([]Key, error) { return keys(obj) })
			all, failed = append(all, some...), errors.Join(failed, err)
		}
		add(c.Op != informer.Added, c.Old)
		add(c.Op != informer.Deleted, c.New)
		return all, failed
	}, func() ([]Key, error) {
		var all []Key
		var failed error
		for obj, err := range i.All() {
			var some []Key
			if err == nil {
				some, err = guard(func() ([]Key, error) { return keys(obj) })
			}
			all, failed = append(all, some...), errors.Join(failed, err)
		}
		return all, failed
	})
}

// Each maps every change of i to all objects of all: use it for something on which they all depend, such as a ConfigMap.
// The controller waits until both are synced. For objects that are added to all later, add For(all).
func Each[T, U informer.Object](i *informer.Informer[T], all *informer.Informer[U], when ...Predicate[T]) Source {
	every := func() ([]Key, error) { return keysOf(all) }
	return source(i, when, func(*informer.Change[T]) ([]Key, error) { return every() }, every).and(all.Wait)
}

// and adds something to wait for.
func (s Source) and(wait func(context.Context) error) Source {
	first := s.wait
	s.wait = func(ctx context.Context) error {
		if err := first(ctx); err != nil {
			return err
		}
		return wait(ctx)
	}
	return s
}

// source makes a Source from a function that maps a change to keys, and one that returns the keys of all objects.
//
// Reconcile reads the cache, which is ahead of the changes queued here. In mode Latest, an object that comes and goes
// meanwhile, or a temporary owner, would cause no change: a Reconcile that saw them would not be called again. So the
// source uses mode Every. If the queue exceeds its budget, all objects are reconciled again.
func source[T informer.Object](i *informer.Informer[T], when []Predicate[T], keys func(*informer.Change[T]) ([]Key, error), all func() ([]Key, error)) Source {
	return Source{
		wait: i.Wait,
		subscribe: func(c *Controller) (func(context.Context) error, error) {
			s, err := i.Subscribe("controller "+c.name, informer.SubscribeOptions{Mode: informer.Every, Budget: c.budget})
			if err != nil {
				return nil, fmt.Errorf("subscribe: %w", err)
			}
			return func(ctx context.Context) error {
				defer s.Stop()
				missed := false
				for change, err := range s.All(ctx) {
					switch {
					case err != nil && ctx.Err() != nil:
						return nil
					case err != nil:
						return fmt.Errorf("read changes: %w", err)
					case change.Op != informer.Gapped:
						feed(c, change, when, keys)
					case strings.Contains(change.Gap.Reason, informer.ReasonSlowConsumer):
						missed = true
					}
					if missed && s.Lag().Objects == 0 {
						missed = false
						c.requeueAll()
					}
				}
				return nil
			}, nil
		},
		all: func(c *Controller) {
			keys, err := guard(all)
			if err != nil {
				c.logFailure("cannot determine all keys", Key{}, err)
			}
			c.add(keys, true)
		},
	}
}

// requeueAll queues the keys of all objects.
func (c *Controller) requeueAll() {
	c.o.Log.Warn("changes arrived faster than they were taken: all objects are reconciled again", "controller", c.name)
	for _, s := range c.sources {
		s.all(c)
	}
}

// add queues keys; keys of a first list come after keys of changes.
func (c *Controller) add(keys []Key, initial bool) {
	for _, k := range keys {
		if initial {
			c.lanes.initial(k)
		} else {
			c.lanes.change(k)
		}
		c.queue.Add(k)
	}
}

// feed queues the keys of a change. If an object cannot be decoded, or a function of the program panics, some keys are
// unknown: feed queues the known ones and logs the error.
func feed[T informer.Object](c *Controller, change *informer.Change[T], when []Predicate[T], keys func(*informer.Change[T]) ([]Key, error)) {
	for _, p := range when {
		wanted, err := guard(func() (bool, error) { return p(change) })
		if err != nil { // one reconcile too many is better than a missing one
			c.logFailure("predicate failed: the change is reconciled", change.Key, err)
		} else if !wanted {
			return
		}
	}
	all, err := guard(func() ([]Key, error) { return keys(change) })
	if err != nil {
		c.logFailure("cannot determine all keys of a change", change.Key, err)
	}
	c.add(all, change.Initial)
}

// IgnoreGone returns nil for the error of an object that does not exist, from the API server or from Informer.Get, and any
// other error unchanged. Use it in a Reconcile that has nothing to do once the object is gone.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
