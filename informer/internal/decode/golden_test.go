package decode

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufObject is implemented by the generated types.
type protobufObject interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// apiTypes returns all types of k8s.io/api in client-go's scheme, including lists, by package and name.
var apiTypes = sync.OnceValue(func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		if pkg, ok := strings.CutPrefix(typ.PkgPath(), "k8s.io/api/"); ok {
			types[pkg+"/"+typ.Name()] = typ
		}
	}
	return types
})

// every calls f with every type of k8s.io/api.
func every(t *testing.T, f func(t *testing.T, typ reflect.Type)) {
	t.Helper()
	if n := len(apiTypes()); n < 300 {
		t.Errorf("there are only %d types", n)
	}
	for name, typ := range apiTypes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, typ)
		})
	}
}

// decode decodes into a pointer to a zero value.
type decode func(raw []byte, obj any) (lossy, ok bool)

// planOf decodes with the plan of a type, with a private table if shared.
func planOf(typ reflect.Type, shared bool) decode {
	plan, table := For(typ), (*Table)(nil)
	if shared {
		table = NewTable(1 << 20)
	}
	return func(raw []byte, obj any) (lossy, ok bool) {
		r, ok := plan.Decode(table, raw, obj)
		return r.Lossy, ok
	}
}

// TestEveryType compares, for every type, plans with the generated code on the same bytes: empty, full and random
// objects, with and without a table, which supplies the parts of later objects.
func TestEveryType(t *testing.T) {
	every(t, func(t *testing.T, typ reflect.Type) {
		if For(typ) == nil {
			t.Fatal("there is no plan")
		}
		own, shared := planOf(typ, false), planOf(typ, true)
		for seed := range uint64(4) {
			raw, want := sample(t, typ, generator{rand: rand.New(rand.NewPCG(seed, 1)), full: seed == 1, empty: seed == 0})
			kept := string(raw)
			for round, decode := range []decode{own, shared, shared, shared} {
				got := reflect.New(typ)
				if lossy, ok := decode(raw, got.Interface()); lossy || !ok {
					t.Fatalf("seed %d, round %d: lossy %v, ok %v", seed, round, lossy, ok)
				}
				if string(raw) != kept {
					t.Fatal("it changed the bytes")
				}
				clear(raw) // the object must not refer to it
				if diff := differ(want, got.Elem(), typ.Name()); diff != "" {
					t.Fatalf("seed %d, round %d: %s", seed, round, diff)
				}
				copy(raw, kept)
			}
		}
	})
}

// sample returns an object's bytes, and the object that the generated code decodes from them.
func sample(t *testing.T, typ reflect.Type, g generator) (raw []byte, want reflect.Value) {
	t.Helper()
	obj, back := reflect.New(typ), reflect.New(typ)
	g.fill(obj.Elem(), 0)
	raw, err := obj.Interface().(protobufObject).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.Interface().(protobufObject).Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	return raw, back.Elem()
}

// FuzzEveryType fills objects of all types at random and compares plans with the generated code: on the objects'
// bytes, and with one byte changed. There a plan may refuse the bytes, but must not decode anything else.
func FuzzEveryType(f *testing.F) {
	names := slices.Sorted(maps.Keys(apiTypes()))
	tables := map[reflect.Type]*Table{}
	for seed := range uint64(16) {
		f.Add(seed, uint16(seed*97), uint32(seed*31), byte(1<<(seed%8)))
	}
	f.Fuzz(func(t *testing.T, seed uint64, which uint16, at uint32, flip byte) {
		typ := apiTypes()[names[int(which)%len(names)]]
		plan, table := For(typ), tables[typ]
		if table == nil {
			table = NewTable(1 << 18)
			tables[typ] = table
		}
		raw, want := sample(t, typ, generator{rand: rand.New(rand.NewPCG(seed, 3))})
		valid := func(why string) {
			t.Helper()
			for round, table := range []*Table{nil, table, table} {
				got := reflect.New(typ)
				if r, ok := plan.Decode(table, raw, got.Interface()); r.Lossy || !ok {
					t.Fatalf("%s, round %d: lossy %v, ok %v", why, round, r.Lossy, ok)
				}
				if diff := differ(want, got.Elem(), typ.String()); diff != "" {
					t.Fatalf("%s, round %d: %s", why, round, diff)
				}
			}
		}
		valid("as it is")
		if len(raw) == 0 {
			return
		}
		bad := slices.Clone(raw)
		bad[int(at)%len(bad)] ^= flip
		for round, table := range []*Table{nil, table, table} {
			got, generated := reflect.New(typ), reflect.New(typ)
			if _, ok := plan.Decode(table, bad, got.Interface()); !ok {
				continue
			}
			if err := generated.Interface().(protobufObject).Unmarshal(bad); err != nil {
				t.Fatalf("changed, round %d: the generated code refuses it: %v", round, err)
			}
			if diff := differ(generated.Elem(), got.Elem(), typ.String()); diff != "" {
				t.Fatalf("changed, round %d: %s", round, diff)
			}
		}
		valid("after it was changed")
	})
}

// TestPlanned: only types of k8s.io/api with their own encoding have no plan.
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

// TestMetadata compares metadata decoded by its plan with the generated code.
func TestMetadata(t *testing.T) {
	typ := reflect.TypeFor[metav1.PartialObjectMetadata]()
	own, shared := planOf(typ, false), planOf(typ, true)
	for seed := range uint64(32) {
		raw, want := sample(t, typ, generator{rand: rand.New(rand.NewPCG(seed, 5)), full: seed == 1, empty: seed == 0})
		for round, decode := range []decode{own, shared, shared, shared} {
			got := reflect.New(typ)
			if lossy, ok := decode(raw, got.Interface()); lossy || !ok {
				t.Fatalf("seed %d, round %d: lossy %v, ok %v", seed, round, lossy, ok)
			}
			if diff := differ(want, got.Elem(), "metadata"); diff != "" {
				t.Fatalf("seed %d, round %d: %s", seed, round, diff)
			}
		}
	}
}
