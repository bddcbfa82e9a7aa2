package delta

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
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

// encode returns the delta of text from base.
func encode(text, base []byte, limit int) []byte {
	var x Index
	x.Build(noise(9, 1000)) // the next one reuses its memory
	x.Build(base)
	return Append(nil, text, base, &x, limit)
}

func TestDelta(t *testing.T) {
	base, big := noise(1, 20_000), noise(2, 3<<20)
	repeated, digits := strings.Repeat("abcdefgh-", 20), strings.Repeat("0123456789abcdef", 4)
	splice := func(b []byte, at, cut int, in string) []byte {
		return append(append(bytes.Clone(b[:at]), in...), b[at+cut:]...)
	}
	for _, c := range []struct {
		why        string
		text, base []byte
		max        int
	}{
		{"equal", base, base, 3},
		{"nothing from nothing", nil, nil, 1},
		{"nothing from something", nil, base, 1},
		{"something from nothing", []byte("something"), nil, 11},
		{"shorter than a hash", []byte(`{"a":1}`), []byte(`{"a":2}`), 8},
		{"a value of the same length costs itself, two heads and a length", splice(base, 500, 5, "xxxxx"), base, 3 + 5 + 4},
		{"the last byte", splice(base, 19_999, 1, "x"), base, 3 + 2 + 4},
		{"the first byte", splice(base, 0, 1, "x"), base, 3 + 2},
		{"a field more", splice(base, 500, 0, "a field more"), base, 3 + 12 + 10},
		{"a field less", splice(base, 500, 80, ""), base, 3 + 9},
		{"a field elsewhere", append(bytes.Clone(base[9_000:9_100]), base...), base, 20},
		{"digits take half", splice(base, 500, 64, digits), base, 3 + 32 + 6},
		{"an odd digit", splice(base, 500, 0, digits+"7"), base, 3 + 33 + 10},
		{"repetition within the text", append(bytes.Clone(base), repeated...), base, 3 + 9 + 8},
		{"repetition after 64 KiB", append(bytes.Clone(big), repeated...), big, 3 + 9 + 12},
		{"nothing in common costs little more than itself", noise(3, 5_000), base, 5_000 + 10},
		{"lengths around those that need another byte", splice(base, 30, 0, string(noise(4, 31))), base, 3 + 31 + 8},
		{"the same, two bytes", splice(base, 286, 0, string(noise(4, 287))), base, 3 + 287 + 10},
		{"beyond 64 KiB", splice(big, 2<<20, 3, "abc"), big, 4 + 3 + 6},
		{"a field moves beyond 64 KiB", append(bytes.Clone(big[2<<20:2<<20+500]), big...), big, 24},
		{"a field more, where the index is sparse", splice(big, 1<<20, 0, "a field more"), big, 4 + 12 + 200},
		{"a prefix of the base", base[:100], base, 1},
		{"the base and more", base, base[:100], 20_000 + 10},
	} {
		p := encode(c.text, c.base, math.MaxInt)
		if len(p) > c.max {
			t.Errorf("%s: %d bytes, want %d", c.why, len(p), c.max)
		}
		got, err := Apply([]byte("kept"), p, c.base, MaxSize)
		if err != nil || string(got[:4]) != "kept" || !bytes.Equal(got[4:], c.text) || Len(p) != len(c.text) {
			t.Errorf("%s: %d bytes came back of %d, %v", c.why, len(got)-4, len(c.text), err)
		}
		if got := encode(c.text, c.base, len(p)); !bytes.Equal(got, p) {
			t.Errorf("%s: refused at its own length", c.why)
		}
		if got := encode(c.text, c.base, len(p)-1); len(got) > 0 {
			t.Errorf("%s: %d bytes with a limit of %d", c.why, len(got), len(p)-1)
		}
		if _, err := Apply(nil, p, c.base, len(c.text)-1); len(c.text) > 0 && !errors.Is(err, ErrBroken) {
			t.Errorf("%s: a text above the limit: %v", c.why, err)
		}
	}
}

func TestBroken(t *testing.T) {
	base := []byte(strings.Repeat("0123456789", 10))
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	for why, p := range map[string][]byte{
		"no length":                          {},
		"a length that does not end":         {0x80},
		"a length above the limit":           {0xff, 0xff, 0x7f},
		"a huge length":                      huge,
		"longer than the base":               {101},
		"more literals than the length":      {1, opLiteral<<5 | 1, 'a', 'b'},
		"a truncated literal":                {3, opLiteral<<5 | 2, 'a', 'b'},
		"truncated digits":                   {6, opHex<<5 | 2, 0xab, 0xcd},
		"more digits than the length":        {3, opHex<<5 | 1, 0xab, 0xcd},
		"a copy of more than the length":     {1, opSame<<5 | 1},
		"an operation without its length":    {40, opSame<<5 | 30},
		"an operation's length does not end": {40, opSame<<5 | 31, 0x80},
		"an operation with a huge length":    append([]byte{40, opSame<<5 | 31}, huge...),
		"beyond the base's end":              {101, opSame<<5 | 30, 101 - 31},
		"before its start":                   {4, opMove<<5 | 3, 1},
		"a move that does not end":           {4, opMove<<5 | 3, 0x80},
		"a huge move":                        {4, opMove<<5 | 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"the rest is beyond the base's end":  {8, opMove << 5, 190},
		"back to before the text":            {4, opSame << 5, opAgain<<5 | 2, 2},
		"back by nothing":                    {4, opSame << 5, opAgain<<5 | 2, 0},
		"back by a huge distance":            append([]byte{4, opSame << 5, opAgain<<5 | 2}, huge...),
		"back by a distance that has no end": {4, opSame << 5, opAgain<<5 | 2, 0x80},
		"an unknown operation":               {1, 7 << 5},
	} {
		got, err := Apply([]byte("kept"), p, base, 1<<10)
		if !errors.Is(err, ErrBroken) || string(got) != "kept" {
			t.Errorf("%s: %q, %v", why, got, err)
		}
	}
	for want, p := range map[string][]byte{
		"34343": {5, opMove<<5 | 1, 6, opAgain<<5 | 2, 2},
		"34x67": {5, opMove<<5 | 1, 6, opLiteral << 5, 'x'},
		"ab2":   {3, opLiteral<<5 | 1, 'a', 'b'},
		"":      {0},
	} {
		if got, err := Apply(nil, p, base, 1<<10); err != nil || string(got) != want {
			t.Errorf("a valid delta: %q, %v; want %q", got, err, want)
		}
	}
	if Len(huge) >= 0 || Len(nil) >= 0 {
		t.Error("a length without a valid claim")
	}
}

// FuzzDelta checks that every text is decoded from any base, and that its delta is not much longer than itself.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":[1,2,3]},"d":"2026-11-21T10:00:00Z"}`), []byte(`{"a":{"c":[1,3]},"d":"2026-11-21T10:05:00Z"}`))
	f.Add(noise(1, 300), bytes.Repeat([]byte("0123456789abcdef"), 10))
	f.Add(bytes.Repeat([]byte("ab"), 300), bytes.Repeat([]byte("ba"), 300))
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, text, base []byte) {
		p := encode(text, base, math.MaxInt)
		got, err := Apply(nil, p, base, len(text))
		if err != nil || !bytes.Equal(got, text) || Len(p) != len(text) {
			t.Fatalf("%q came back as %q, %v", text, got, err)
		}
		if len(p) > len(text)+len(text)/minMove+8 {
			t.Errorf("%d bytes became %d", len(text), len(p))
		}
	})
}

// FuzzApply checks that no bytes cause a panic, a text above the limit, or a change of what precedes it.
func FuzzApply(f *testing.F) {
	f.Add(encode([]byte(`{"a":{"b":1,"c":[1,2,3]}}`), []byte(`{"a":{"c":[1,3]}}`), math.MaxInt), []byte(`{"a":{"c":[1,3]}}`))
	f.Add([]byte{5, opMove<<5 | 1, 6, opAgain<<5 | 2, 2}, []byte("0123456789"))
	f.Fuzz(func(t *testing.T, p, base []byte) {
		const limit = 1 << 20
		got, err := Apply([]byte("kept"), p, base, limit)
		switch {
		case string(got[:4]) != "kept" || len(got)-4 > limit:
			t.Errorf("%d bytes, %v", len(got), err)
		case err != nil && (!errors.Is(err, ErrBroken) || len(got) != 4):
			t.Errorf("%d bytes, %v", len(got), err)
		case err == nil && len(got)-4 != Len(p):
			t.Errorf("%d bytes, but the delta claims %d", len(got)-4, Len(p))
		}
	})
}

// object returns a version of an object of some 7 KB.
func object(version int) []byte {
	var b strings.Builder
	b.WriteString(`{"kind":"Pod","metadata":{"resourceVersion":"` + strconv.Itoa(1_000_000+version) + `"},"spec":{"containers":[`)
	for i := range 40 {
		b.WriteString(`{"name":"app-` + strconv.Itoa(i) + `","image":"registry.example.org/app:` + strconv.Itoa(i*7919%1000) + `","ports":[{"containerPort":80,"protocol":"TCP"}],"terminationMessagePath":"/dev/termination-log"},`)
	}
	b.WriteString(`{}]},"status":{"heartbeat":"` + strconv.Itoa(1_700_000_000+version*37) + `","phase":"Running"}}`)
	return []byte(b.String())
}

// BenchmarkDelta encodes and decodes an object of which two values changed.
func BenchmarkDelta(b *testing.B) {
	base, text := object(1), object(2)
	var x Index
	x.Build(base)
	p := Append(nil, text, base, &x, math.MaxInt)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			x.Build(base)
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportMetric(float64(len(p)), "B/delta")
		for b.Loop() {
			p = Append(p[:0], text, base, &x, math.MaxInt)
		}
	})
	b.Run("apply", func(b *testing.B) {
		out := make([]byte, 0, len(text))
		for b.Loop() {
			if _, err := Apply(out, p, base, MaxSize); err != nil {
				b.Fatal(err)
			}
		}
	})
}
