package jsonmap

import (
	"bytes"
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

var seeds = []string{
	`{}`, ` { "a" : [ ] } `, `null`, `{"a":null,"b":true,"c":false,"d":"e"}`,
	`{"kind":"Pod","metadata":{"name":"web","uid":"1","generation":3,"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","ports":[{"port":80}]},{"name":"a"}]}}`,
	`{"a":1,"b":-1,"c":0,"d":-0,"e":1.5,"f":1e3,"g":123456789012345678,"h":9223372036854775807,"i":9223372036854775808,"j":-9223372036854775808,"k":01}`,
	`{"a":"\n\t\"\\\/\b\f\r","b":"\u00e9\u0041","c":"\ud83d\ude00","d":"\ud83d","e":"é","f":"` + "\xff" + `","g":"\x","h":"\u12"}`,
	`{"a":1,"a":{"b":2},"a":{"c":3}}`, `{"a":1}x`, `{"a":1`, `{"a"}`, `{a:1}`, `[1]`, `"a"`, `{"a":[1,]}`, `{"a":1,}`, `{"a":tru}`, `{"a":-}`, `{"a":1 2}`, "{\"a\":\"\n\"}", `{"a":12}`, `{"":""}`, ``,
	strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat(`}`, 10_001),
	`{"a":` + strings.Repeat(`[`, 10_001) + strings.Repeat(`]`, 10_001) + `}`,
}

// same compares both decoders.
func same(t *testing.T, raw []byte) {
	t.Helper()
	var want map[string]any
	wantErr := json.Unmarshal(raw, &want)
	given := bytes.Clone(raw)
	got, err := Decode(raw)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%.200q: %v, want %v", raw, err, wantErr)
	}
	if d := cmp.Diff(want, got); wantErr == nil && d != "" {
		t.Fatalf("%.200q (-want +got):\n%s", raw, d)
	}
	if !bytes.Equal(raw, given) {
		t.Fatalf("%.200q was changed to %.200q", given, raw)
	}
}

func TestDecode(t *testing.T) {
	for _, raw := range seeds {
		same(t, []byte(raw))
		for cut := range min(len(raw), 200) { // truncated anywhere
			same(t, []byte(raw[:cut]))
		}
	}
}

// TestOwn: the result does not share the input's bytes.
func TestOwn(t *testing.T) {
	raw := []byte(`{"key":"a value that is longer than what is interned, surely","short":"text"}`)
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = 'x'
	}
	if got["short"] != "text" || got["key"] != "a value that is longer than what is interned, surely" {
		t.Errorf("%v", got)
	}
}

// sameObject compares DecodeObject with Decode.
func sameObject(t *testing.T, raw []byte) {
	t.Helper()
	want, wantErr := Decode(raw)
	got, _, err := DecodeObject(raw)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%.200q: %v, want %v", raw, err, wantErr)
	}
	if err != nil {
		return
	}
	if d := cmp.Diff(want, inFull(t, got)); d != "" {
		t.Fatalf("%.200q (-want +got):\n%s", raw, d)
	}
}

// inFull decodes, in place, the fields that DecodeObject left as text.
func inFull(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	meta, _ := m["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if text, ok := entry["fieldsV1"].(stdjson.RawMessage); ok {
			fields, err := Decode(text)
			if err != nil {
				t.Fatalf("left as text: %s: %v", text, err)
			}
			entry["fieldsV1"] = fields
		}
	}
	return m
}

// TestObject checks which fields are left as text, and whether the map is reported as complete.
func TestObject(t *testing.T) {
	for _, tc := range []struct {
		why, raw string
		all      bool
		text     string // fields left as text
	}{
		{"the usual object", `{"a":{"b":1},"c":[{"b":1},{"b":2}]}`, true, ""},
		{"a repeated key", `{"a":1,"a":2}`, false, ""},
		{"with the same value", `{"a":1,"a":1}`, false, ""},
		{"with an escape", `{"a":1,"\u0061":2}`, false, ""},
		{"deep inside", `{"a":[{"b":{"c":1,"d":2,"c":3}}],"e":{"f":1}}`, false, ""},
		{"read by the general decoder", `{"a":1.5}`, false, ""},
		{"null", `null`, false, ""},
		{"managed fields", `{"metadata":{"managedFields":[{"manager":"m","fieldsV1": {"f:a":{"k:{\"n\":\"}\\\\\"}":{}}} ,"time":"t"}]}}`, true, `{"f:a":{"k:{\"n\":\"}\\\\\"}":{}}}`},
		{"managed fields that are not objects", `{"metadata":{"managedFields":[{"fieldsV1":null},{"fieldsV1":[{}]}]}}`, true, ""},
		{"fields of that name elsewhere", `{"metadata":{"fieldsV1":{},"a":[{"fieldsV1":{}}],"managedFields":{"a":{"fieldsV1":{}}}},"managedFields":[[{"fieldsV1":{}}]],"spec":{"managedFields":[{"fieldsV1":{}}]}}`, true, ""},
		{"an array where the metadata should be", `{"metadata":[[[{"fieldsV1":{}}]]]}`, true, ""},
		{"deeper", `{"metadata":{"managedFields":[[{"fieldsV1":{}}],{"a":{"fieldsV1":{}}}]}}`, true, ""},
		{"after repeated metadata", `{"metadata":{"managedFields":[]},"metadata":[[[{"fieldsV1":{}}]]]}`, false, ""},
	} {
		m, all, err := DecodeObject([]byte(tc.raw))
		if err != nil || all != tc.all {
			t.Errorf("%s: %v, %v", tc.why, all, err)
		}
		if got := textOf(m); got != tc.text {
			t.Errorf("%s: left as text: %s", tc.why, got)
		}
		sameObject(t, []byte(tc.raw))
	}
}

// textOf returns the raw text in a value.
func textOf(v any) (text string) {
	switch v := v.(type) {
	case stdjson.RawMessage:
		return string(v)
	case map[string]any:
		for _, child := range v {
			text += textOf(child)
		}
	case []any:
		for _, child := range v {
			text += textOf(child)
		}
	}
	return text
}

func TestMembers(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"values of every form", ` { "a" : {"b":[1,{"c":"}"}]} , "d":[ ] ,"e":"x\\\"," ,"f":-1.5e3,"g":true,"h":null}`, `a={"b":[1,{"c":"}"}]} d=[ ] e="x\\\"," f=-1.5e3 g=true h=null`},
		{"names with escapes", `{"k:{\"n\":\"x\"}":{},"\u0061\ud83d\ude00":1}`, `k:{"n":"x"}={} a😀=1`},
		{"an empty object", `{}`, ``},
		{"not an object", `[{"a":1}]`, ``},
		{"truncated", `{"a":1,"b":{"c":2`, `a=1`},
		{"a truncated name", `{"a":1,"b`, `a=1`},
		{"no value", `{"a":1,"b"}`, `a=1`},
		{"empty", ``, ``},
	} {
		var got []string
		for name, text := range Members([]byte(tc.text)) {
			got = append(got, name+"="+string(text))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s", tc.why, got)
		}
	}
	for name := range Members([]byte(`{"a":1,"b":2}`)) {
		if name != "a" {
			t.Errorf("%s after break", name)
		}
		break
	}
}

// FuzzMembers compares Members with the general decoder.
func FuzzMembers(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]stdjson.RawMessage{}
		for name, text := range Members(raw) {
			got[name] = text
		}
		var want map[string]stdjson.RawMessage
		if stdjson.Unmarshal(raw, &want) != nil {
			for name, text := range got { // of a broken text, whole values only
				if !stdjson.Valid(text) {
					t.Fatalf("%q: the value of %q is %q", raw, name, text)
				}
			}
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q has %d members, want %d", raw, len(got), len(want))
		}
		for name, text := range want {
			if string(bytes.TrimSpace(got[name])) != string(text) {
				t.Errorf("%q: %q is %q, want %q", raw, name, got[name], text)
			}
		}
	})
}

func FuzzDecodeObject(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Add([]byte(`{"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:a":{"k:{\"n\":\"x\"}":{}}}}]}}`))
	f.Fuzz(sameObject)
}

func FuzzDecode(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Fuzz(same)
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[` +
		strings.Repeat(`{"name":"app","image":"registry.example.com/app:1","env":[{"name":"A","value":"b"},{"name":"C","value":"d"}],"ports":[{"containerPort":80,"protocol":"TCP"}],"terminationMessagePath":"/dev/termination-log"},`, 30) + `{}]}}`)
	for name, decode := range map[string]func() error{
		"this":  func() error { _, err := Decode(raw); return err },
		"other": func() error { var m map[string]any; return json.Unmarshal(raw, &m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
