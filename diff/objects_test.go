package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// testSchema is a Schema literal.
type testSchema struct {
	fields   map[string]*testSchema
	list     ListType
	keys     []string
	elem     *testSchema
	defaults map[string]any
}

func (s *testSchema) Field(name string) Schema { return orNil(s.fields[name]) }
func (s *testSchema) Elem() Schema             { return orNil(s.elem) }
func (s *testSchema) List() (ListType, []string) {
	return s.list, s.keys
}
func (s *testSchema) Default(field string) any { return s.defaults[field] }

func orNil(s *testSchema) Schema {
	if s == nil {
		return nil
	}
	return s
}

var schemas = &testSchema{fields: map[string]*testSchema{
	"ports": {list: ListMap, keys: []string{"port", "protocol"}, elem: &testSchema{defaults: map[string]any{"protocol": "TCP"}}},
	"set":   {list: ListSet},
	"args":  {list: ListAtomic},
	"steps": {list: ListAtomic},
	"map":   {list: ListMap, keys: []string{"id"}},
}}

func TestObjects(t *testing.T) {
	for _, tc := range []struct {
		why           string
		before, after string
		want          []string
	}{
		{"the same", "{a: 1, b: [x, {c: d}]}", "{a: 1, b: [x, {c: d}]}", nil},
		{"a scalar", "{spec: {num: 1}}", "{spec: {num: 2}}", []string{"spec.num: 1 → 2"}},
		{"a subtree appears once, at its root", "{spec: {}}", "{spec: {a: {b: {c: 1}}}}", []string{"spec.a: + map[b:map[c:1]]"}},
		{"and goes like that", "{spec: {a: {b: 1}}}", "{spec: {}}", []string{"spec.a: - map[b:1]"}},
		{"labels are compared by key, even if there were no labels", "{metadata: {}}", "{metadata: {labels: {a: x, b: z}}}",
			[]string{"metadata.labels.a: + x", "metadata.labels.b: + z"}},
		{"and when none is left", "{data: {a: x}}", "{}", []string{"data.a: - x"}},
		{"no labels and empty labels are the same", "{labels: {}}", "{}", nil},
		{"data that holds objects is no such map", "{}", "{data: {a: {b: 1}}}", []string{"data: + map[a:map[b:1]]"}},
		{"another empty map is a value", "{}", "{emptyDir: {}}", []string{"emptyDir: + map[]"}},
		{"null is absent", "{a: null, b: 1}", "{b: 1, c: null}", nil},
		{"from null is added", "{a: null}", "{a: 1}", []string{"a: + 1"}},
		{"to null is removed", "{a: 1}", "{a: null}", []string{"a: - 1"}},
		{"another type is one replace", "{a: {b: 1}}", "{a: [1]}", []string{"a: map[b:1] → [1]"}},
		{"text and number differ", "{a: '1'}", "{a: 1}", []string{"a: 1 → 1"}},
		{"order of fields", "{status: 1, zz: 1, spec: 1, data: {a: 1}, metadata: 1, kind: a, apiVersion: b}", "{}",
			[]string{"apiVersion: - b", "kind: - a", "metadata: - 1", "spec: - 1", "data.a: - 1", "zz: - 1", "status: - 1"}},
		{"that order is only the root's", "{x: {spec: 1, b: 1}}", "{x: {spec: 2, b: 2}}", []string{"x.b: 1 → 2", "x.spec: 1 → 2"}},

		{"by merge keys, with a default, moved", "{ports: [{port: 80, v: 1}, {port: 80, protocol: UDP}]}", "{ports: [{port: 80, protocol: UDP}, {port: 80, protocol: TCP, v: 2}]}",
			[]string{"ports: order [port=80,protocol=TCP] [port=80,protocol=UDP] → [port=80,protocol=UDP] [port=80,protocol=TCP]",
				"ports[port=80,protocol=TCP].protocol: + TCP", "ports[port=80,protocol=TCP].v: 1 → 2"}},
		{"an element that only moved", "{map: [{id: 1, v: 1}, {id: 2}]}", "{map: [{id: 2}, {id: 1, v: 1}]}", []string{"map: order 1 2 → 2 1"}},
		{"the order names those that changed places, of those that stay", "{map: [{id: a}, {id: b}, {id: gone}, {id: c}, {id: d}]}",
			"{map: [{id: a}, {id: c}, {id: b}, {id: new}, {id: d}]}", []string{"map: order b c → c b", "map[id=gone]: - map[id:gone]", "map[id=new]: + map[id:new]"}},
		{"an element put in front moves none", "{map: [{id: a}, {id: b}]}", "{map: [{id: new}, {id: a}, {id: b}]}", []string{"map[id=new]: + map[id:new]"}},
		{"nor does one cut out", "{map: [{id: a}, {id: b}, {id: c}]}", "{map: [{id: a}, {id: c}]}", []string{"map[id=b]: - map[id:b]"}},
		{"removed in its place, added last", "{ports: [{port: 1}, {port: 2, v: 1}]}", "{ports: [{port: 3}, {port: 2, v: 2}]}",
			[]string{"ports[port=1,protocol=TCP]: - map[port:1]", "ports[port=2,protocol=TCP].v: 1 → 2", "ports[port=3,protocol=TCP]: + map[port:3]"}},
		{"merge keys that occur twice fall back to the index", "{map: [{id: 1, v: 1}, {id: 1, v: 2}]}", "{map: [{id: 1, v: 1}, {id: 1, v: 3}]}",
			[]string{"map[1].v: 2 → 3"}},
		{"elements without merge keys too", "{map: [{v: 1}]}", "{map: [{v: 2}]}", []string{"map[0].v: 1 → 2"}},
		{"an element that is no object too", "{map: [1, {id: 2}]}", "{map: [1, {id: 3}]}", []string{"map[1].id: 2 → 3"}},
		{"a set, moved", "{set: [a, b]}", "{set: [c, b]}", []string{"set[=a]: - a", "set[=c]: + c"}},
		{"a set only moved", "{set: [a, b]}", "{set: [b, a]}", nil},
		{"a set with a repeated value", "{set: [a, a]}", "{set: [a]}", []string{"set: [a a] → [a]"}},

		{"atomic scalars are one replace, in order", "{args: [a, b]}", "{args: [b, a]}", []string{"args: [a b] → [b a]"}},
		{"scalars of unknown type as well", "{x: [a]}", "{x: [a, b]}", []string{"x: [a] → [a b]"}},
		{"atomic objects by name, for reading", "{steps: [{name: a, run: x}, {name: b}]}", "{steps: [{name: new}, {name: a, run: z}, {name: b}]}",
			[]string{"steps[name=a].run: x → z", "steps[name=new]: + map[name:new]"}},
		{"whose order is a change", "{steps: [{name: a}, {name: b}]}", "{steps: [{name: b}, {name: a}]}",
			[]string{"steps: [map[name:a] map[name:b]] → [map[name:b] map[name:a]]"}},
		{"unknown: key, type, id where name does not tell", "{t: [{key: a, v: 1}], c: [{type: b, v: 1}], i: [{id: 3, v: 1}]}", "{t: [{key: a, v: 2}], c: [{type: b, v: 2}], i: [{id: 3, v: 2}]}",
			[]string{"c[type=b].v: 1 → 2", "i[id=3].v: 1 → 2", "t[key=a].v: 1 → 2"}},
		{"names must be unique after, too", "{x: [{name: a}]}", "{x: [{name: a}, {name: a, v: 1}]}", []string{"x[1]: + map[name:a v:1]"}},
		{"an empty name names nothing", "{x: [{name: ''}]}", "{x: [{name: '', v: 1}]}", []string{"x[0].v: + 1"}},
		{"by index: put in front", "{x: [{a: 1}, {a: 2}]}", "{x: [{a: 0}, {a: 1}, {a: 2}]}", []string{"x[0]: + map[a:0]"}},
		{"by index: cut out", "{x: [{a: 1}, {a: 2}, {a: 3}]}", "{x: [{a: 1}, {a: 3}]}", []string{"x[1]: - map[a:2]"}},
		{"by index: one of them changed", "{x: [{a: 1}, {a: 2, b: 1}, {a: 3}]}", "{x: [{a: 1}, {a: 2, b: 2}, {a: 3}]}", []string{"x[1].b: 1 → 2"}},
		{"by index: too different", "{x: [{a: 1}, {a: 2}]}", "{x: [{a: 3}]}", []string{"x: [map[a:1] map[a:2]] → [map[a:3]]"}},
		{"lists of lists", "{x: [[1], [2]]}", "{x: [[1], [3]]}", []string{"x[1]: [2] → [3]"}},
		{"null in a list is an element", "{x: [1, null]}", "{x: [1]}", []string{"x: [1 <nil>] → [1]"}},
	} {
		var got []string
		for _, c := range Objects(decode(t, tc.before), decode(t, tc.after), schemas) {
			got = append(got, plain(c))
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s:\n%s", tc.why, d)
		}
	}
}

// plain formats a change without the reporter.
func plain(c Change) string {
	switch c.Op {
	case Add:
		return fmt.Sprintf("%s: + %v", c.Path, c.To)
	case Remove:
		return fmt.Sprintf("%s: - %v", c.Path, c.From)
	case Reorder:
		return fmt.Sprintf("%s: order %s → %s", c.Path, strings.Join(nameTexts(c.From), " "), strings.Join(nameTexts(c.To), " "))
	}
	return fmt.Sprintf("%s: %v → %v", c.Path, c.From, c.To)
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &m); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return m
}

func TestEqualNumbers(t *testing.T) {
	const big = 1<<53 + 1 // not a float64
	for _, tc := range []struct {
		a, b any
		want bool
	}{
		{int64(1), 1.0, true},
		{1.0, int64(1), true},
		{int64(1), 1.5, false},
		{int64(big), float64(big), false},
		{int64(-1 << 63), float64(-1 << 63), true},
		{int64(1<<63 - 1), float64(1 << 63), false},
		{int64(1), "1", false},
		{true, int64(1), false},
	} {
		if Equal(tc.a, tc.b) != tc.want {
			t.Errorf("Equal(%#v, %#v) = %v", tc.a, tc.b, !tc.want)
		}
	}
}

// TestNoSchema: without a schema the result must still be correct, and omit equal parts.
func TestNoSchema(t *testing.T) {
	a := decode(t, "{spec: {containers: [{name: app, image: 'a:1', args: [x]}]}}")
	b := decode(t, "{spec: {containers: [{name: side}, {name: app, image: 'a:2', args: [x]}]}}")
	var got []string
	for _, c := range Objects(a, b, nil) {
		got = append(got, plain(c))
	}
	want := "spec.containers[name=app].image: a:1 → a:2|spec.containers[name=side]: + map[name:side]"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %s", s)
	}
	if d := Objects(nil, nil, nil); d != nil {
		t.Errorf("nothing against nothing: %v", d)
	}
}
