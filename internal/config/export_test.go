package config

import "reflect"

// Decoded records the path of every key that the decoder fills in a type.
func Decoded(typ reflect.Type, prefix string, out map[string]bool) {
	for _, f := range fieldsOf(typ) {
		at, inner := prefix+f.name, typ.Field(f.index).Type
		out[at] = true
		if inner.Kind() == reflect.Slice {
			at, inner = at+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			Decoded(inner, at+".", out)
		}
	}
}
