package clientgo

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	readsJSONType = reflect.TypeFor[json.Unmarshaler]()
)

// fill puts something into every field that a value of a type has, but for types that read JSON in ways of
// their own, who may not like it, and those that hold themselves.
func fill(v reflect.Value, within []reflect.Type) {
	t := v.Type()
	switch {
	case t == timeType:
		v.Set(reflect.ValueOf(metav1.Unix(1700000000, 0).Rfc3339Copy()))
		return
	case reflect.PointerTo(t).Implements(readsJSONType):
		return
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("probe")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
		if t == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(time.Second))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		fillPointer(v, within)
	case reflect.Slice:
		one := reflect.MakeSlice(t, 1, 1)
		fill(one.Index(0), within)
		v.Set(one)
	case reflect.Map:
		fillMap(v, within)
	case reflect.Struct:
		if slices.Contains(within, t) {
			return
		}
		within = append(slices.Clone(within), t)
		for i := range t.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, within)
			}
		}
	}
}

func fillPointer(v reflect.Value, within []reflect.Type) {
	to := v.Type().Elem()
	if to != timeType && v.Type().Implements(readsJSONType) || slices.Contains(within, to) {
		return
	}
	p := reflect.New(to)
	fill(p.Elem(), within)
	v.Set(p)
}

func fillMap(v reflect.Value, within []reflect.Type) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		return
	}
	one := reflect.New(t.Elem()).Elem()
	fill(one, within)
	m := reflect.MakeMap(t)
	m.SetMapIndex(reflect.ValueOf("probe").Convert(t.Key()), one)
	v.Set(m)
}
