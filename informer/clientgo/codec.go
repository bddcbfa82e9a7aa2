package clientgo

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// codec encodes and decodes objects of one Go type exactly, with nil slices distinct from empty ones. It refuses to
// encode an object that would come back changed.
type codec struct {
	typ    reflect.Type // a struct
	format wire.Format
	// needsKind means that the bytes do not contain apiVersion and kind.
	needsKind bool
	// growth is the ratio of an object's heap size to its encoded size, measured on pods. It need only be
	// approximate.
	growth float64
	check  check
	append func(dst []byte, obj any) ([]byte, error)
	decode func(raw []byte) (any, error) // the object is the caller's
	// share, if set, decodes an object that shares its equal parts with others, and returns its size without them. Ok
	// is false if decode must be used.
	share func(raw []byte) (obj any, size int64, ok bool)
	// near, if set, is share for an object of which another version was decoded by share: unchanged parts are taken
	// from there.
	near func(raw []byte, base plans.Base) (obj any, size int64, ok bool)

	encoded atomic.Uint64
	broken  atomic.Bool
}

var (
	// errInexact means that encoding would change the object.
	errInexact = errors.New("the object would come back changed")
	errBroken  = errors.New("the type does not survive encoding")
	errNoCodec = errors.New("the type cannot be encoded")
)

// generated is implemented by Kubernetes' generated protobuf types.
type generated interface {
	Reset()
	Size() int
	MarshalToSizedBuffer(b []byte) (int, error)
	Unmarshal(b []byte) error
}

// newCodec returns the codec of a pointer-to-struct type, or nil.
func newCodec(t reflect.Type, parts *plans.Table) *codec {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	if t == reflect.TypeFor[*unstructured.Unstructured]() {
		return &codec{typ: t.Elem(), format: wire.JSON, growth: 6, append: appendUnstructured, decode: decodeUnstructured, share: shareUnstructured(parts)}
	}
	zero := reflect.New(t.Elem()).Interface()
	if _, ok := zero.(metav1.Object); !ok {
		return nil
	}
	if _, ok := zero.(generated); ok && tagged(t.Elem()) {
		return &codec{
			typ: t.Elem(), format: wire.Protobuf, needsKind: true, growth: protobufGrowth,
			check: planOf(t.Elem(), true), append: appendProtobuf, decode: decodeProtobuf(t.Elem()),
			share: shareProtobuf(t.Elem(), parts), near: nearProtobuf(t.Elem(), parts),
		}
	}
	c := jsonCodec(t.Elem(), parts)
	c.check, c.append = planOf(t.Elem(), false), appendJSON
	return c
}

// shared decodes a read-only object and returns its heap size, in bytes.
func (c *codec) shared(raw []byte) (obj any, size int64, err error) {
	if c.share != nil {
		if obj, size, ok := c.share(raw); ok {
			return obj, max(size, 1), nil
		}
	}
	obj, err = c.decode(raw)
	if err == nil && c.format == wire.Protobuf {
		plans.CacheQuantities(obj)
	}
	return obj, c.weigh(len(raw)), err
}

func shareProtobuf(t reflect.Type, parts *plans.Table) func([]byte) (any, int64, bool) {
	plan := plans.For(t)
	if plan == nil || parts == nil {
		return nil
	}
	return func(raw []byte) (any, int64, bool) {
		obj := reflect.New(t).Interface()
		r, ok := plan.Decode(parts, raw, obj)
		return obj, r.Size, ok
	}
}

func nearProtobuf(t reflect.Type, parts *plans.Table) func([]byte, plans.Base) (any, int64, bool) {
	plan := plans.For(t)
	if plan == nil || parts == nil {
		return nil
	}
	return func(raw []byte, base plans.Base) (any, int64, bool) {
		obj := reflect.New(t).Interface()
		r, ok := plan.DecodeFrom(parts, raw, obj, base)
		return obj, r.Size, ok
	}
}

func shareUnstructured(parts *plans.Table) func([]byte) (any, int64, bool) {
	if parts == nil {
		return nil
	}
	return func(raw []byte) (any, int64, bool) {
		m, r, err := plans.JSON(parts, raw)
		if err != nil || r.Size == 0 {
			return nil, 0, false
		}
		return &unstructured.Unstructured{Object: m}, r.Size, true
	}
}

// jsonCodec returns a codec that decodes a Go type from JSON.
func jsonCodec(t reflect.Type, parts *plans.Table) *codec {
	c := &codec{typ: t, format: wire.JSON, growth: 1.7, decode: decodeJSON(t)}
	c.share = shareJSON(c, parts)
	return c
}

// shareJSON decodes an object from JSON, then replaces its parts by equal ones of other objects.
func shareJSON(c *codec, parts *plans.Table) func([]byte) (any, int64, bool) {
	if parts == nil {
		return nil
	}
	return func(raw []byte) (any, int64, bool) {
		obj, err := c.decode(raw)
		if err != nil {
			return nil, 0, false
		}
		size, ok := parts.Share(obj)
		if !ok {
			size = c.weigh(len(raw))
		}
		return obj, size, true
	}
}

// tagged reports whether every field except TypeMeta has a protobuf tag.
func tagged(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != reflect.TypeFor[metav1.TypeMeta]() && f.Tag.Get("protobuf") == "" {
			return false
		}
	}
	return true
}

// Some objects are decoded again to verify that encoding is exact: the first of each type, and then one of every
// verifyEvery. A type's own methods may lose data in ways that no check of its fields detects.
const (
	verifyFirst = 8
	verifyEvery = 4096
)

// encode appends the object's bytes to dst.
func (c *codec) encode(dst []byte, obj any) ([]byte, error) {
	if c.broken.Load() {
		return dst, errBroken
	}
	verdict := same
	if c.check != nil {
		verdict = c.check(reflect.ValueOf(obj).UnsafePointer())
	}
	if verdict == changed {
		return dst, errInexact
	}
	raw, err := c.append(dst, obj)
	if err != nil {
		return dst, fmt.Errorf("encode object: %w", err)
	}
	n := c.encoded.Add(1)
	sampled := n <= verifyFirst || n%verifyEvery == 0
	if verdict == same && !sampled || c.roundTrips(raw[len(dst):], obj) {
		return raw, nil
	}
	if verdict == same {
		c.broken.Store(true)
	}
	return dst, errInexact
}

// roundTrips reports whether the bytes decode to the object. A panic counts as no: Semantic.DeepEqual refuses
// unexported fields.
func (c *codec) roundTrips(raw []byte, obj any) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	back, err := c.decode(raw)
	if err != nil {
		return false
	}
	if c.needsKind {
		setKind(back, kindOf(obj))
		// The check has already distinguished nil from empty. Encoding a quantity may write into it.
		return equality.Semantic.DeepEqual(back, obj)
	}
	return reflect.DeepEqual(back, obj)
}

// weigh estimates a decoded object's heap size, in bytes.
func (c *codec) weigh(raw int) int64 { return weighBytes(c.growth, raw) }

// kindOf returns the kind that an object carries.
func kindOf(obj any) schema.GroupVersionKind {
	if o, ok := obj.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		return o.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

func setKind(obj any, kind schema.GroupVersionKind) {
	if o, ok := obj.(interface{ GetObjectKind() schema.ObjectKind }); ok && !kind.Empty() {
		o.GetObjectKind().SetGroupVersionKind(kind)
	}
}

func appendProtobuf(dst []byte, obj any) ([]byte, error) {
	m, ok := obj.(generated)
	if !ok {
		return dst, fmt.Errorf("%T is not of protobuf", obj)
	}
	dst, tail := extend(dst, m.Size())
	n, err := m.MarshalToSizedBuffer(tail)
	if err == nil && n != len(tail) {
		err = fmt.Errorf("%T says that it has %d bytes and has %d", obj, len(tail), n)
	}
	return dst, err
}

// extend grows b by n bytes, and also returns the new bytes alone.
func extend(b []byte, n int) (all, tail []byte) {
	if have := len(b); cap(b)-have >= n {
		return b[:have+n], b[have : have+n]
	}
	all = append(b, make([]byte, n)...)
	return all, all[len(b):]
}

func decodeProtobuf(t reflect.Type) func([]byte) (any, error) {
	return func(raw []byte) (any, error) {
		obj := reflect.New(t).Interface()
		m, ok := obj.(generated)
		if !ok {
			return nil, fmt.Errorf("%T is not of protobuf", obj)
		}
		return obj, m.Unmarshal(raw)
	}
}

func appendJSON(dst []byte, obj any) ([]byte, error) {
	raw, err := json.Marshal(obj)
	return append(dst, raw...), err
}

func decodeJSON(t reflect.Type) func([]byte) (any, error) {
	return func(raw []byte) (any, error) {
		obj := reflect.New(t).Interface()
		return obj, utiljson.Unmarshal(raw, obj)
	}
}

// scratches are buffers for encoded objects.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

func borrow() *[]byte { return scratches.Get().(*[]byte) }

// giveBack returns a buffer to the pool, unless it has become huge.
func giveBack(b *[]byte) {
	if cap(*b) <= 1<<20 {
		*b = (*b)[:0]
		scratches.Put(b)
	}
}
