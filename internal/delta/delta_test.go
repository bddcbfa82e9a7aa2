package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestDifferences(t *testing.T) {
	base := noise(1, 20_000)
	big := noise(2, 3<<20)
	splice := func(b []byte, at, cut int, in string) []byte {
		return append(append(bytes.Clone(b[:at]), in...), b[at+cut:]...)
	}
	for _, c := range []struct {
		why        string
		text, base []byte
		max        int
	}{
		{"the same", base, base, 1},
		{"nothing from nothing", nil, nil, 1},
		{"nothing from something", nil, base, 3},
		{"something from nothing", []byte("something"), nil, 11},
		{"less than the search looks at", []byte(`{"a":1}`), []byte(`{"a":2}`), 8},
		{"a value of the same length costs itself, two heads and a length", splice(base, 500, 5, "xxxxx"), base, 1 + 5 + 4},
		{"the last byte", splice(base, 19_999, 1, "x"), base, 1 + 2 + 4},
		{"the first byte", splice(base, 0, 1, "x"), base, 1 + 2},
		{"a field more", splice(base, 500, 0, "a field more"), base, 1 + 12 + 10},
		{"a field less", splice(base, 500, 80, ""), base, 2 + 10},
		{"a field elsewhere", append(bytes.Clone(base[9_000:9_100]), base...), base, 2 + 5 + 8},
		{"nothing in common costs little more than itself", noise(3, 5_000), base, 5_000 + 20},
		{"lengths around those that need another byte", splice(base, 63, 63, string(noise(4, 63))), base, 1 + 63 + 5},
		{"the same, one more", splice(base, 64, 64, string(noise(4, 64))), base, 1 + 64 + 6},
		{"beyond 64 KiB", splice(big, 2<<20, 3, "abc"), big, 1 + 3 + 7},
		{"a field moves beyond 64 KiB", append(bytes.Clone(big[2<<20:2<<20+500]), big...), big, 20},
		{"a text that the base begins with", base[:100], base, 3},
		{"a text that begins with the base", base, base[:100], 20_000 + 20},
	} {
		var e Encoder
		e.Append(nil, big[:30_000], big) // what was left in the table does not matter
		p := e.Append([]byte("kept"), c.text, c.base)
		if string(p[:4]) != "kept" {
			t.Fatalf("%s: the bytes before are %q", c.why, p[:4])
		}
		if len(p)-4 > c.max {
			t.Errorf("%s: %d bytes, want %d", c.why, len(p)-4, c.max)
		}
		got, err := Apply([]byte("kept"), p[4:], c.base)
		if err != nil || string(got[:4]) != "kept" || !bytes.Equal(got[4:], c.text) {
			t.Errorf("%s: %d bytes came back of %d, %v", c.why, len(got)-4, len(c.text), err)
		}
	}
}

func TestBrokenDifferences(t *testing.T) {
	base := []byte(strings.Repeat("0123456789", 10))
	longer := func(n int64, ops ...byte) []byte { return append(binary.AppendVarint(nil, n), ops...) }
	for why, p := range map[string][]byte{
		"no length":                        {},
		"a length that does not end":       {0x80},
		"a length below nothing":           longer(-101),
		"a length that no text has":        longer(1 << 40),
		"more than the base can give":      longer(1),
		"a literal that is not whole":      longer(-97, opLiteral<<6|2, 'a', 'b'),
		"more than it tells":               longer(-99, opLiteral<<6|1, 'a', 'b'),
		"a copy of more than it tells":     longer(-99, opSame<<6|1),
		"behind the base's end":            longer(50, opMove<<6|longLen, 0, 40*2, opSame<<6|longLen, 0),
		"before its start":                 longer(0, opMove<<6|3, 1),
		"a move that does not end":         longer(0, opMove<<6|3, 0x80),
		"a move that no base has":          longer(0, opMove<<6|3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a copy's length does not end":     longer(0, opSame<<6|longLen, 0x80),
		"a copy's length that no base has": longer(0, opSame<<6|longLen, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"an unknown operation":             longer(0, 3<<6),
	} {
		got, err := Apply([]byte("kept"), p, base)
		if !errors.Is(err, ErrBroken) || string(got) != "kept" {
			t.Errorf("%s: %q, %v", why, got, err)
		}
	}
	got, err := Apply(nil, longer(-95, opMove<<6|1, 6, opLiteral<<6, 'x'), base)
	if err != nil || string(got) != "34x67" {
		t.Errorf("a difference that is whole: %q, %v", got, err)
	}
}

func TestTooLongPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a text beyond MaxSize was taken")
		}
	}()
	new(Encoder).Append(nil, make([]byte, MaxSize+1), nil)
}

// FuzzDelta checks that every text comes back, whatever it is the difference from.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":[1,2,3]},"d":"2026-11-21T10:00:00Z"}`), []byte(`{"a":{"c":[1,3]},"d":"2026-11-21T10:05:00Z"}`))
	f.Add(bytes.Repeat([]byte("ab"), 300), bytes.Repeat([]byte("ba"), 300))
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, text, base []byte) {
		var e Encoder
		p := e.Append(nil, text, base)
		got, err := Apply(nil, p, base)
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%q came back as %q, %v", text, got, err)
		}
		if len(p) > len(text)+len(text)/4+16 {
			t.Errorf("%d bytes became %d", len(text), len(p))
		}
	})
}

// FuzzApply checks that no bytes panic, take more than they may, or harm what lies before.
func FuzzApply(f *testing.F) {
	f.Add([]byte{9, opMove<<6 | 1, 6, opLiteral << 6, 'x'}, []byte("0123456789"))
	f.Fuzz(func(t *testing.T, p, base []byte) {
		got, err := Apply([]byte("kept"), p, base)
		if string(got[:4]) != "kept" || err != nil && len(got) != 4 || len(got) > MaxSize+4 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
