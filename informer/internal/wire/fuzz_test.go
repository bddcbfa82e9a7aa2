package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// FuzzList checks that no input panics, that how the bytes arrive does not matter, and that what is
// cut out is JSON.
func FuzzList(f *testing.F) {
	for _, c := range listCases {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		items, meta, err := readList(JSON, strings.NewReader(in))
		slow, slowMeta, slowErr := readList(JSON, iotest.OneByteReader(strings.NewReader(in)))
		if diff := cmp.Diff(items, slow); diff != "" || meta != slowMeta || kindOf(err) != kindOf(slowErr) {
			t.Errorf("byte by byte: %v, %v; %s", err, slowErr, diff)
		}
		if err == nil && !json.Valid([]byte(in)) {
			t.Errorf("accepted a list that is no JSON")
		}
	})
}

// FuzzWatch is FuzzList for watches; it also checks that reading ends.
func FuzzWatch(f *testing.F) {
	f.Add(`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}` + "\n" + `{"type":"ERROR","object":{"code":410}}`)
	f.Add(`{"object":{"metadata":{"name":"\u00e4"}},"type":"MODIFIED"} x` + "\n{}")
	f.Add(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}`)
	f.Fuzz(func(t *testing.T, in string) {
		events, err := readWatch(JSON, strings.NewReader(in))
		slow, slowErr := readWatch(JSON, iotest.OneByteReader(strings.NewReader(in)))
		if diff := cmp.Diff(events, slow); diff != "" || kindOf(err) != kindOf(slowErr) {
			t.Errorf("byte by byte: %v, %v; %s", err, slowErr, diff)
		}
		if len(events) > len(in) {
			t.Errorf("%d events of %d bytes", len(events), len(in))
		}
	})
}

// FuzzMeta compares the shallow walk with encoding/json, which is more lenient: about the case of
// names and about fields that occur twice.
func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}}`))
	f.Add([]byte(`{"metadata":{"name":"\ud83d\ude00","labels":{"name":"x"}},"spec":[1,2.5e-3,{"a":null}]}`))
	f.Add([]byte(golden(f)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ReadMeta(JSON, raw)
		if err != nil {
			return
		}
		var o map[string]json.RawMessage
		if derr := json.NewDecoder(bytes.NewReader(raw)).Decode(&o); derr != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", derr)
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(o["metadata"], &fields) != nil {
			return
		}
		var name, rv string
		if json.Unmarshal(fields["name"], &name) == nil && name != strings.ToValidUTF8(m.Name, "\ufffd") && name != m.Name {
			if !strings.Contains(name, "\ufffd") {
				t.Errorf("name %q, encoding/json reads %q", m.Name, name)
			}
		}
		if json.Unmarshal(fields["resourceVersion"], &rv) == nil && rv != m.ResourceVersion && !strings.Contains(rv, "\ufffd") {
			t.Errorf("version %q, encoding/json reads %q", m.ResourceVersion, rv)
		}
	})
}
