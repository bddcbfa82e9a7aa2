package decode

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generator fills objects completely, partly, or not at all.
type generator struct {
	rand        *rand.Rand
	full, empty bool
}

func (g *generator) some() bool { return g.full || !g.empty && g.rand.IntN(3) > 0 }

func (g *generator) count() int {
	if g.empty {
		return 0
	}
	if g.full {
		return 1 // full objects: nested lists grow fast enough
	}
	return g.rand.IntN(4)
}

func (g *generator) text() string {
	if g.empty {
		return ""
	}
	texts := []string{"a", "some text", "some/more-text", strings.Repeat("long ", 60), "é\xff\x00", ""}
	if g.full {
		texts = texts[:5]
	}
	return texts[g.rand.IntN(len(texts))]
}

func (g *generator) fill(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		if g.some() {
			*at = metav1.NewTime(time.Unix(g.rand.Int64N(2e9), 0))
		}
		return
	case *metav1.MicroTime:
		if g.some() {
			*at = metav1.NewMicroTime(time.UnixMicro(g.rand.Int64N(2e15)))
		}
		return
	case *resource.Quantity:
		*at = resource.MustParse(fmt.Sprintf("%d%s", g.rand.IntN(1e6), []string{"", "m", "Ki", "Mi", "G", "e3"}[g.rand.IntN(6)]))
		return
	case *metav1.TypeMeta:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(g.text())
	case reflect.Bool:
		v.SetBool(g.some())
	case reflect.Int32, reflect.Int64:
		if g.some() {
			v.SetInt([]int64{1, -1, 127, 128, 1 << 30, -1 << 31}[g.rand.IntN(6)])
		}
	case reflect.Float64:
		v.SetFloat(g.rand.NormFloat64())
	case reflect.Uint8:
		v.SetUint(uint64(g.rand.IntN(256)))
	case reflect.Pointer:
		if g.some() {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := g.count(); n > 0 || g.some() && g.rand.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				g.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if n := g.count(); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				g.fill(key, depth+1)
				g.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				g.fill(v.Field(i), depth+1)
			}
		}
	}
}

// differ describes where two values differ. Unlike apiequality, it distinguishes nil from empty.
func differ(a, b reflect.Value, path string) string {
	if qa, ok := a.Interface().(resource.Quantity); ok {
		if qb := b.Interface().(resource.Quantity); qa.Cmp(qb) != 0 || qa.String() != qb.String() || qa.Format != qb.Format {
			return fmt.Sprintf("%s: %v, want %v", path, qb, qa)
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			return fmt.Sprintf("%s: nil is %v, want %v", path, b.IsNil(), a.IsNil())
		}
		if !a.IsNil() {
			return differ(a.Elem(), b.Elem(), path)
		}
		return ""
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return fmt.Sprintf("%s: %v, want %v", path, b, a)
		}
		if a.Type().Elem().Kind() != reflect.Uint8 && b.Cap() != b.Len() {
			return fmt.Sprintf("%s: there is room for %d", path, b.Cap())
		}
		for i := range a.Len() {
			if d := differ(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return fmt.Sprintf("%s: %v, want %v", path, b, a)
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() {
				return fmt.Sprintf("%s: no %v", path, it.Key())
			}
			if d := differ(it.Value(), other, fmt.Sprintf("%s[%v]", path, it.Key())); d != "" {
				return d
			}
		}
		return ""
	case reflect.Struct:
		if a.NumField() > 0 && a.Type().Field(0).IsExported() && a.Type().PkgPath() != "time" {
			for i := range a.NumField() {
				if d := differ(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); d != "" {
					return d
				}
			}
			return ""
		}
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		return fmt.Sprintf("%s: %v, want %v", path, b, a)
	}
	return ""
}
