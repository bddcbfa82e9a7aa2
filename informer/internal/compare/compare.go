// Package compare finds the first difference between two objects of one Go type: one just decoded, and one that
// a caller may have modified.
//
// Unexported fields are ignored, except in times and quantities, which are compared as API machinery does. A
// nil map or slice equals an empty one. Objects must not contain themselves; values nested deeper than 200
// levels are not compared.
package compare

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Difference is a place where two objects differ.
type Difference struct {
	// Path is the place in JSON names, such as metadata.labels["app"] or spec.containers[0].image.
	Path string
	// Want and Got are the two values, shortened; "nothing" if there is no such value.
	Want, Got string
}

// First returns the first difference, in the order of the Go types' fields and of sorted map keys.
func First(want, got any) (d Difference, differ bool) {
	w := walk{}
	if w.same(reflect.ValueOf(want), reflect.ValueOf(got), 0) {
		return Difference{}, false
	}
	slices.Reverse(w.path)
	d = Difference{Path: strings.TrimPrefix(strings.Join(w.path, ""), "."), Want: show(w.want), Got: show(w.got)}
	if d.Path == "" {
		d.Path = "." // the whole object
	}
	return d, true
}

// walk holds the difference. Its path is collected on the way back, last part first.
type walk struct {
	path      []string
	want, got reflect.Value // invalid: no such value
}

const maxDepth = 200

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	contentType  = reflect.TypeFor[map[string]any]() // of an unstructured object
)

func (w *walk) same(want, got reflect.Value, depth int) bool {
	if depth > maxDepth {
		return true
	}
	if want.IsValid() != got.IsValid() || want.IsValid() && want.Type() != got.Type() {
		return w.differ(want, got)
	}
	if !want.IsValid() {
		return true
	}
	switch want.Kind() {
	case reflect.Pointer:
		if want.IsNil() || got.IsNil() {
			return want.IsNil() && got.IsNil() || w.differ(want, got)
		}
		return want.Pointer() == got.Pointer() || w.same(want.Elem(), got.Elem(), depth+1)
	case reflect.Interface:
		return w.same(want.Elem(), got.Elem(), depth+1)
	case reflect.Struct:
		return w.structs(want, got, depth)
	case reflect.Slice, reflect.Array:
		return w.lists(want, got, depth)
	case reflect.Map:
		return w.maps(want, got, depth)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return scalars(want, got) || w.differ(want, got)
}

func (w *walk) differ(want, got reflect.Value) bool {
	w.want, w.got = want, got
	return false
}

// scalars compares values of one type that neither contain nor point to other values.
func scalars(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float() || math.IsNaN(a.Float()) && math.IsNaN(b.Float())
	case reflect.Complex64, reflect.Complex128:
		return a.Complex() == b.Complex()
	}
	if a.CanInt() {
		return a.Int() == b.Int()
	}
	return a.Uint() == b.Uint()
}

func (w *walk) structs(want, got reflect.Value, depth int) bool {
	t := want.Type()
	switch t {
	case timeType:
		a, _ := want.Interface().(time.Time)
		b, _ := got.Interface().(time.Time)
		return a.Equal(b) || w.differ(want, got)
	case quantityType:
		a, _ := want.Interface().(resource.Quantity) // copies: Cmp may modify them
		b, _ := got.Interface().(resource.Quantity)
		a, b = a.DeepCopy(), b.DeepCopy()
		return a.Format == b.Format && a.Cmp(b) == 0 || w.differ(want, got)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() && !w.same(want.Field(i), got.Field(i), depth+1) {
			w.path = append(w.path, nameOf(f))
			return false
		}
	}
	return true
}

// nameOf returns a field's part of a path; empty if its own fields are inlined in JSON.
func nameOf(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "" && (f.Anonymous || strings.Contains(options, "inline") || f.Type == contentType):
		return ""
	case name == "" || name == "-":
		name = f.Name
	}
	return "." + name
}

func (w *walk) lists(want, got reflect.Value, depth int) bool {
	n := min(want.Len(), got.Len())
	if want.Type().Elem().Kind() == reflect.Uint8 { // byte slices are compared as a whole
		return want.Len() == got.Len() && slices.Equal(bytesOf(want), bytesOf(got)) || w.differ(want, got)
	}
	for i := range n {
		if !w.same(want.Index(i), got.Index(i), depth+1) {
			w.path = append(w.path, fmt.Sprintf("[%d]", i))
			return false
		}
	}
	if want.Len() == got.Len() {
		return true
	}
	w.path = append(w.path, fmt.Sprintf("[%d]", n))
	return w.differ(at(want, n), at(got, n))
}

func at(list reflect.Value, i int) reflect.Value {
	if i < list.Len() {
		return list.Index(i)
	}
	return reflect.Value{}
}

func bytesOf(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice {
		return v.Bytes()
	}
	out := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(out), v)
	return out
}

func (w *walk) maps(want, got reflect.Value, depth int) bool {
	if want.Pointer() == got.Pointer() {
		return true
	}
	// Of several different keys the first in order is reported: the path must be deterministic.
	var first string
	var inside *walk
	note := func(k reflect.Value, v *walk) {
		if name := keyOf(k); inside == nil || name < first {
			first, inside = name, v
		}
	}
	for i := want.MapRange(); i.Next(); {
		if v := (&walk{}); !v.same(i.Value(), got.MapIndex(i.Key()), depth+1) {
			note(i.Key(), v)
		}
	}
	for i := got.MapRange(); i.Next(); {
		if !want.MapIndex(i.Key()).IsValid() {
			note(i.Key(), &walk{got: i.Value()})
		}
	}
	if inside == nil {
		return true
	}
	if want.Type().Elem().Kind() == reflect.Interface { // an unstructured object
		first = nameIn(first)
	}
	w.want, w.got, w.path = inside.want, inside.got, append(inside.path, first)
	return false
}

func keyOf(k reflect.Value) string {
	if k.Kind() == reflect.String {
		return "[" + strconv.Quote(k.String()) + "]"
	}
	return fmt.Sprintf("[%v]", k)
}

// nameIn turns ["name"] into .name if the name looks like a field's.
func nameIn(key string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(key, `["`), `"]`)
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return key
		}
	}
	if name == "" {
		return key
	}
	return "." + name
}

// maxShown bounds the displayed part of a value, in bytes.
const maxShown = 80

func show(v reflect.Value) string {
	if !v.IsValid() {
		return "nothing"
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return "nothing"
		}
		v = v.Elem()
	}
	var s string
	switch t := v.Interface().(type) {
	case resource.Quantity:
		t = t.DeepCopy()
		s = t.String()
	case time.Time:
		s = t.Format(time.RFC3339Nano)
	default:
		switch v.Kind() {
		case reflect.String:
			s = strconv.Quote(v.String())
		case reflect.Slice:
			s = fmt.Sprintf("%.200q", t)
			if v.Type().Elem().Kind() != reflect.Uint8 {
				s = fmt.Sprintf("%+v", t)
			}
		default:
			s = fmt.Sprintf("%+v", t)
		}
	}
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
