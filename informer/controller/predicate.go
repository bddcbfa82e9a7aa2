package controller

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/informer"
)

// Predicate reports whether a change needs a reconcile. An error counts as true, and is logged.
type Predicate[T informer.Object] func(*informer.Change[T]) (bool, error)

// GenerationChanged drops updates that changed neither metadata.generation, which counts changes of the spec, nor the
// deletion timestamp. It keeps all updates of kinds without a generation.
func GenerationChanged[T informer.Object](c *informer.Change[T]) (bool, error) {
	return differs(c, func(old, obj metav1.Object) bool {
		return old.GetGeneration() != obj.GetGeneration() || obj.GetGeneration() == 0 || deletionChanged(old, obj)
	})
}

// deletionChanged reports whether a deletion began that finalizers delay.
func deletionChanged(old, obj metav1.Object) bool {
	return (old.GetDeletionTimestamp() == nil) != (obj.GetDeletionTimestamp() == nil)
}

// LabelsChanged drops updates that changed no label.
func LabelsChanged[T informer.Object](c *informer.Change[T]) (bool, error) {
	return differs(c, func(old, obj metav1.Object) bool { return !maps.Equal(old.GetLabels(), obj.GetLabels()) })
}

// Touches drops updates that changed no field matched by a pattern, such as spec.** or
// metadata.annotations["example.com/x"]; docs/paths.md defines patterns. It panics if one is invalid: see
// diff.ParsePattern.
func Touches[T informer.Object](patterns ...string) Predicate[T] {
	parsed := make([]diff.Pattern, len(patterns))
	for i, text := range patterns {
		p, err := diff.ParsePattern(text)
		if err != nil {
			panic(fmt.Errorf("touches: %w", err))
		}
		parsed[i] = p
	}
	return func(c *informer.Change[T]) (bool, error) {
		if c.Op != informer.Updated {
			return true, nil
		}
		old, obj, err := oldAndNew(c)
		if err != nil {
			return false, err
		}
		from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
		if err != nil {
			return false, fmt.Errorf("compare %s: %w", c.Key, err)
		}
		to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return false, fmt.Errorf("compare %s: %w", c.Key, err)
		}
		for _, d := range diff.Objects(from, to, nil) {
			for _, p := range parsed {
				if p.Touches(d) {
					return true, nil
				}
			}
		}
		return false, nil
	}
}

// Any keeps a change if one of several predicates does.
func Any[T informer.Object](of ...Predicate[T]) Predicate[T] {
	return func(c *informer.Change[T]) (bool, error) {
		for _, p := range of {
			if wanted, err := p(c); wanted || err != nil {
				return wanted, err
			}
		}
		return false, nil
	}
}

// differs filters updates; it keeps all additions and deletions.
func differs[T informer.Object](c *informer.Change[T], changed func(old, obj metav1.Object) bool) (bool, error) {
	if c.Op != informer.Updated {
		return true, nil
	}
	old, obj, err := oldAndNew(c)
	if err != nil {
		return false, err
	}
	return changed(old, obj), nil
}

func oldAndNew[T informer.Object](c *informer.Change[T]) (old, obj T, err error) {
	if old, err = c.Old(); err == nil {
		obj, err = c.New()
	}
	if err != nil {
		return old, obj, fmt.Errorf("read %s: %w", c.Key, err)
	}
	return old, obj, nil
}
