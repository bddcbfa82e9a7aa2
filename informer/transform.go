package informer

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Transform changes each object before it is compared, stored or delivered. The streams of the source call its
// functions concurrently.
type Transform struct {
	// Name and Version identify the function. A checkpoint is used only with the same Name and Version; without a
	// Name, nothing is checkpointed.
	Name    string
	Version int
	// Wants, if set, inspects the raw bytes, in the source's format, and returns false if Apply would change nothing,
	// which saves a decode. It may return true too often.
	Wants func(raw []byte) bool
	// Apply changes the object in place; the source's format must be JSON. TransformOf makes a Transform of a Go type.
	// An error or a panic drops the version: it is counted and reported as a Gap, never delivered untransformed.
	// Reads keep serving the last transformed version; without one, Get returns ErrNotFound.
	Apply func(*unstructured.Unstructured) error
	// Rewrite, if set, replaces Wants and Apply for callers that edit JSON directly: it returns the object's new
	// bytes, or raw itself for no change. It must neither keep nor modify raw. The source's format must be JSON;
	// errors are handled as for Apply.
	Rewrite func(raw []byte) ([]byte, error)

	codec *codec // for apply's argument; nil: unstructured
	apply func(Object) error
}

// TransformOf makes a Transform of a function on a Go type. Fields that the type does not have are lost.
func TransformOf[T Object](name string, version int, apply func(T) error) *Transform {
	return &Transform{
		Name: name, Version: version,
		codec: newCodec(reflect.TypeFor[T](), schema.GroupVersionKind{}),
		apply: func(obj Object) error {
			o, ok := obj.(T)
			if !ok {
				return fmt.Errorf("got a %T", obj)
			}
			return apply(o)
		},
	}
}

// run returns the transformed object's bytes, or raw itself if there is nothing to do.
func (t *Transform) run(f wire.Format, raw []byte) (out []byte, err error) {
	if t == nil || t.Apply == nil && t.apply == nil && t.Rewrite == nil {
		return raw, nil
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("transform %s: %w", t.Name, panicked(p))
		}
	}()
	switch {
	case t.Rewrite != nil:
		out, err = t.Rewrite(raw)
	case t.Wants != nil && !t.Wants(raw):
		return raw, nil
	default:
		out, err = t.rewrite(f, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("transform %s: %w", t.Name, err)
	}
	return out, nil
}

func (t *Transform) rewrite(f wire.Format, raw []byte) ([]byte, error) {
	decode, encode, apply := decodeUnstructured, encodeUnstructured, t.applyMap
	if t.codec != nil {
		decode, encode, apply = t.codec.decode, t.codec.encode, t.apply
	}
	obj, _, err := decode(nil, f, raw)
	if err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	if err := apply(obj); err != nil {
		return nil, err
	}
	out, err := encode(f, obj)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return out, nil
}

func (t *Transform) applyMap(obj Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("got a %T", obj)
	}
	return t.Apply(u)
}

// panicked returns the error for a panic in a user's function. It includes Go's runtime errors, but no text from the
// function: that may hold values that a transform was meant to hide.
func panicked(p any) error {
	if err, ok := p.(runtime.Error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic with a %T", p)
}

func jsonOf(v any) ([]byte, error) { return stdjson.Marshal(v) }
