package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestContents(t *testing.T) {
	c, err := newCodec()
	must(t, err)
	defer c.close()
	r := rand.New(rand.NewPCG(1, 1))
	long := []byte(strings.Repeat(`{"name":"web","ready":true},`, 300))
	random := make([]byte, 2000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	var words []byte // repetitions too short for a delta
	for range 500 {
		words = append(append(words, "words"...), byte(r.Uint32()))
	}
	for _, tc := range []struct {
		why         string
		plain, base []byte
		form        byte
		max         int
	}{
		{"a short state", []byte("{}"), nil, formPlain, 7},
		{"a state", long, nil, formS2, 500},
		{"an incompressible state", random, nil, formPlain, 2005},
		{"a delta", append(bytes.Clone(long), '1'), long, formDelta, 20},
		{"a long delta", append(bytes.Clone(long), words...), long, formDeltaZ, 2900},
		{"an incompressible delta", append(bytes.Clone(long), random...), long, formDelta, 2030},
	} {
		content := c.state(tc.plain)
		if tc.base != nil {
			content = c.diff(tc.plain, tc.base)
		}
		if content[0] != tc.form || len(content) > tc.max {
			t.Errorf("%s: %d bytes of form %d, want %d of form %d", tc.why, len(content), content[0], tc.max, tc.form)
		}
		for _, content := range [][]byte{content, c.whole(tc.plain)} {
			got, err := c.open(content, tc.base)
			if err != nil || !bytes.Equal(got, tc.plain) || !matches(content, tc.plain) {
				t.Errorf("%s: form %d: %d bytes came back of %d, %v", tc.why, content[0], len(got), len(tc.plain), err)
			}
		}
		if isWhole(content) != (tc.base == nil) {
			t.Errorf("%s: is whole: %v", tc.why, isWhole(content))
		}
		if _, err := c.open(content, random[:50]); tc.base != nil && err == nil {
			t.Errorf("%s: is read with another base", tc.why)
		}
	}
	if _, err := c.open(lost(), nil); !errors.Is(err, errLost) || !isWhole(lost()) {
		t.Errorf("what is lost: %v", err)
	}
}

// FuzzContent checks that no content causes a panic, takes too much memory, or is served with a wrong checksum.
func FuzzContent(f *testing.F) {
	c, err := newCodec()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.state([]byte(strings.Repeat("ab", 50))), []byte{})
	f.Add(c.whole([]byte(strings.Repeat("ab", 50))), []byte{})
	f.Add(c.diff([]byte("a new text, this is"), []byte("a text, this is")), []byte("a text, this is"))
	f.Fuzz(func(t *testing.T, content, base []byte) {
		got, err := c.open(content, base)
		if err == nil && !matches(content, got) {
			t.Errorf("%q is served as %q", content, got)
		}
	})
}
