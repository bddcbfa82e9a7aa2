package compact

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestPack(t *testing.T) {
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	for name, raw := range map[string][]byte{
		"an object":                  []byte(`{"metadata":{"name":"a"}}`),
		"nothing, which is not none": {},
		"what compresses well":       bytes.Repeat([]byte(`{"a":1}`), 10_000),
		"what does not":              large,
	} {
		var p Packer
		o := p.Pack(raw)
		want := bytes.Clone(raw)
		p.Pack(bytes.Repeat([]byte{0xff}, len(raw))) // the scratch space is not the object
		got, err := o.JSON()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes came back of %d, %v", name, len(got), len(raw), err)
		}
		if o.IsZero() {
			t.Errorf("%s is none", name)
		}
		if again := p.Pack(raw); !again.Identical(o) {
			t.Errorf("%s: packed twice, differs", name)
		}
	}
	if n := cap((&Packer{}).scratch); n != 0 {
		t.Errorf("a new packer has %d bytes", n)
	}
	if raw, err := (Object{}).JSON(); raw != nil || err != nil || !(Object{}).IsZero() {
		t.Errorf("the zero object: %q, %v", raw, err)
	}
	if _, err := (Object{b: []byte{0xff, 0xff}}).JSON(); err == nil {
		t.Error("broken bytes are unpacked")
	}
}
