package decode

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// custom has a field of every kind that Share supports, and some that it does not.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	embedded

	Template corev1.PodTemplateSpec       `json:"template"`
	Sizes    []int32                      `json:"sizes,omitempty"`
	Ratio    *float64                     `json:"ratio,omitempty"`
	Data     []byte                       `json:"data,omitempty"`
	ByName   map[string]corev1.Toleration `json:"byName,omitempty"`
	Nested   map[string]map[string]string `json:"nested,omitempty"`
	Children []custom                     `json:"children,omitempty"`
	Any      any                          `json:"any,omitempty"`
	Extra    *runtime.RawExtension        `json:"extra,omitempty"`
	Global   *global                      `json:"global,omitempty"`
	private  []string
}

type embedded struct {
	Words []string `json:"words,omitempty"`
}

// global decodes to a pointer that its type keeps.
type global struct{ Names []string }

var theGlobal = []string{"one", "two"}

func (g *global) UnmarshalJSON([]byte) error { g.Names = theGlobal; return nil }

func randomCustom(t *testing.T, seed uint64) []byte {
	t.Helper()
	g := generator{rand: rand.New(rand.NewPCG(seed, 9)), empty: seed == 0}
	c := &custom{}
	g.fill(reflect.ValueOf(&c.ObjectMeta).Elem(), 2)
	for _, v := range []any{&c.Template, &c.Words, &c.Sizes, &c.Ratio, &c.Data, &c.ByName, &c.Nested} {
		g.fill(reflect.ValueOf(v).Elem(), 4)
	}
	c.ManagedFields, c.Template.ManagedFields = nil, nil // their JSON is raw
	c.Any = map[string]any{"a": []any{"b", 1.5}}
	c.Extra = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	c.Global = &global{}
	if seed%3 == 1 {
		c.Any = nil
		c.Children = []custom{{embedded: embedded{Words: []string{"x"}}}, {}}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestShare: an object whose parts are replaced by others' equals the original, to the last field.
func TestShare(t *testing.T) {
	table := NewTable(1 << 20)
	for round := range 4 {
		for seed := range uint64(24) {
			raw := randomCustom(t, seed)
			got, want := &custom{}, &custom{}
			for _, obj := range []any{got, want} {
				if err := json.Unmarshal(raw, obj); err != nil {
					t.Fatal(err)
				}
			}
			got.private = []string{"p"}
			want.private = got.private
			if size, ok := table.Share(got); !ok || size <= 0 {
				t.Fatal(size, ok)
			}
			CacheQuantities(want)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, seed %d: %+v, want %+v", round, seed, got, want)
			}
			if len(got.Global.Names) != 2 || &got.Global.Names[0] != &theGlobal[0] {
				t.Error("a value made by its type's own decoder was replaced")
			}
			if got.Sizes != nil && cap(got.Sizes) != len(got.Sizes) {
				t.Error("an append would write into shared memory")
			}
		}
	}
}

// TestShareReplaces: equal parts are shared from the third time on; others stay different.
func TestShareReplaces(t *testing.T) {
	table := NewTable(1 << 20)
	var objs []*custom
	for i := range 8 {
		c := &custom{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, embedded: embedded{Words: []string{"a", "b"}}, Sizes: []int32{1, 2}}
		if i == 7 {
			c.Words, c.Sizes, c.Labels = []string{"a", "c"}, []int32{1}, map[string]string{"app": "web", "": ""}
		}
		table.Share(c)
		objs = append(objs, c)
	}
	a, b, other := objs[5], objs[6], objs[7]
	if &a.Words[0] != &b.Words[0] || &a.Sizes[0] != &b.Sizes[0] || reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("equal parts are not shared")
	}
	if other.Words[1] != "c" || len(other.Sizes) != 1 || len(other.Labels) != 2 {
		t.Errorf("other parts were replaced: %+v", other)
	}
	for _, obj := range []any{nil, custom{}, (*custom)(nil), &global{}, new(string)} {
		if _, ok := table.Share(obj); ok {
			t.Errorf("%T is shared", obj)
		}
	}
	deep := &custom{}
	for at, n := deep, 0; n < 2*maxDepth; n++ {
		at.Children = make([]custom, 1, 2)
		at = &at.Children[0]
	}
	if _, ok := table.Share(deep); ok || cap(deep.Children) != 2 {
		t.Error("a cyclic object was shared")
	}
}

// TestShareLeavesNoRoom: nothing in a map has room for more either, where an append would write into what is shared.
func TestShareLeavesNoRoom(t *testing.T) {
	type leaf struct {
		Names []string `json:"names,omitempty"`
		Next  *leaf    `json:"next,omitempty"`
	}
	type tree struct {
		Lists  map[string][]string          `json:"lists"`
		Leaves map[string]leaf              `json:"leaves"`
		Deep   map[string]map[string][]leaf `json:"deep"`
		Bytes  map[string][]byte            `json:"bytes"`
	}
	const names = `["a","b","c"]`
	const raw = `{"lists":{"x":` + names + `,"y":[],"z":null},"leaves":{"x":{"names":` + names + `,"next":{"names":` + names + `}}},
		"deep":{"x":{"y":[{"names":` + names + `},{},{}]}},"bytes":{"x":"AAECAwQ="}}`
	table := NewTable(1 << 20)
	for range 4 {
		got, want := &tree{}, &tree{}
		for _, obj := range []any{got, want} {
			if err := json.Unmarshal([]byte(raw), obj); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := table.Share(got); !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		leaf, deep := got.Leaves["x"], got.Deep["x"]["y"]
		for i, room := range []int{
			cap(got.Lists["x"]) - 3, cap(got.Lists["y"]), cap(leaf.Names) - 3, cap(leaf.Next.Names) - 3,
			cap(deep) - 3, cap(deep[0].Names) - 3, cap(got.Bytes["x"]) - 5,
		} {
			if room != 0 {
				t.Errorf("list %d has room for %d", i, room)
			}
		}
	}
}

// TestShareAndDecodeKeepApart: the bytes by which Share compares a part may be those of another part in protobuf.
func TestShareAndDecodeKeepApart(t *testing.T) {
	type custom struct {
		Data []byte `json:"data"`
	}
	table, plan := NewTable(1<<20), For(reflect.TypeFor[certificatesv1.CertificateSigningRequest]())
	sent := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte{1, 3, 'a', 'b', 'c'}}}
	raw, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		got, c := &certificatesv1.CertificateSigningRequest{}, &custom{Data: []byte("abc")}
		if _, ok := plan.Decode(table, raw, got); !ok || !reflect.DeepEqual(got, sent) {
			t.Errorf("%+v, want %+v", got, sent)
		}
		if _, ok := table.Share(c); !ok || string(c.Data) != "abc" {
			t.Errorf("%q, want abc", c.Data)
		}
	}
}
