package informer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Transform changes each object before it is compared, stored or handed on. Its functions are called
// by the streams of the source, several at once.
type Transform struct {
	// Name and Version identify the function: a checkpoint that was written under another one is not
	// used, and without a Name there is none.
	Name    string
	Version int
	// Wants, if set, looks at the raw bytes, in the source's format, and returns false where Apply
	// would change nothing, which spares decoding. It may err on the side of true.
	Wants func(raw []byte) bool
	// Apply changes the object in place; the source's format must be JSON. TransformOf makes a
	// Transform of a Go type. An error or a panic drops the object's version: it is counted and
	// reported as a Gap, never handed on untransformed. Reads then serve the object's last version that
	// was transformed; without one, Get returns ErrNotFound.
	Apply func(*unstructured.Unstructured) error
	// Rewrite, if set, stands instead of Wants and Apply for who reads and writes JSON himself: it
	// returns the object's bytes, raw itself where nothing is to be changed. It neither keeps nor
	// writes raw. The source's format must be JSON; errors are as of Apply.
	Rewrite func(raw []byte) ([]byte, error)

	codec *codec // of Apply's argument; nil: a map
	apply func(Object) error
}

// TransformOf is a Transform on a Go type. Beware: fields that the type does not have are lost.
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

// run returns the transformed object's bytes: raw itself where nothing is to be done.
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

// panicked is the error of a user's function that panicked. It tells Go's own messages, but no text of
// the function's: that may hold what a transform was to hide.
func panicked(p any) error {
	if err, ok := p.(runtime.Error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic with a %T", p)
}

// keyedSum is a sum of content that nobody can compute without the key; it is never 0.
func keyedSum(key, content []byte) uint64 {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

func jsonOf(v any) ([]byte, error) { return stdjson.Marshal(v) }
