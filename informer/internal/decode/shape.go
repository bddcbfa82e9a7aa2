package decode

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shape describes a Go type for Table.Share. Values of unknown types stay as they are, and so does every part that
// contains one.
type shape struct {
	form   form
	elem   *shape // of a pointer, a slice or a map; nil: unknown
	fields []shapeField
	size   int64
	id     uintptr // of the type; never that of a field in protobuf, whose parts are compared by other bytes
	stat   int     // see Table.stats
}

type shapeField struct {
	index int
	shape *shape // nil: unknown
}

// form is how a value is read and written.
type form uint8

const (
	formBool form = iota + 1
	formInt
	formUint
	formFloat
	formText
	formInterface // it may only be nil
	formTime
	formQuantity
	formStruct
	formPointer // this and the following are parts
	formSlice
	formBytes
	formMap // by strings
)

func (f form) part() bool { return f >= formPointer }

var shapes = struct {
	sync.Mutex
	types map[reflect.Type]*shape
}{types: map[reflect.Type]*shape{}}

// shapeOf returns the shape of a type, or nil.
func shapeOf(t reflect.Type) *shape {
	shapes.Lock()
	defer shapes.Unlock()
	return shaped(t)
}

// shaped is shapeOf for a caller that holds the lock.
func shaped(t reflect.Type) *shape {
	if s, ok := shapes.types[t]; ok {
		return s
	}
	s := &shape{size: int64(t.Size()), id: reflect.ValueOf(t).Pointer() + 1, stat: int(stats.Add(1))}
	shapes.types[t] = s // a type may contain itself
	if !s.learn(t) {
		s = nil
		shapes.types[t] = nil
	}
	return s
}

var forms = map[reflect.Kind]form{
	reflect.Bool: formBool, reflect.String: formText, reflect.Float32: formFloat, reflect.Float64: formFloat, reflect.Interface: formInterface,
	reflect.Int: formInt, reflect.Int8: formInt, reflect.Int16: formInt, reflect.Int32: formInt, reflect.Int64: formInt,
	reflect.Uint: formUint, reflect.Uint8: formUint, reflect.Uint16: formUint, reflect.Uint32: formUint, reflect.Uint64: formUint,
}

// learn fills in the shape and reports whether the type can be shared.
func (s *shape) learn(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Time]():
		s.form = formTime
		return true
	case t == quantityType:
		s.form = formQuantity
		return true
	case decodesItself(t):
		return false
	}
	switch t.Kind() {
	case reflect.Struct:
		s.form = formStruct
		for i := range t.NumField() {
			f := shapeField{index: i}
			if sf := t.Field(i); sf.IsExported() || sf.Anonymous && sf.Type.Kind() == reflect.Struct {
				f.shape = shaped(sf.Type)
			}
			s.fields = append(s.fields, f)
		}
	case reflect.Pointer:
		s.form, s.elem = formPointer, shaped(t.Elem())
	case reflect.Slice:
		s.form, s.elem = formSlice, shaped(t.Elem())
		if isBytes(t) {
			s.form = formBytes
		}
	case reflect.Map:
		if s.form, s.elem = formMap, shaped(t.Elem()); !isText(t.Key()) || decodesItself(t.Key()) {
			return false
		}
	default:
		s.form = forms[t.Kind()]
	}
	return s.form != 0
}

// plainTypes decode themselves but are plain values: equal ones can replace each other.
var plainTypes = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true, reflect.TypeFor[metav1.Duration](): true,
	reflect.TypeFor[metav1.FieldsV1](): true, reflect.TypeFor[intstr.IntOrString](): true, reflect.TypeFor[runtime.RawExtension](): true,
	reflect.TypeFor[json.Number](): true, reflect.TypeFor[json.RawMessage](): true, reflect.TypeFor[resource.Quantity](): true,
}

// decodesItself reports whether a type has its own decoder, which may let values refer to anything, including memory
// that it keeps.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return !plainTypes[t] && t.Kind() != reflect.Interface &&
		(p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}
