package jsonmap

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chain decodes versions of an object, each from the one before, and compares each with its own decoding, also after the
// metadata of others was modified.
func chain(t *testing.T, raws ...[]byte) {
	t.Helper()
	var all []*Version
	for i, raw := range raws {
		want, _, err := DecodeObject(raw)
		var v *Version
		if i == 0 || all[i-1] == nil {
			v = DecodeVersion(raw)
		} else {
			v = all[i-1].Next(raw)
		}
		all = append(all, v)
		if v == nil {
			if d := (decoder{raw: raw, spare: true}); err == nil {
				if _, ok := d.whole(); ok {
					t.Fatalf("version %d, %.300q, is not decoded", i, raw)
				}
			}
			continue
		}
		if d := cmp.Diff(plainly(want), plainly(v.Object())); d != "" {
			t.Fatalf("version %d, %.500q (-want +got):\n%s", i, raw, d)
		}
		checkParts(t, v)
		if m, ok := v.Object()["metadata"].(map[string]any); ok {
			delete(m, "managedFields")
		}
	}
}

// checkParts compares the parts of a version with its text.
func checkParts(t *testing.T, v *Version) {
	t.Helper()
	last := -1
	for _, p := range v.parts {
		if p.from <= last {
			t.Fatalf("a part at %d comes after one at %d: %.500q", p.from, last, v.raw)
		}
		last = p.from
		want, err := Decode(slices.Concat([]byte(`{"x":`), v.raw[p.from:p.to], []byte("}")))
		if err != nil {
			t.Fatalf("the part from %d to %d of %.500q: %v", p.from, p.to, v.raw, err)
		}
		if d := cmp.Diff(want["x"], plainly(p.value)); d != "" {
			t.Fatalf("the part from %d to %d of %.500q (-want +got):\n%s", p.from, p.to, v.raw, d)
		}
	}
}

// plainly returns a copy of a value with its texts decoded.
func plainly(v any) any {
	switch v := v.(type) {
	case json.RawMessage:
		if m, err := Decode(v); err == nil {
			return plainly(m)
		}
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, v := range v {
			m[name] = plainly(v)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainly(v[i])
		}
		return list
	}
	return v
}

// versionsOf returns versions of an object that changes in random places.
func versionsOf(t *testing.T, r *rand.Rand) (raws [][]byte) {
	t.Helper()
	o, fields := value(r, 5), value(r, 3)
	for i := range 6 {
		raw, err := json.Marshal(map[string]any{
			"a": o, "b": map[string]any{"c": o},
			"metadata": map[string]any{"resourceVersion": i / 2, "managedFields": []any{
				map[string]any{"fieldsV1": map[string]any{"f:a": fields}, "manager": "m"}, map[string]any{"fieldsV1": map[string]any{}, "time": i},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
		if i%2 == 1 {
			o, fields = edited(r, o), edited(r, fields)
		}
	}
	return raws
}

func TestVersions(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	for range 300 {
		chain(t, versionsOf(t, r)...)
	}
}

func TestVersion(t *testing.T) {
	for _, tc := range []struct {
		why  string
		raws []string
	}{
		{"unchanged metadata", []string{`{"metadata":{"managedFields":[{"manager":"m"}]},"a":1}`, `{"metadata":{"managedFields":[{"manager":"m"}]},"a":2}`}},
		{"another field with the same text and position", []string{`{"metadata":{"managedFields":[{}]}}`, `{"metadatb":{"managedFields":[{}]}}`, `{"metadata":{"managedFields":[{}]}}`}},
		{"a shared part is shared again", []string{`{"a":{"b":[{"c":1}]},"d":1}`, `{"a":{"b":[{"c":1}]},"d":22}`, `{"a":{"b":[{"c":1}],"e":[]},"d":22}`}},
		{"a version for the general decoder", []string{`{"a":[1]}`, `{"a":[1.5]}`, `{"a":[1]}`}},
		{"white space", []string{`{"a":{"b":[1]}}`, `{ "a" : {"b":[1]} } `, ` {"a":{"b":[1]}}`}},
	} {
		t.Log(tc.why)
		var raws [][]byte
		for _, raw := range tc.raws {
			raws = append(raws, []byte(raw))
		}
		chain(t, raws...)
	}
	v := DecodeVersion([]byte(`{"metadata":{"a":{}},"spec":{"a":1},"status":{"b":1}}`))
	next := v.Next([]byte(`{"metadata":{"a":{}},"spec":{"a":1},"status":{"b":2}}`))
	if !one(v.Object()["spec"], next.Object()["spec"]) || one(v.Object()["status"], next.Object()["status"]) || one(v.Object()["metadata"], next.Object()["metadata"]) {
		t.Error("want unchanged parts, except metadata, to be shared, and no others")
	}
	if next.Shared() != len(`{"a":1}`)+len(`{}`) {
		t.Errorf("%d bytes are shared", next.Shared())
	}
}

func FuzzVersions(f *testing.F) {
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]},"a":{"b":[1]}}`), []byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]},"a":{"b":[2]}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) { chain(t, a, b, a) })
}
