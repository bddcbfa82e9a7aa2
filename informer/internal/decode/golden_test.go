package decode

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufObject is what the generated types offer.
type protobufObject interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// every calls f with every type of k8s.io/api that has protobuf.
func every(t *testing.T, f func(t *testing.T, typ reflect.Type)) {
	t.Helper()
	n, seen := 0, map[reflect.Type]bool{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		_, ok := reflect.New(typ).Interface().(protobufObject)
		if !ok || seen[typ] || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") || strings.HasSuffix(typ.Name(), "List") && typ.Name() != "PodList" {
			continue
		}
		seen[typ] = true
		n++
		t.Run(gvk.GroupVersion().String()+"/"+typ.Name(), func(t *testing.T) {
			t.Parallel()
			f(t, typ)
		})
	}
	if n < 150 {
		t.Errorf("there are %d types", n)
	}
}

// TestEveryType compares, of every type, what the generated code and what a plan makes of the same bytes: empty, full, and
// random, with and without a table, from which the parts of the later ones come.
func TestEveryType(t *testing.T) {
	every(t, func(t *testing.T, typ reflect.Type) {
		plan := For(typ)
		if plan == nil {
			t.Fatal("there is no plan")
		}
		table := NewTable(1 << 20)
		for seed := range uint64(4) {
			g := generator{rand: rand.New(rand.NewPCG(seed, 1)), full: seed == 1, empty: seed == 0}
			obj := reflect.New(typ)
			g.fill(obj.Elem(), 0)
			raw, err := obj.Interface().(protobufObject).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			want := reflect.New(typ)
			if err := want.Interface().(protobufObject).Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			kept := string(raw)
			for round, table := range []*Table{nil, table, table, table} {
				got := reflect.New(typ)
				if r, ok := plan.Decode(table, raw, got.Interface()); r.Lossy || !ok {
					t.Fatalf("seed %d, round %d: lossy %v, ok %v", seed, round, r.Lossy, ok)
				}
				if string(raw) != kept {
					t.Fatal("it changed the bytes")
				}
				if diff := differ(want.Elem(), got.Elem(), typ.Name()); diff != "" {
					t.Fatalf("seed %d, round %d: %s", seed, round, diff)
				}
				clear(raw) // nothing of it is kept
				if diff := differ(want.Elem(), got.Elem(), typ.Name()); diff != "" {
					t.Fatalf("seed %d, round %d, afterwards: %s", seed, round, diff)
				}
				copy(raw, kept)
			}
		}
	})
}

// TestPlanned: nothing of k8s.io/api is left to the generated code but what has a form of its own.
func TestPlanned(t *testing.T) {
	every(t, func(t *testing.T, typ reflect.Type) {
		seen := map[*message]bool{}
		var walk func(m *message)
		walk = func(m *message) {
			if m == nil || seen[m] {
				return
			}
			seen[m] = true
			switch name := m.typ.String(); {
			case !m.own:
			case strings.HasSuffix(m.typ.PkgPath(), "/apis/meta/v1") && (strings.HasSuffix(name, "Time") || name == "v1.Verbs"), name == "resource.Quantity":
			case m.typ.Kind() == reflect.Slice: // a list of strings, in a message
			default:
				t.Errorf("%s.%s has no plan", m.typ.PkgPath(), name)
			}
			for _, f := range m.fields {
				if f != nil {
					walk(f.elem)
				}
			}
		}
		plansMu.Lock()
		m := planned(typ)
		plansMu.Unlock()
		walk(m)
	})
}

// generator fills objects: with everything, with nothing, or with some of it.
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
		return 1 // of everything: what is in lists of lists grows fast enough
	}
	return g.rand.IntN(4)
}

func (g *generator) text() string {
	if g.empty {
		return ""
	}
	return []string{"", "a", "some text", "some/more-text", strings.Repeat("long ", 60), "é\xff\x00"}[g.rand.IntN(6)]
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

// differ says where two values differ. It is stricter than apiequality: nil and empty differ.
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
