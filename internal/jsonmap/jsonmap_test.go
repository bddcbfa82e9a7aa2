package jsonmap

import (
	"bytes"
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

// same decodes with both decoders and compares.
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
		for cut := range min(len(raw), 200) { // wherever it ends
			same(t, []byte(raw[:cut]))
		}
	}
}

// TestOwn: the result does not share the bytes that it was made of.
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
