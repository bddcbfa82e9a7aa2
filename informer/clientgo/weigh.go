package clientgo

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// protobufGrowth is the ratio of an object's heap size to its protobuf size, measured on pods. It need only be
	// approximate.
	protobufGrowth = 2.2
	// maxWeighed limits the number of values visited, since an object may refer to itself.
	maxWeighed = 1 << 16
	// perPair is a map's overhead for each pair, in bytes.
	perPair = 16
)

// weigh estimates an object's heap size, in bytes.
func weigh(obj any) int64 {
	v := reflect.ValueOf(obj)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return 0
	}
	switch o := obj.(type) {
	case generated:
		if n, ok := sizeOf(o); ok {
			return weighBytes(protobufGrowth, n)
		}
	case *unstructured.Unstructured:
		return 512 + weighJSON(o.Object)
	}
	s := scale{left: maxWeighed}
	return s.referenced(v)
}

// sizeOf calls an object's Size method. It recovers a panic: the method may be the program's, and client-go would
// never call it.
func sizeOf(o generated) (n int, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return o.Size(), true
}

// weighBytes estimates the heap size of an object from the size of its encoding.
func weighBytes(growth float64, raw int) int64 { return 512 + int64(growth*float64(raw)) }

// weighJSON is weigh for values decoded from JSON.
func weighJSON(v any) int64 {
	const boxed = 16 // the header of a string or slice, or a number, behind an interface
	switch v := v.(type) {
	case string:
		return boxed + int64(len(v))
	case map[string]any:
		w := int64(48)
		for k, value := range v {
			w += perPair + 32 + int64(len(k)) + weighJSON(value)
		}
		return w
	case []any:
		w := int64(boxed + 16*cap(v))
		for _, value := range v {
			w += weighJSON(value)
		}
		return w
	}
	return boxed
}

// scale weighs values of any type.
type scale struct{ left int }

// referenced returns the size of everything that a value refers to, without the value itself.
func (s *scale) referenced(v reflect.Value) (w int64) {
	if s.left--; s.left < 0 {
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + s.referenced(v.Elem())
	case reflect.Slice:
		w = int64(v.Cap()) * int64(v.Type().Elem().Size())
		if flat(v.Type().Elem()) {
			return w
		}
		fallthrough
	case reflect.Array:
		for i := 0; i < v.Len() && s.left > 0; i++ {
			w += s.referenced(v.Index(i))
		}
	case reflect.Map:
		w = int64(v.Len()) * (perPair + int64(v.Type().Key().Size()+v.Type().Elem().Size()))
		for i := v.MapRange(); i.Next() && s.left > 0; {
			w += s.referenced(i.Key()) + s.referenced(i.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w += s.referenced(v.Field(i))
		}
	}
	return w
}

// flat reports whether values of a type contain no references.
func flat(t reflect.Type) bool { return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 }
