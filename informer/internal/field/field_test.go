package field

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	sigsjson "sigs.k8s.io/json"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// object has the methods of the generated types.
type object interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// paths returns the compilable paths of a type.
func paths(t reflect.Type, prefix string, depth int) (all []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case depth > 7 || reflect.PointerTo(t).Implements(jsonType) || t == metaType:
		return nil
	case t.Kind() == reflect.Slice:
		return paths(t.Elem(), prefix+"[*]", depth+1)
	case t.Kind() == reflect.Map:
		return paths(t.Elem(), prefix+`["a"]`, depth+1)
	case t.Kind() != reflect.Struct:
		switch t.Kind() {
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
			return []string{prefix}
		}
		return nil
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "":
			all = append(all, paths(sf.Type, prefix, depth)...)
		case prefix == "":
			all = append(all, paths(sf.Type, name, depth+1)...)
		default:
			all = append(all, paths(sf.Type, prefix+"."+name, depth+1)...)
		}
	}
	return all
}

// fill fills a value with random content.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	some := func() bool { return depth < 14 && r.IntN(4) > 0 }
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = resource.MustParse("1Gi")
		return
	case *metav1.TypeMeta, json.Unmarshaler:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "b", "some/text", "é", `quo"ted\`, "<&>"}[r.IntN(7)])
	case reflect.Bool:
		v.SetBool(some())
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 127, 1 << 30, -1 << 31}[r.IntN(6)])
	case reflect.Pointer:
		if some() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := r.IntN(3); n > 0 && some() {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if some() {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(r, key, depth+1)
				fill(r, value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth+1)
			}
		}
	}
}

func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// check compares the values read from bytes with those of the decoded object. Read must not give up on usual
// bytes, which a server would write.
func check(t *testing.T, p *Path, f wire.Format, raw []byte, obj any, usual bool) {
	t.Helper()
	got, ok := p.Read(f, raw)
	if !ok {
		if usual {
			t.Errorf("%s: gave up on %v %q", p, f, raw)
		}
		return
	}
	if want := p.Of(obj); !same(got, want) {
		t.Fatalf("%s in %v: %q, want %q, of %q", p, f, got, want, raw)
	}
}

// TestEveryField reads every field of every type of k8s.io/api, in both formats, from original and from
// randomly changed bytes.
func TestEveryField(t *testing.T) {
	types, fields := 0, 0
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.New(typ).Interface().(object); !ok || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") || strings.HasSuffix(typ.Name(), "List") {
			continue
		}
		types++
		r := rand.New(rand.NewPCG(uint64(types), 1))
		all := paths(typ, "", 0)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(len(all), 60)]
		fields += len(all)
		var compiled []*Path
		for _, text := range all {
			p, err := Compile(typ, text)
			if err != nil {
				t.Fatalf("%v %s: %v", typ, text, err)
			}
			if !p.protobuf && !strings.Contains(text, `"][*]`) { // a list in a map has its own form
				t.Errorf("%v %s: not read from protobuf", typ, text)
			}
			compiled = append(compiled, p)
		}
		for range 3 {
			v := reflect.New(typ)
			fill(r, v.Elem(), 0)
			raw, err := v.Interface().(object).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			differential(t, typ, compiled, wire.Protobuf, raw, true)
			text, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			differential(t, typ, compiled, wire.JSON, text, true)
			for range 4 {
				differential(t, typ, compiled, wire.Protobuf, mutate(r, raw), false)
				differential(t, typ, compiled, wire.JSON, mutate(r, text), false)
			}
		}
	}
	if types < 100 || fields < 3000 {
		t.Errorf("%d types, %d fields", types, fields)
	}
}

// differential compares paths with the object decoded from the bytes, if it can be decoded.
func differential(t *testing.T, typ reflect.Type, compiled []*Path, f wire.Format, raw []byte, usual bool) {
	t.Helper()
	v := reflect.New(typ)
	obj := v.Interface().(object)
	var err error
	if f == wire.Protobuf {
		err = obj.Unmarshal(raw)
	} else if err = sigsjson.UnmarshalCaseSensitivePreserveInts(raw, obj); err == nil {
		var u map[string]any
		if utiljson.Unmarshal(raw, &u) == nil {
			for _, p := range compiled {
				loose, err := Compile(nil, p.String())
				if err != nil {
					t.Fatal(err)
				}
				check(t, loose, f, raw, u, usual)
			}
		}
	}
	if usual && err != nil {
		t.Fatal(err)
	}
	for _, p := range compiled {
		if err != nil {
			p.Read(f, raw) // it must end and must not panic
			continue
		}
		check(t, p, f, raw, obj, usual && (p.protobuf || f == wire.JSON))
	}
}

// mutate changes single bytes, or duplicates, moves or cuts pieces.
func mutate(r *rand.Rand, raw []byte) []byte {
	b := slices.Clone(raw)
	if len(b) < 8 {
		return b
	}
	for range 1 + r.IntN(3) {
		i := r.IntN(len(b))
		j := min(len(b), i+r.IntN(12))
		switch r.IntN(5) {
		case 0:
			b[i] = byte(r.IntN(256))
		case 1:
			b = slices.Insert(b, r.IntN(len(b)), b[i:j]...)
		case 2:
			b = append(b[:i], b[j:]...)
		case 3:
			b[i]++
		case 4: // a duplicated message: the decoders merge it
			b = append(b, b...)
		}
		if len(b) < 8 || len(b) > 1<<16 {
			return b
		}
	}
	return b
}

// TestWellKnown compares common paths with the functions that users write.
func TestWellKnown(t *testing.T) {
	for path, f := range map[string]func(*corev1.Pod) []string{
		"spec.nodeName":    func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} },
		".metadata.name":   func(p *corev1.Pod) []string { return []string{p.Name} },
		"status.phase":     func(p *corev1.Pod) []string { return []string{string(p.Status.Phase)} },
		"spec.hostNetwork": func(p *corev1.Pod) []string { return []string{fmt.Sprint(p.Spec.HostNetwork)} },
		"spec.terminationGracePeriodSeconds": func(p *corev1.Pod) []string {
			if p.Spec.TerminationGracePeriodSeconds == nil {
				return nil
			}
			return []string{fmt.Sprint(*p.Spec.TerminationGracePeriodSeconds)}
		},
		`metadata.labels["app.kubernetes.io/name"]`: func(p *corev1.Pod) []string {
			if v, ok := p.Labels["app.kubernetes.io/name"]; ok {
				return []string{v}
			}
			return nil
		},
		"metadata.ownerReferences[*].uid": func(p *corev1.Pod) (out []string) {
			for _, o := range p.OwnerReferences {
				out = append(out, string(o.UID))
			}
			return out
		},
		"spec.containers[*].image": func(p *corev1.Pod) (out []string) {
			for _, c := range p.Spec.Containers {
				out = append(out, c.Image)
			}
			return out
		},
		"spec.volumes[*].configMap.name": func(p *corev1.Pod) (out []string) {
			for _, v := range p.Spec.Volumes {
				if v.ConfigMap != nil {
					out = append(out, v.ConfigMap.Name)
				}
			}
			return out
		},
		"status.podIPs[*].ip": func(p *corev1.Pod) (out []string) {
			for _, ip := range p.Status.PodIPs {
				out = append(out, ip.IP)
			}
			return out
		},
	} {
		p, err := Compile(reflect.TypeFor[corev1.Pod](), path)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(7, 7))
		for range 30 {
			pod := &corev1.Pod{}
			fill(r, reflect.ValueOf(pod).Elem(), 0)
			if r.IntN(2) == 0 {
				pod.Labels = map[string]string{"app.kubernetes.io/name": "x", "a": "b"}
			}
			raw, err := pod.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			got, ok := p.Read(wire.Protobuf, raw)
			if want := once(f(pod)); !ok || !same(got, want) || !same(p.Of(pod), want) {
				t.Fatalf("%s: %q and %q, want %q", path, got, p.Of(pod), want)
			}
		}
	}
}

// TestErrors: an error of Compile names the place, the problem and the remedy.
func TestErrors(t *testing.T) {
	for path, want := range map[string]string{
		"":                                "column 1: empty name",
		"{.spec.nodeName}":                "column 1: this is JSONPath: write the path alone, such as spec.nodeName",
		"$.spec.nodeName":                 "column 1: this is JSONPath: write the path alone, such as spec.nodeName",
		"spec..nodeName":                  "column 6: empty name",
		"spec.node name":                  `column 6: unexpected ' '; a key with such characters is written ["…"]`,
		"spec.containers[0].image":        `column 16: want [*] or ["key"]: single elements of a list cannot be indexed`,
		"spec.containers[name=app].image": `column 16: want [*] or ["key"]: single elements of a list cannot be indexed`,
		`metadata.labels["app]`:           "column 17: unterminated quote",
		`metadata.labels["app"`:           "column 22: want ]",
		"spec.containers[*]image":         "column 19: want . or [ after ]",
		"spec.*":                          "column 6: wildcards in keys cannot be indexed; [*] is every element of a list",
		"spec.nodename":                   `spec: a v1.PodSpec has no field "nodename"; did you mean "nodeName"?`,
		"spec.volumes[*].secret.x":        `spec.volumes[*].secret: a v1.SecretVolumeSource has no field "x"`,
		"nothing":                         `the object: a v1.Pod has no field "nothing"`,
		"kind":                            "the object: kind is the same in all objects",
		"spec.containers.image":           "spec.containers: this is a list: append [*]",
		"spec.containers[*]":              "spec.containers[*]: a v1.Container is not a string, a bool or an integer: name a field of it",
		"spec[*]":                         "spec: [*] needs a list, but this is a v1.PodSpec",
		"metadata.labels":                 `metadata.labels: this is a map: append ["key"]`,
		"metadata.labels[*]":              `metadata.labels: [*] needs a list, but this is a map: append ["key"]`,
		"metadata.creationTimestamp":      "metadata.creationTimestamp: a v1.Time has its own form: use AddIndex with a function",
		"spec.nodeName.x":                 "spec.nodeName: a string has no fields",
		"spec.containers[*].resources.limits[\"cpu\"]": `spec.containers[*].resources.limits["cpu"]: a resource.Quantity has its own form: use AddIndex with a function`,
	} {
		_, err := Compile(reflect.TypeFor[corev1.Pod](), path)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", path, err, want)
		}
	}
}

// TestJSON: Read leaves special cases to the decoders.
func TestJSON(t *testing.T) {
	typed, err := Compile(reflect.TypeFor[corev1.Pod](), "spec.priority")
	if err != nil {
		t.Fatal(err)
	}
	loose, err := Compile(nil, "spec.priority")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][2]string{
		`{"spec":{"priority":7}}`:                                 {"7", "7"},
		` { "spec" : { "x" : [ {} , "]" ] , "priority" : -0 } } `: {"0", "0"},
		`{"spec":{"pri\u006frity":7}}`:                            {"7", "7"},
		`{"spec":{"x":"a\\\"}","priority":7}}`:                    {"7", "7"},
		`{"spec":{"priority":null}}`:                              {"", ""},
		`{"spec":null}`:                                           {"", ""},
		`{}`:                                                      {"", ""},
		`{"spec":{"priority":1,"priority":2}}`:                    {"?", "?"},
		`{"spec":{"priority":1},"spec":{}}`:                       {"?", "?"},
		`{"spec":{"priority":"x"}}`:                               {"?", "x"},
		`{"spec":{"priority":"\u00e9"}}`:                          {"?", "é"},
		"{\"spec\":{\"priority\":\"\xff\"}}":                      {"?", "\ufffd"},
		`{"spec":{"priority":1.5}}`:                               {"?", ""},
		`{"spec":{"priority":1e3}}`:                               {"?", ""},
		`{"spec":{"priority":3000000000}}`:                        {"?", "3000000000"},
		`{"spec":{"priority":99999999999999999999}}`:              {"?", ""},
		`{"spec":{"priority":true}}`:                              {"?", "true"},
		`{"spec":{"priority":[7]}}`:                               {"?", ""},
		`{"spec":[]}`:                                             {"?", ""},
		`null`:                                                    {"?", "?"},
		``:                                                        {"?", "?"},
		`{"spec":{"priority":7}`:                                  {"?", "?"},
	} {
		for i, p := range []*Path{typed, loose} {
			values, ok := p.Read(wire.JSON, []byte(text))
			got := strings.Join(values, " ")
			if !ok {
				got = "?"
			}
			if got != want[i] {
				t.Errorf("%s: %q, want %q", text, got, want[i])
			}
		}
	}
}

// FuzzRead compares paths with the decoders on arbitrary bytes.
func FuzzRead(f *testing.F) {
	typ := reflect.TypeFor[corev1.Pod]()
	var compiled []*Path
	for _, text := range []string{"spec.nodeName", "metadata.generation", "spec.containers[*].image", `metadata.labels["a"]`, "spec.volumes[*].configMap.name", "spec.priority", "spec.hostNetwork"} {
		p, err := Compile(typ, text)
		if err != nil {
			f.Fatal(err)
		}
		compiled = append(compiled, p)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		pod := &corev1.Pod{}
		fill(r, reflect.ValueOf(pod).Elem(), 6)
		raw, err := pod.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(true, raw)
		f.Add(false, text)
	}
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := wire.JSON
		if protobuf {
			format = wire.Protobuf
		}
		differential(t, typ, compiled, format, raw, false)
	})
}
