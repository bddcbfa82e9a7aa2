package openapi

import (
	"bytes"
	"testing"

	"github.com/tattler-dev/tattler/diff"
)

// TestMarshal checks that a stored schema equals the document's, without the document.
func TestMarshal(t *testing.T) {
	for path := range files {
		body, err := fromFiles(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := parse(body)
		if err != nil {
			t.Fatal(err)
		}
		marshalAll(t, doc)
	}
}

func marshalAll(t *testing.T, doc *document) {
	t.Helper()
	for k := range doc.kinds {
		s := doc.kind(k.Group, k.Version, k.Kind)
		b, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Unmarshal(b)
		if err != nil {
			t.Fatalf("%v: %v", k, err)
		}
		again, err := Marshal(back)
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("%v: written again: %v\n%s\n%s", k, err, b, again)
		}
		same(t, k.Kind, s, back, s.(schema).node, 6)
	}
}

func same(t *testing.T, path string, a, b diff.Schema, n *node, depth int) {
	t.Helper()
	if (a == nil) != (b == nil) {
		t.Errorf("%s: %v, stored %v", path, a, b)
	}
	if a == nil || b == nil || depth == 0 {
		return
	}
	at, ak := a.List()
	bt, bk := b.List()
	if at != bt || len(ak) != len(bk) {
		t.Errorf("%s: list %v %v, stored %v %v", path, at, ak, bt, bk)
	}
	if e := a.Elem(); e != nil {
		same(t, path+"[]", e, b.Elem(), e.(schema).node, depth-1)
	}
	for name := range n.Properties {
		same(t, path+"."+name, a.Field(name), b.Field(name), n.Properties[name], depth-1)
	}
}

func TestUnmarshalDamage(t *testing.T) {
	for _, in := range []string{"", "null", "{}", `{"kind":{},"schemas":{"a":null}}`, `[1]`} {
		if s, err := Unmarshal([]byte(in)); err == nil {
			t.Errorf("%q: %v", in, s)
		}
	}
	if _, err := Marshal(nil); err == nil {
		t.Error("nothing was marshalled")
	}
}
