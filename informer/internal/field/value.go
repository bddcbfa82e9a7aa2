package field

import (
	"reflect"
	"slices"
	"strconv"
)

// Of returns the values in a decoded object: a pointer to a struct, or the map of an unstructured object.
func (p *Path) Of(obj any) []string {
	if p.leaf == nil {
		return once(p.loose(0, obj, nil))
	}
	return once(p.of(0, reflect.ValueOf(obj), nil))
}

// of appends the values to which the steps from i lead in v.
func (p *Path) of(i int, v reflect.Value, to []string) []string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return to
		}
		v = v.Elem()
	}
	if i == len(p.steps) {
		switch {
		case v.Kind() == reflect.String:
			return append(to, v.String())
		case v.Kind() == reflect.Bool:
			return append(to, strconv.FormatBool(v.Bool()))
		case v.CanInt():
			return append(to, strconv.FormatInt(v.Int(), 10))
		}
		return append(to, strconv.FormatUint(v.Uint(), 10))
	}
	switch s := &p.steps[i]; s.kind {
	case toField:
		return p.of(i+1, v.Field(s.index), to)
	case toKey:
		if v = v.MapIndex(reflect.ValueOf(s.name).Convert(v.Type().Key())); v.IsValid() {
			to = p.of(i+1, v, to)
		}
	case toEach:
		for j := range v.Len() {
			to = p.of(i+1, v.Index(j), to)
		}
	}
	return to
}

// loose is of, for unstructured objects.
func (p *Path) loose(i int, v any, to []string) []string {
	if i == len(p.steps) {
		switch v := v.(type) {
		case string:
			to = append(to, v)
		case bool:
			to = append(to, strconv.FormatBool(v))
		case int64:
			to = append(to, strconv.FormatInt(v, 10))
		}
		return to
	}
	switch s := &p.steps[i]; v := v.(type) {
	case map[string]any:
		if in, ok := v[s.name]; ok && s.kind == toKey {
			to = p.loose(i+1, in, to)
		}
	case []any:
		if s.kind == toEach {
			for _, in := range v {
				to = p.loose(i+1, in, to)
			}
		}
	}
	return to
}

// once removes duplicates.
func once(values []string) []string {
	if len(values) < 2 {
		return values
	}
	if len(values) > 32 {
		slices.Sort(values)
		return slices.Compact(values)
	}
	out := values[:1]
	for _, v := range values[1:] {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
