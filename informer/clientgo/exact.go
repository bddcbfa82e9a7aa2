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

// What is packed must come back exactly, with nil distinct from empty, or is kept as it is. A plan per Go type
// inspects each object for what its encoding would lose.

// verdict says what becomes of a value that is encoded and decoded again.
type verdict uint8

const (
	same    verdict = iota
	unsure          // only decoding it tells
	changed         // it comes back otherwise, if only as nil where it was empty
)

// check judges the value at p, of the type that it was made for. None is needed where every value of a
// type comes back.
type check func(p unsafe.Pointer) verdict

// planner makes checks for one encoding: the generated protobuf, or JSON.
type planner struct {
	proto bool
	plans map[reflect.Type]*check // those that are being made, too: types refer to themselves
}

// planOf returns the check of a struct that is an API object. Its TypeMeta is not looked at. Of one that writes or
// reads its JSON in a way of its own, as a whole, nothing is known that decoding it does not tell.
func planOf(t reflect.Type, proto bool) check {
	if !proto && codes(t) {
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
	case reflect.Slice: // as an element, which JSON never leaves out
		return b.slice(t, !b.proto)
	case reflect.Map:
		return b.dictionary(t, !b.proto)
	case reflect.Pointer:
		return b.pointer(t)
	case reflect.Struct:
		return b.structure(t)
	case reflect.Array, reflect.Interface:
		return where(t, unsure)
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return where(t, changed)
	case reflect.String:
		if !b.proto { // what is no UTF-8 is written as U+FFFD
			return func(p unsafe.Pointer) verdict { return comesBack(utf8.ValidString(*(*string)(p))) }
		}
	}
	return nil
}

// where is v for every value but the zero value.
func where(t reflect.Type, v verdict) check {
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
	// Who only reads in a way of its own need not understand what is written.
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	zeroer          = reflect.TypeFor[interface{ IsZero() bool }]()
)

// codes tells that a type encodes or decodes itself.
func codes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler) || p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// special knows the types that encode themselves.
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
		return nil, t == reflect.TypeFor[metav1.FieldsV1]() // which holds bytes or a string, as it was built
	}
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		return checkIntOrString, true
	case reflect.TypeFor[json.Number](): // one that is empty is written as 0, unless it is left out
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
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && codes(t) { // whatever the value: zero may be written as something
		return func(unsafe.Pointer) verdict { return unsure }, true
	}
	return nil, false
}

// slice checks that nothing that is empty would come back as nil, unless kept says that it does not.
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

// dictionary does for maps what slice does for slices.
func (b *planner) dictionary(t reflect.Type, kept bool) check {
	value := b.of(t.Elem())
	switch {
	case !b.proto && codes(t.Key()):
		return where(t, unsure)
	case !b.proto && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		return func(p unsafe.Pointer) verdict { return checkTexts(*(*map[string]string)(p), kept) }
	case t.Elem() == reflect.TypeFor[resource.Quantity]() && t.Key().Kind() == reflect.String:
		return func(p unsafe.Pointer) verdict { return checkQuantities(*(*map[string]resource.Quantity)(p), kept) }
	case t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.Uint8 && b.proto:
		value = func(p unsafe.Pointer) verdict { // nil comes back as empty
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
		return where(t, unsure)
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
		case null && (*time.Time)(q).IsZero(): // both types are a struct of a time.Time alone
			return changed
		case nothing && reflect.NewAt(t.Elem(), q).Elem().IsZero(): // it is written as null
			return changed
		}
		return elem(q)
	}
}

// structure returns a check that looks its fields' up when it is called first, since they may hold the
// type itself.
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

// fields is the check of a struct's fields; of the object itself, all but its TypeMeta.
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
			return where(f.Type, changed)
		}
		return b.of(f.Type)
	}
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return where(f.Type, changed)
	}
	_, options, _ := strings.Cut(tag, ",")
	switch {
	case f.Anonymous && f.Type.Kind() == reflect.Pointer: // it is made by the first field that is written
		return where(f.Type, unsure)
	case strings.Contains(options, "omitzero") && (f.Type.Implements(zeroer) || reflect.PointerTo(f.Type).Implements(zeroer)):
		return where(f.Type, unsure)
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

// checkTime tells whether a time is as the decoders make it: in seconds, local, without a reading of
// the monotonic clock.
func checkTime(p unsafe.Pointer) verdict {
	t := (*metav1.Time)(p).Time
	return comesBack(t == time.Time{} || !t.IsZero() && t == time.Unix(t.Unix(), 0).Local())
}

func checkMicroTime(p unsafe.Pointer) verdict {
	t := (*metav1.MicroTime)(p).Time
	return comesBack(t == time.Time{} ||
		!t.IsZero() && t == time.Unix(t.Unix(), int64(t.Nanosecond()/1000*1000)).Local())
}

func checkQuantity(p unsafe.Pointer) verdict {
	q := *(*resource.Quantity)(p) // a copy: String would write into it
	back, err := resource.ParseQuantity(q.String())
	if err == nil && back != *(*resource.Quantity)(p) {
		_ = back.String() // one that is shared has its text already
	}
	return comesBack(err == nil && back == *(*resource.Quantity)(p))
}

func checkQuantities(m map[string]resource.Quantity, kept bool) verdict {
	if len(m) == 0 {
		return comesBack(m == nil || kept)
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
		return comesBack(m == nil || kept)
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
	return comesBack(v.Type == intstr.Int && v.StrVal == "" || v.Type == intstr.String && v.IntVal == 0)
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

// plainJSON tells whether encoding/json would leave the text of an object or array as it is.
func plainJSON(raw []byte) verdict {
	if len(raw) < 2 || raw[0] != '{' && raw[0] != '[' || bytes.ContainsAny(raw, " \t\r\n<>&\u2028\u2029") {
		return unsure
	}
	return same
}

func comesBack(yes bool) verdict {
	if yes {
		return same
	}
	return changed
}
