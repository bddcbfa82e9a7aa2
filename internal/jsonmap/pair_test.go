package jsonmap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samePair compares DecodePair with decoding each version.
func samePair(t *testing.T, before, after []byte) (b, a map[string]any) {
	t.Helper()
	wantB, errB := Decode(before)
	wantA, errA := Decode(after)
	b, a, err := DecodePair(before, after)
	if (err != nil) != (errA != nil || errB != nil) {
		t.Fatalf("%.200q and %.200q: %v, want %v, %v", before, after, err, errB, errA)
	}
	if err != nil {
		return nil, nil
	}
	// In turn: inFull modifies parts shared by both.
	if d := cmp.Diff(wantB, inFull(t, b)); d != "" {
		t.Fatalf("%.500q before %.500q (-want +got):\n%s", before, after, d)
	}
	if d := cmp.Diff(wantA, inFull(t, a)); d != "" {
		t.Fatalf("%.500q after %.500q (-want +got):\n%s", after, before, d)
	}
	sameChanged(t, before, after, wantB, wantA)
	return b, a
}

// sameChanged checks that DecodeChanged leaves out equal fields only.
func sameChanged(t *testing.T, before, after []byte, wantB, wantA map[string]any) {
	t.Helper()
	b, a, err := DecodeChanged(before, after)
	if err != nil {
		t.Fatalf("%.200q and %.200q: %v", before, after, err)
	}
	b, a = inFull(t, b), inFull(t, a)
	for name, v := range wantA {
		_, inA := a[name]
		_, inB := b[name]
		if old, there := wantB[name]; !inA && !inB && there && cmp.Equal(v, old) {
			if a == nil || b == nil {
				t.Fatalf("%.500q and %.500q: an object is missing", before, after)
			}
			a[name], b[name] = v, old
		}
	}
	if d := cmp.Diff(wantB, b); d != "" {
		t.Fatalf("DecodeChanged of %.500q before %.500q (-want +got):\n%s", before, after, d)
	}
	if d := cmp.Diff(wantA, a); d != "" {
		t.Fatalf("DecodeChanged of %.500q after %.500q (-want +got):\n%s", after, before, d)
	}
}

func TestChanged(t *testing.T) {
	for _, tc := range []struct{ why, before, after, wantB, wantA string }{
		{"nothing", `{"a":{"b":1},"c":2}`, `{"a":{"b":1},"c":2}`, `{}`, `{}`},
		{"metadata is never left out", `{"metadata":{"b":1},"c":2}`, `{"metadata":{"b":1},"c":2}`, `{"metadata":{"b":1}}`, `{"metadata":{"b":1}}`},
		{"a field, in another order, with white space", `{"a":{"b":1},"c":2,"d":"x"}`, `{ "d" : "x" , "c":3, "a" : {"b":1}}`, `{"c":2}`, `{"c":3}`},
		{"one field added, one removed", `{"a":[],"b":1}`, `{"a":[],"c":1}`, `{"b":1}`, `{"c":1}`},
		{"null is not absence", `{"a":null}`, `{}`, `{"a":null}`, `{}`},
		{"a repeated field", `{"a":1,"a":2,"b":1}`, `{"a":1,"a":2,"b":1}`, `{"a":2,"b":1}`, `{"a":2,"b":1}`},
		{"a field repeated in one version", `{"a":2,"b":1}`, `{"a":2,"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":1}`},
		{"one version needs the general decoder", `{"a":{"b":1},"c":1.5}`, `{"a":{"b":1},"c":2}`, `{"c":1.5}`, `{"c":2}`},
		{"fields below the root are not left out", `{"a":{"b":[1],"c":1}}`, `{"a":{"b":[1],"c":2}}`, `{"a":{"b":[1],"c":1}}`, `{"a":{"b":[1],"c":2}}`},
	} {
		b, a, err := DecodeChanged([]byte(tc.before), []byte(tc.after))
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		for got, want := range map[*map[string]any]string{&b: tc.wantB, &a: tc.wantA} {
			text, err := Encode(*got)
			if err != nil || string(text) != want {
				t.Errorf("%s: %s, want %s (%v)", tc.why, text, want, err)
			}
		}
		samePair(t, []byte(tc.before), []byte(tc.after))
	}
	if b, a, err := DecodeChanged(nil, []byte(`{"a":1}`)); b != nil || len(a) != 1 || err != nil {
		t.Errorf("only after: %v, %v, %v", b, a, err)
	}
}

func TestPair(t *testing.T) {
	for _, x := range seeds {
		for _, y := range seeds {
			samePair(t, []byte(x), []byte(y))
		}
	}
	for _, tc := range []struct {
		why, before, after string
		shared             []string // fields that share one value
		apart              []string
	}{
		{"nothing has changed", `{"a":{"b":1},"c":[1]}`, `{"a":{"b":1},"c":[1]}`, []string{"a", "c"}, nil},
		{"one in the middle, of the same length", `{"a":{"b":1},"c":[1],"d":{}}`, `{"a":{"b":1},"c":[2],"d":{}}`, []string{"a", "d"}, []string{"c"}},
		{"a longer value: the rest is found from the end", `{"a":{"b":1},"c":[1],"d":{}}`, `{"a":{"b":1},"c":[234],"d":{}}`, []string{"a", "d"}, []string{"c"}},
		{"a longer and a shorter value: found from the last match", `{"a":{"x":1},"b":[1],"c":{"y":1},"d":{"z":1},"e":[5],"f":[]}`,
			`{"a":{"x":1},"b":[12],"c":{"y":1},"d":{"z":1},"e":[],"f":[]}`, []string{"a", "c", "d", "f"}, []string{"b", "e"}},
		{"the same text one level down is another depth", `{"a":{"b":{"c":1}}}`, `{"a":{"c":1}}`, nil, []string{"a"}},
		{"managed fields, and a field of the same form elsewhere", `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}`, `{"metadatb":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}`, nil, nil},
		{"the reverse", `{"metadatb":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}`, `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}`, nil, nil},
		{"text that begins the same", `{"a":[1,2]}`, `{"a":[1,23]}`, nil, []string{"a"}},
	} {
		b, a := samePair(t, []byte(tc.before), []byte(tc.after))
		for _, f := range tc.shared {
			if !one(b[f], a[f]) {
				t.Errorf("%s: %s is two values", tc.why, f)
			}
		}
		for _, f := range tc.apart {
			if one(b[f], a[f]) {
				t.Errorf("%s: %s is one value", tc.why, f)
			}
		}
	}
	raw := []byte(`{"metadata":{"name":"x","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}},{"manager":"n"}]}}`)
	b, a, err := DecodePair(raw, bytes.Replace(raw, []byte(`"n"`), []byte(`"o"`), 1))
	if err != nil || !one(entry(b), entry(a)) {
		t.Errorf("an entry of managed fields that is the same is two values: %v, %v, %v", b, a, err)
	}
	if b, a, err := DecodePair(nil, []byte(`{"a":[]}`)); b != nil || a == nil || err != nil {
		t.Errorf("only after: %v, %v, %v", b, a, err)
	}
	if b, a, err := DecodePair([]byte(`{"a":[]}`), nil); b == nil || a != nil || err != nil {
		t.Errorf("only before: %v, %v, %v", b, a, err)
	}
}

// entry returns the first entry of an object's managed fields.
func entry(obj map[string]any) any {
	meta, _ := obj["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	return append(entries, nil)[0]
}

// one reports whether two values are the same in memory.
func one(x, y any) bool {
	return reflect.ValueOf(x).UnsafePointer() == reflect.ValueOf(y).UnsafePointer()
}

// TestPairOfRandom changes random objects in random places, compact and indented.
func TestPairOfRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range 500 {
		o := value(r, 5)
		before := text(t, o, r)
		o = edited(r, o)
		samePair(t, before, text(t, o, r))
	}
}

func text(t *testing.T, o any, r *rand.Rand) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"a": o, "b": map[string]any{"c": o}})
	if r.IntN(4) == 0 {
		b, err = json.MarshalIndent(map[string]any{"a": o}, "", " ")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// value returns a random JSON value.
func value(r *rand.Rand, depth int) any {
	n := r.IntN(8)
	if depth == 0 {
		n = r.IntN(4)
	}
	switch n {
	case 0:
		return strings.Repeat("é\"x", r.IntN(12))
	case 1:
		return r.IntN(1000)
	case 2:
		return r.IntN(2) == 0
	case 3:
		return nil
	case 4, 5:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = value(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(5) {
		m[fmt.Sprint("key", r.IntN(20))] = value(r, depth-1)
	}
	return m
}

// edited changes some parts of a value.
func edited(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			switch r.IntN(12) {
			case 0:
				delete(v, k)
			case 1:
				v[k] = value(r, 2)
			default:
				v[k] = edited(r, v[k])
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = edited(r, v[i])
		}
		if len(v) > 0 && r.IntN(8) == 0 {
			return v[1:]
		}
		return v
	}
	if r.IntN(8) == 0 {
		return value(r, 0)
	}
	return v
}

func FuzzDecodePair(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw), []byte(raw))
		f.Add([]byte(raw), bytes.Replace([]byte(raw), []byte("1"), []byte("23"), 1))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) { samePair(t, before, after) })
}

// BenchmarkDecodePair decodes two versions of an object with one different value, together and separately.
func BenchmarkDecodePair(b *testing.B) {
	after := large
	before := bytes.Replace(after, []byte(`"app:29"`), []byte(`"app:029"`), 1)
	for name, decode := range map[string]func() error{
		"pair": func() error { _, _, err := DecodePair(before, after); return err },
		"apart": func() error {
			_, err := Decode(before)
			if err == nil {
				_, err = Decode(after)
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(before) + len(after)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// large is an object of about 8 KB.
var large = func() []byte {
	var b bytes.Buffer
	b.WriteString(`{"kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[`)
	for i := range 30 {
		fmt.Fprintf(&b, `{"name":"app-%d","image":"app:%d","env":[{"name":"A","value":"b"},{"name":"C","value":"d"}],"ports":[{"containerPort":80,"protocol":"TCP"}],"terminationMessagePath":"/dev/termination-log"},`, i, i)
	}
	b.WriteString(`{}]}}`)
	return b.Bytes()
}()
