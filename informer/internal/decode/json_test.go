package decode

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// jsonSeeds must be decoded as util/json does. Many are left to it.
var jsonSeeds = []string{
	`{}`, ` { "a" : [ ] } `, "\t{\r\n}\n", `null`, `true`, `[1]`, `"a"`, ``, ` `, "\x00", "{}\x00", `{}{}`, `{}x`,
	`{"a":null,"b":true,"c":false,"d":"e","":""}`,
	`{"a":[{},[],{"b":{}},[[]],[{}]],"c":{"d":{"e":[1,2,3]}}}`,
	`{"a":1,"b":-1,"c":0,"d":-0,"e":1.5,"f":1e3,"g":123456789012345678,"h":9223372036854775807,"i":9223372036854775808,"j":-9223372036854775808,"k":255,"l":256}`,
	`{"a":-0.0,"b":0e0,"c":1E+2,"d":1e-2,"e":0.1,"f":1e400}`, `{"a":1e400}`, `{"a":12345678901234567890123}`,
	`{"a":01}`, `{"a":-}`, `{"a":+1}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":-a}`, `{"a":1_0}`, `{"a":0x1}`,
	`{"a":"\n\t\"\\\/\b\f\r","b":"\u00e9\u0041\u003C\u2028","c":"\ud83d\ude00","d":"\ud83d","e":"é","f":"` + "\xff" + `","\u0061":1}`,
	`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\`, `{"a":"\"}`, `{"a":"\'"}`, "{\"a\":\"\n\"}", "{\"a\":\"\u007f\u0080\"}", `{"\n":"é\n"}`, "{\"\xff\":1}", "{\"a\":\"\xc3\\n\xa9\"}",
	`{"a":1,"a":{"b":2},"a":{"c":3}}`, `{"a":{"b":1,"b":2}}`, `{"a":{"b":1},"a":{"c":1}}`, `{"a":1,"\u0061":2}`,
	`{"a":1`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":[1,]}`, `{"a":1,}`, `{,}`, `{"a":[,]}`, `{"a":tru}`, `{"a":truee}`, `{"a":nul`, `{"a":1 2}`, `{"a" 1}`, `{"a":1]`, `{"a":[1}}`, `{"a":[1`, `{"a":"`, `[`, `]`, `}`, `{"a":{}`, `{"a":[]]}`,
	`{"long":"` + strings.Repeat("more than eight bytes ", 20) + `"}`,
	strings.Repeat(`{"a":`, 99) + `1` + strings.Repeat(`}`, 99),
	strings.Repeat(`{"a":`, 101) + `[]` + strings.Repeat(`}`, 101),
	strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat(`}`, 10_001),
	`{"a":` + strings.Repeat(`[`, 10_001) + strings.Repeat(`]`, 10_001) + `}`,
	`{"kind":"Pod","metadata":{"name":"web","uid":"1","generation":3,"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","ports":[{"port":80}]},{"name":"a","ports":[{"port":80}]}]}}`,
}

// sameJSON decodes with util/json and with JSON, and compares the results: without a table, and with one, repeatedly,
// until everything is shared.
func sameJSON(t *testing.T, table *Table, raw []byte) {
	t.Helper()
	var want map[string]any
	wantErr := utiljson.Unmarshal(raw, &want)
	for _, table := range []*Table{nil, table, table, table} {
		given := bytes.Clone(raw)
		got, _, err := JSON(table, given)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%.200q: %v, want %v", raw, err, wantErr)
		}
		if !bytes.Equal(raw, given) {
			t.Fatalf("%.200q was changed to %.200q", raw, given)
		}
		clear(given) // the object must not refer to it
		if wantErr == nil && !reflect.DeepEqual(want, got) {
			t.Fatalf("%.200q:\n%v, want\n%v", raw, got, want)
		}
	}
}

// spareCapacity returns an array to which an append would write in place.
func spareCapacity(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if room := spareCapacity(x); room != "" {
				return room
			}
		}
	case []any:
		if cap(v) > len(v) {
			return fmt.Sprint(v)
		}
		for _, x := range v {
			if room := spareCapacity(x); room != "" {
				return room
			}
		}
	}
	return ""
}

func TestJSON(t *testing.T) {
	table := NewTable(1 << 20)
	for _, raw := range jsonSeeds {
		sameJSON(t, table, []byte(raw))
		for cut := range min(len(raw), 200) { // cut at every byte
			sameJSON(t, table, []byte(raw[:cut]))
		}
	}
}

// TestJSONQuick: JSON as servers write it is not left to util/json.
func TestJSONQuick(t *testing.T) {
	table := NewTable(1 << 20)
	for _, raw := range append(jsonPods(3, 1, 1), []byte(`{"a":1.5e3,"b":-1,"c":9223372036854775808,"d":"\u003cé\"\\","e":[null,true,false,{}]}`)) {
		for _, table := range []*Table{nil, table} {
			m, r, ok := quickJSON(table, raw)
			if !ok || r.Size < 400 {
				t.Errorf("%s: %v, %v", raw, r, ok)
			}
			if list := spareCapacity(m); list != "" {
				t.Errorf("an append would write into %s", list)
			}
		}
	}
	for _, raw := range []string{`{"a":1,"a":1}`, `{"a":"\ud83d\ude00"}`, "{\"a\":\"\xff\"}", `null`, `{"a":1`} {
		if _, _, ok := quickJSON(table, []byte(raw)); ok {
			t.Errorf("%s is not left to util/json", raw)
		}
	}
}

// FuzzJSON compares JSON with util/json on any bytes, with a table that all inputs share: bad inputs must not affect
// valid objects.
func FuzzJSON(f *testing.F) {
	for _, raw := range jsonSeeds[:len(jsonSeeds)-3] {
		f.Add([]byte(raw))
	}
	valid := jsonPods(8, 2, 5)
	want := make([]map[string]any, len(valid))
	for i, raw := range valid {
		f.Add(raw)
		if err := utiljson.Unmarshal(raw, &want[i]); err != nil {
			f.Fatal(err)
		}
	}
	table := NewTable(1 << 16)
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameJSON(t, table, raw)
		n := len(raw) % len(valid)
		if got, _, err := JSON(table, valid[n]); err != nil || !reflect.DeepEqual(got, want[n]) {
			t.Fatalf("a valid pod: %v, %v", got, err)
		}
	})
}
