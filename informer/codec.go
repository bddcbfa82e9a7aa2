package informer

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// The bytes are what is stored, and readers decide what is decoded. An index or a transform decodes an object once
// when it arrives. A read decodes it, and keeps it decoded only if it is read again. Decoded objects are bounded by
// bytes (SourceOptions.Hot), in a ring that gives each a second chance.

// Object is the type of an Informer's objects: a pointer to a Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// protobufObject is implemented by the generated types of k8s.io/api.
type protobufObject interface {
	Unmarshal([]byte) error
	Marshal() ([]byte, error)
	Size() int
}

// codec decodes and encodes objects of one Go type. A Source has one codec per type, so that its address identifies
// the type in the set of decoded objects.
type codec struct {
	// protobuf: the type can be read from protobuf. partial: it needs only metadata. generic: it holds arbitrary
	// fields, which needs JSON.
	protobuf, partial, generic bool
	// decode makes an object. With a table, the object shares parts with others and is read-only; with nil it belongs
	// to the caller. The result's Size is an estimate.
	decode func(parts *plans.Table, f wire.Format, raw []byte) (Object, plans.Result, error)
	// decodeFrom decodes protobuf with a table, and reuses parts of another decoded version; if it returns false, use
	// decode. It is nil if the type does not support it.
	decodeFrom func(parts *plans.Table, raw []byte, base plans.Base) (Object, plans.Result, bool)
	// encode reverses decode, in the same format.
	encode func(f wire.Format, obj Object) ([]byte, error)
	// growth is the ratio of an object's heap size to its bytes, for protobuf and for JSON. It was measured on pods
	// and need only be approximate.
	growth [2]float64
}

// read decodes an object. It returns a panic in the type's methods as an error.
func (c *codec) read(parts *plans.Table, f wire.Format, raw []byte) (obj Object, r plans.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			obj, r, err = nil, plans.Result{}, panicked(p)
		}
	}()
	obj, r, err = c.decode(parts, f, raw)
	if parts != nil && f == wire.JSON && err == nil {
		plans.CacheQuantities(obj)
	}
	if r.Size == 0 {
		r.Size = c.estimate(f, len(raw))
	}
	return obj, r, err
}

// versioned reports whether the type belongs to one version of a kind.
func (c *codec) versioned() bool { return !c.generic && !c.partial }

// estimate returns the approximate heap size of a decoded object, in bytes.
func (c *codec) estimate(f wire.Format, raw int) int64 {
	g := c.growth[0]
	if f == wire.JSON {
		g = c.growth[1]
	}
	return 512 + int64(g*float64(raw))
}

// newCodec returns the codec of a type, which is a pointer to a struct. It sets the kind, unless empty, on decoded
// objects: protobuf does not carry it.
func newCodec(t reflect.Type, kind schema.GroupVersionKind) *codec {
	switch reflect.Zero(t).Interface().(type) {
	case *unstructured.Unstructured:
		return &codec{generic: true, decode: decodeUnstructured, encode: encodeUnstructured, growth: [2]float64{0, 6}}
	case *metav1.PartialObjectMetadata:
		return &codec{protobuf: true, partial: true, decode: decodePartial, encode: encodeTyped, growth: [2]float64{3, 2}}
	}
	_, protobuf := reflect.New(t.Elem()).Interface().(protobufObject)
	plan := plans.For(t.Elem())
	c := &codec{
		protobuf: protobuf,
		decode: func(parts *plans.Table, f wire.Format, raw []byte) (Object, plans.Result, error) {
			obj, ok := reflect.New(t.Elem()).Interface().(Object)
			if !ok {
				return nil, plans.Result{}, fmt.Errorf("%v is not a Kubernetes object", t)
			}
			r, err := decodeTyped(parts, plan, f, raw, obj)
			if err != nil {
				return nil, plans.Result{}, err
			}
			if !kind.Empty() {
				obj.GetObjectKind().SetGroupVersionKind(kind)
			}
			return obj, r, nil
		},
		encode: encodeTyped,
		growth: [2]float64{2.2, 1.7},
	}
	if plan != nil {
		c.decodeFrom = func(parts *plans.Table, raw []byte, base plans.Base) (Object, plans.Result, bool) {
			obj, ok := reflect.New(t.Elem()).Interface().(Object)
			if !ok {
				return nil, plans.Result{}, false
			}
			r, ok := plan.DecodeFrom(parts, raw, obj, base)
			if ok && !kind.Empty() {
				obj.GetObjectKind().SetGroupVersionKind(kind)
			}
			return obj, r, ok
		}
	}
	return c
}

// decodeTyped decodes into an empty object, with the plan if there is one and the bytes are as the API server writes them.
func decodeTyped(parts *plans.Table, plan *plans.Plan, f wire.Format, raw []byte, obj Object) (plans.Result, error) {
	if f == wire.JSON {
		return plans.Result{}, json.UnmarshalCaseSensitivePreserveInts(raw, obj)
	}
	if plan != nil {
		if r, ok := plan.Decode(parts, raw, obj); ok {
			return r, nil
		}
		reflect.ValueOf(obj).Elem().SetZero()
	}
	p, ok := obj.(protobufObject)
	if !ok {
		return plans.Result{}, fmt.Errorf("%T cannot be read from protobuf", obj)
	}
	if err := p.Unmarshal(raw); err != nil {
		return plans.Result{}, err
	}
	if parts != nil {
		plans.CacheQuantities(obj)
	}
	return plans.Result{Lossy: p.Size() != len(raw)}, nil
}

func encodeTyped(f wire.Format, obj Object) ([]byte, error) {
	if f == wire.JSON {
		return jsonOf(obj)
	}
	p, ok := obj.(protobufObject)
	if !ok {
		return nil, fmt.Errorf("%T cannot be written as protobuf", obj)
	}
	return p.Marshal()
}

func decodeUnstructured(parts *plans.Table, f wire.Format, raw []byte) (Object, plans.Result, error) {
	if f != wire.JSON {
		return nil, plans.Result{}, errors.New("an unstructured object cannot be read from protobuf")
	}
	m, r, err := plans.JSON(parts, raw)
	if err != nil {
		return nil, plans.Result{}, err
	}
	return &unstructured.Unstructured{Object: m}, r, nil
}

func encodeUnstructured(_ wire.Format, obj Object) ([]byte, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("want an unstructured object, got %T", obj)
	}
	return jsonOf(u.Object)
}

func decodePartial(_ *plans.Table, f wire.Format, raw []byte) (Object, plans.Result, error) {
	p, err := wire.DecodeMetadata(f, raw)
	if err != nil {
		return nil, plans.Result{}, err
	}
	p.SetGroupVersionKind(partialKind)
	return p, plans.Result{}, nil
}

// partialKind is the kind that client-go's metadata client sets.
var partialKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
