package decode

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// CacheQuantities fills in the cached text of every quantity that obj points to. Quantity.String would otherwise
// write it into the quantity: a race if several readers of a shared object call it. Objects that a Plan decoded with
// a table already have the text. Quantities that are map values need none, since readers get copies; those behind
// pointers in map values do.
func CacheQuantities(obj any) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer {
		return
	}
	holding.RLock()
	h, ok := holding.types[v.Type()]
	holding.RUnlock()
	if !ok {
		holding.Lock()
		h = holds(v.Type(), map[reflect.Type]*holder{})
		holding.types[v.Type()] = h
		holding.Unlock()
	}
	if h != nil {
		h.cache(v, 0)
	}
}

// holder locates the addressable quantities in values of a type.
type holder struct {
	quantity bool    // the type is a quantity
	elem     *holder // of a pointer's target, a list's elements or a map's values
	fields   []heldField
}

type heldField struct {
	index int
	in    *holder
}

// holding caches the holders of types; nil: the type has no quantities.
var holding = struct {
	sync.RWMutex
	types map[reflect.Type]*holder
}{types: map[reflect.Type]*holder{}}

var quantityType = reflect.TypeFor[resource.Quantity]()

// holds returns the holder of a type, or nil where it has no quantities.
func holds(t reflect.Type, seen map[reflect.Type]*holder) *holder {
	if h, ok := seen[t]; ok {
		return h
	}
	if t.Kind() == reflect.Struct && !reaches(t, map[reflect.Type]bool{}) {
		seen[t] = nil
		return nil
	}
	h := &holder{}
	seen[t] = h
	switch {
	case t == quantityType:
		h.quantity = true
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		h.elem = holds(t.Elem(), seen)
	case t.Kind() == reflect.Map && t.Elem() != quantityType:
		h.elem = holds(t.Elem(), seen)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				if in := holds(f.Type, seen); in != nil {
					h.fields = append(h.fields, heldField{i, in})
				}
			}
		}
	}
	if !h.quantity && h.elem == nil && h.fields == nil {
		h = nil
		seen[t] = nil
	}
	return h
}

// reaches reports whether a type contains a quantity that is not a map value.
func reaches(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == quantityType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return reaches(t.Elem(), seen)
	case reflect.Map:
		return t.Elem() != quantityType && reaches(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && reaches(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

func (h *holder) cache(v reflect.Value, depth int) {
	switch {
	case depth > maxDepth:
	case h.quantity:
		if !v.CanAddr() {
			return // in a map's value
		}
		if q, ok := v.Addr().Interface().(*resource.Quantity); ok {
			_ = q.String()
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			h.elem.cache(v.Elem(), depth+1)
		}
	case v.Kind() == reflect.Map:
		for i := v.MapRange(); i.Next(); {
			h.elem.cache(i.Value(), depth+1)
		}
	case h.elem != nil:
		for i := range v.Len() {
			h.elem.cache(v.Index(i), depth+1)
		}
	default:
		for _, f := range h.fields {
			f.in.cache(v.Field(f.index), depth+1)
		}
	}
}
