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

// Object is what an Informer hands out: a pointer to a Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// protobufObject is what the generated types of k8s.io/api offer.
type protobufObject interface {
	Unmarshal([]byte) error
	Marshal() ([]byte, error)
	Size() int
}

// codec makes objects of one Go type from bytes, and bytes from objects. A Source has one for each
// type, so that its address names the type where decoded objects are kept.
type codec struct {
	// protobuf tells whether the type can be read from protobuf; partial, that it needs only an
	// object's metadata; generic, that it holds fields that no Go type knows, which needs JSON.
	protobuf, partial, generic bool
	// decode makes an object. With a table it shares parts with others and is not to be changed; with nil it is the
	// caller's. The result's Size is an estimate.
	decode func(parts *plans.Table, f wire.Format, raw []byte) (Object, plans.Result, error)
	// near is decode from protobuf, with a table, for an object of which another version is decoded; false: decode it.
	// Nil: there is no such way.
	near func(parts *plans.Table, raw []byte, base plans.Base) (Object, plans.Result, bool)
	// encode is the reverse, in the same format.
	encode func(f wire.Format, obj Object) ([]byte, error)
	// growth is how much larger than its bytes an object is on the heap: from protobuf, from JSON.
	// Measured on pods; it only has to be near.
	growth [2]float64
}

// read decodes an object. A panic in the type's own methods is an error.
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
		r.Size = c.weigh(f, len(raw))
	}
	return obj, r, err
}

// versioned tells whether the type is that of one version of a kind.
func (c *codec) versioned() bool { return !c.generic && !c.partial }

// weigh estimates what a decoded object costs on the heap, in bytes.
func (c *codec) weigh(f wire.Format, raw int) int64 {
	g := c.growth[0]
	if f == wire.JSON {
		g = c.growth[1]
	}
	return 512 + int64(g*float64(raw))
}

// newCodec returns the codec of a type that is a pointer to a struct. Its objects are given the kind,
// if it is one: protobuf does not carry it.
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
				return nil, plans.Result{}, fmt.Errorf("%v is no Kubernetes object", t)
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
		c.near = func(parts *plans.Table, raw []byte, base plans.Base) (Object, plans.Result, bool) {
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

// decodeTyped decodes into an empty object: by the plan, if there is one and the bytes are as the API server writes them.
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

// partialKind is what client-go's metadata client gives its objects.
var partialKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
