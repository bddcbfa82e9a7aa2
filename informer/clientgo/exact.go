package clientgo

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A packed object must decode exactly, with nil distinct from empty; otherwise it is kept decoded. A plan per Go type
// inspects each object for values that its encoding would lose.

// verdict is the effect of encoding and decoding on a value.
type verdict uint8

const (
	same    verdict = iota
	unsure          // known only after decoding
	changed         // it comes back changed, if only as nil instead of empty
)

// check inspects the value at p, of the type for which it was made. A nil check means that every value of the type
// round-trips.
type check func(p unsafe.Pointer) verdict

// planner makes checks for one encoding: the generated protobuf, or JSON.
type planner struct {
	proto bool
	plans map[reflect.Type]*check // includes unfinished ones: types may be recursive
}

// planOf returns the check of a struct that is an API object. It ignores TypeMeta. A type with its own JSON methods
// is always unsure: only decoding shows what they do.
func planOf(t reflect.Type, proto bool) check {
	if !proto && encodesItself(t) {
		return func(unsafe.Pointer) verdict { return unsure }
	}
	b := &planner{proto: proto, plans: map[reflect.Type]*check{}}
	return b.fields(t, true)
}

func (b *planner) of(t reflect.Type) check {
	if c, ok := b.special(t); ok {
		return c
	}
	switch t.Kind() {
	case reflect.Slice: // as an element, which JSON never omits
		return b.slice(t, !b.proto)
	case reflect.Map:
		return b.dictionary(t, !b.proto)
	case reflect.Pointer:
		return b.pointer(t)
	case reflect.Struct:
		return b.structure(t)
	case reflect.Array, reflect.Interface:
		return unlessZero(t, unsure)
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return unlessZero(t, changed)
	case reflect.String:
		if !b.proto { // invalid UTF-8 is written as U+FFFD
			return func(p unsafe.Pointer) verdict { return sameIf(utf8.ValidString(*(*string)(p))) }
		}
	}
	return nil
}

// unlessZero returns a check that yields v for every value but the zero value.
func unlessZero(t reflect.Type, v verdict) check {
	return func(p unsafe.Pointer) verdict {
		if reflect.NewAt(t, p).Elem().IsZero() {
			return same
		}
		return v
	}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	// A type with its own decoder may not understand the default encoding.
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	zeroer          = reflect.TypeFor[interface{ IsZero() bool }]()
)

// encodesItself reports whether a type has its own encoder or decoder.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler) || p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// special returns the check of a type that encodes itself.
func (b *planner) special(t reflect.Type) (check, bool) {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return checkTime, true
	case reflect.TypeFor[metav1.MicroTime]():
		return checkMicroTime, true
	case reflect.TypeFor[resource.Quantity]():
		return checkQuantity, true
	case reflect.TypeFor[metav1.Duration]():
		return nil, true
	}
	if b.proto {
		return nil, t == reflect.TypeFor[metav1.FieldsV1]() // it holds bytes or a string, depending on how it was built
	}
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		return checkIntOrString, true
	case reflect.TypeFor[json.Number](): // an empty one is written as 0, unless omitted
		return func(p unsafe.Pointer) verdict {
			if *(*json.Number)(p) == "" {
				return unsure
			}
			return same
		}, true
	case reflect.TypeFor[metav1.FieldsV1]():
		return checkFields, true
	case reflect.TypeFor[runtime.RawExtension]():
		return checkExtension, true
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && encodesItself(t) { // whatever the value: a zero value may be written, too
		return func(unsafe.Pointer) verdict { return unsure }, true
	}
	return nil, false
}

// slice returns a check for slices whose empty values would decode as nil. If kept, they do not.
func (b *planner) slice(t reflect.Type, kept bool) check {
	bytes := t.Elem().Kind() == reflect.Uint8
	if bytes && (b.proto || kept) {
		return nil
	}
	elem, size := b.of(t.Elem()), t.Elem().Size()
	if elem == nil && kept {
		return nil
	}
	return func(p unsafe.Pointer) verdict {
		s := (*struct {
			data unsafe.Pointer
			n, _ int
		})(p)
		if s.n == 0 && s.data != nil && !kept {
			return changed
		}
		worst := same
		for i := 0; elem != nil && i < s.n; i++ {
			if v := elem(unsafe.Add(s.data, uintptr(i)*size)); v > worst {
				worst = v
			}
		}
		return worst
	}
}

// dictionary is slice for maps.
func (b *planner) dictionary(t reflect.Type, kept bool) check {
	value := b.of(t.Elem())
	switch {
	case !b.proto && encodesItself(t.Key()):
		return unlessZero(t, unsure)
	case !b.proto && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		return func(p unsafe.Pointer) verdict { return checkTexts(*(*map[string]string)(p), kept) }
	case t.Elem() == reflect.TypeFor[resource.Quantity]() && t.Key().Kind() == reflect.String:
		return func(p unsafe.Pointer) verdict { return checkQuantities(*(*map[string]resource.Quantity)(p), kept) }
	case t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.Uint8 && b.proto:
		value = func(p unsafe.Pointer) verdict { // nil decodes as empty
			if *(*unsafe.Pointer)(p) == nil {
				return changed
			}
			return same
		}
	}
	texts := !b.proto && t.Key().Kind() == reflect.String
	return func(p unsafe.Pointer) verdict {
		if *(*unsafe.Pointer)(p) == nil {
			return same
		}
		m := reflect.NewAt(t, p).Elem()
		if m.Len() == 0 && !kept {
			return changed
		}
		if value == nil && !texts {
			return same
		}
		worst, v := same, reflect.New(t.Elem())
		for i := m.MapRange(); i.Next(); {
			if texts && !utf8.ValidString(i.Key().String()) {
				return changed
			}
			if value != nil {
				v.Elem().SetIterValue(i)
				worst = max(worst, value(v.UnsafePointer()))
			}
		}
		return worst
	}
}

func (b *planner) pointer(t reflect.Type) check {
	switch t.Elem().Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return unlessZero(t, unsure)
	}
	elem := b.of(t.Elem())
	if elem == nil {
		return nil
	}
	null := !b.proto && (t.Elem() == reflect.TypeFor[metav1.Time]() || t.Elem() == reflect.TypeFor[metav1.MicroTime]())
	nothing := !b.proto && (t.Elem() == reflect.TypeFor[metav1.FieldsV1]() || t.Elem() == reflect.TypeFor[runtime.RawExtension]())
	return func(p unsafe.Pointer) verdict {
		q := *(*unsafe.Pointer)(p)
		switch {
		case q == nil:
			return same
		case null && (*time.Time)(q).IsZero(): // both types embed only a time.Time
			return changed
		case nothing && reflect.NewAt(t.Elem(), q).Elem().IsZero(): // it is written as null
			return changed
		}
		return elem(q)
	}
}

// structure returns a struct's check. For a recursive type it looks the check up when called.
func (b *planner) structure(t reflect.Type) check {
	if c, ok := b.plans[t]; ok {
		return func(p unsafe.Pointer) verdict {
			if *c == nil {
				return same
			}
			return (*c)(p)
		}
	}
	c := new(check)
	b.plans[t] = c
	*c = b.fields(t, false)
	return *c
}

// fields returns the check of a struct's fields, without the TypeMeta of an API object.
func (b *planner) fields(t reflect.Type, object bool) check {
	type field struct {
		offset uintptr
		check  check
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if object && f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		if c := b.field(f); c != nil {
			fields = append(fields, field{f.Offset, c})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(p unsafe.Pointer) verdict {
		worst := same
		for i := range fields {
			if v := fields[i].check(unsafe.Add(p, fields[i].offset)); v > worst {
				if worst = v; v == changed {
					break
				}
			}
		}
		return worst
	}
}

func (b *planner) field(f reflect.StructField) check {
	if b.proto {
		if tag := f.Tag.Get("protobuf"); tag == "" || tag == "-" || !f.IsExported() {
			return unlessZero(f.Type, changed)
		}
		return b.of(f.Type)
	}
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return unlessZero(f.Type, changed)
	}
	_, options, _ := strings.Cut(tag, ",")
	switch {
	case f.Anonymous && f.Type.Kind() == reflect.Pointer: // the first decoded field allocates it
		return unlessZero(f.Type, unsure)
	case strings.Contains(options, "omitzero") && (f.Type.Implements(zeroer) || reflect.PointerTo(f.Type).Implements(zeroer)):
		return unlessZero(f.Type, unsure)
	}
	kept := !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
	c, ok := b.special(f.Type)
	switch {
	case ok && c != nil && !kept && leftOut(f.Type, options):
		return func(p unsafe.Pointer) verdict {
			if reflect.NewAt(f.Type, p).Elem().IsZero() {
				return same
			}
			return c(p)
		}
	case ok:
		return c
	case f.Type.Kind() == reflect.Slice:
		return b.slice(f.Type, kept)
	case f.Type.Kind() == reflect.Map:
		return b.dictionary(f.Type, kept)
	}
	return b.of(f.Type)
}

// leftOut reports whether a zero value with these options is not written.
func leftOut(t reflect.Type, options string) bool {
	return strings.Contains(options, "omitzero") || t.Kind() != reflect.Struct && t.Kind() != reflect.Array
}

// checkTime reports whether a time is as decoders produce it: whole seconds, local, without a monotonic clock
// reading.
func checkTime(p unsafe.Pointer) verdict {
	t := (*metav1.Time)(p).Time
	return sameIf(t == time.Time{} || !t.IsZero() && t == time.Unix(t.Unix(), 0).Local())
}

func checkMicroTime(p unsafe.Pointer) verdict {
	t := (*metav1.MicroTime)(p).Time
	return sameIf(t == time.Time{} ||
		!t.IsZero() && t == time.Unix(t.Unix(), int64(t.Nanosecond()/1000*1000)).Local())
}

func checkQuantity(p unsafe.Pointer) verdict {
	q := *(*resource.Quantity)(p) // a copy, since String writes into its receiver
	back, err := resource.ParseQuantity(q.String())
	if err == nil && back != *(*resource.Quantity)(p) {
		_ = back.String() // fills in the text, as in a shared quantity
	}
	return sameIf(err == nil && back == *(*resource.Quantity)(p))
}

func checkQuantities(m map[string]resource.Quantity, kept bool) verdict {
	if len(m) == 0 {
		return sameIf(m == nil || kept)
	}
	for _, q := range m {
		if v := checkQuantity(unsafe.Pointer(&q)); v != same {
			return v
		}
	}
	return same
}

func checkTexts(m map[string]string, kept bool) verdict {
	if len(m) == 0 {
		return sameIf(m == nil || kept)
	}
	for k, v := range m {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return changed
		}
	}
	return same
}

func checkIntOrString(p unsafe.Pointer) verdict {
	v := (*intstr.IntOrString)(p)
	return sameIf(v.Type == intstr.Int && v.StrVal == "" || v.Type == intstr.String && v.IntVal == 0)
}

func checkFields(p unsafe.Pointer) verdict {
	f := (*metav1.FieldsV1)(p)
	if reflect.ValueOf(f).Elem().IsZero() {
		return same
	}
	return plainJSON(f.GetRawBytes())
}

func checkExtension(p unsafe.Pointer) verdict {
	x := (*runtime.RawExtension)(p)
	switch {
	case x.Object != nil:
		return changed
	case x.Raw == nil:
		return same
	}
	return plainJSON(x.Raw)
}

// plainJSON reports whether encoding/json would keep the text of an object or array unchanged.
func plainJSON(raw []byte) verdict {
	if len(raw) < 2 || raw[0] != '{' && raw[0] != '[' || bytes.ContainsAny(raw, " \t\r\n<>&\u2028\u2029") {
		return unsure
	}
	return same
}

func sameIf(yes bool) verdict {
	if yes {
		return same
	}
	return changed
}
