package clientgo

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// nameOf names a handler by its place in the source, as client-go does. The name appears in the name of a
// registration's HasSyncedChecker.
func nameOf(h cache.ResourceEventHandler) string {
	name := ""
	switch h := h.(type) {
	case nil:
	case *cache.ResourceEventHandlerFuncs:
		name = nameOfFuncs(h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case cache.ResourceEventHandlerFuncs:
		name = nameOfFuncs(h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	default:
		name = nameOfType(reflect.TypeOf(h))
	}
	if name == "" {
		name = fmt.Sprintf("%T", h)
	}
	return name
}

func nameOfType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return t.Name()
	}
	return t.PkgPath() + "." + t.Name()
}

// nameOfFuncs returns the function or type that contains all of the functions, or else their names.
func nameOfFuncs(funcs ...any) string {
	var names []string
	place, alike := "", true
	for _, f := range funcs {
		v := reflect.ValueOf(f)
		if v.IsNil() {
			continue
		}
		fn := runtime.FuncForPC(v.Pointer())
		if fn == nil {
			continue
		}
		name := fn.Name()
		names = append(names, name)
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			name = name[:i]
		}
		alike = alike && (place == "" || place == name)
		place = name
	}
	if alike {
		return place
	}
	return strings.Join(names, "+")
}
