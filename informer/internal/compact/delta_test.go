package compact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// differ is the difference of src from dict.
func differ(src, dict []byte, limit int) []byte {
	var x index
	x.build(dict)
	return delta(nil, src, dict, &x, limit)
}

const noLimit = 1 << 30

func TestDelta(t *testing.T) {
	sample := noise(20_000)
	text := strings.Repeat("abcdefgh-", 20)
	digits := strings.Repeat("0123456789abcdef", 4)
	splice := func(at, cut int, in string) []byte {
		return append(append(bytes.Clone(sample[:at]), in...), sample[at+cut:]...)
	}
	for _, c := range []struct {
		why       string
		src, dict []byte
		max       int
	}{
		{"the sample itself", sample, sample, 7},
		{"the longest copy", bytes.Repeat(sample, 4)[:maxSource], bytes.Repeat(sample, 4)[:maxSource], 8},
		{"an id of the same length costs itself, and two heads", splice(500, 5, "xxxxx"), sample, 7 + 5 + 4},
		{"a field more", splice(500, 0, "a field more"), sample, 7 + 12 + 8},
		{"a field less", splice(500, 80, ""), sample, 7 + 8},
		{"a field elsewhere", append(bytes.Clone(sample[9_000:9_100]), sample...), sample, 20},
		{"digits take half", splice(500, 64, digits), sample, 7 + 32 + 6},
		{"an odd digit", splice(500, 0, digits+"7"), sample, 7 + 33 + 10},
		{"what repeats within the object", append(bytes.Clone(sample), text...), sample, 7 + 9 + 8},
		{"nothing in common costs little more than itself", noise(5_000), sample, 5_000 + 10},
		{"lengths around those that need another byte", splice(30, 0, string(noise(31))), sample, 7 + 31 + 8},
		{"the same, two bytes", splice(286, 0, string(noise(287))), sample, 7 + 287 + 10},
		{"the smallest", sample[:minSource], sample[:minSource], 5},
		{"an object that the sample begins with", sample[:100], sample, 5},
		{"an object that begins with the sample", sample, sample[:100], 20_000 + 10},
	} {
		p := differ(c.src, c.dict, noLimit)
		if len(p) > c.max {
			t.Errorf("%s: %d bytes, want %d", c.why, len(p), c.max)
		}
		got, err := undelta([]byte("kept"), p, c.dict)
		if err != nil || string(got[:4]) != "kept" || !bytes.Equal(got[4:], c.src) {
			t.Errorf("%s: %d bytes came back of %d, %v", c.why, len(got)-4, len(c.src), err)
		}
		if got := differ(c.src, c.dict, len(p)); !bytes.Equal(got, p) {
			t.Errorf("%s: is refused at its own length", c.why)
		}
		if got := differ(c.src, c.dict, len(p)-1); len(got) > 0 {
			t.Errorf("%s: %d bytes where %d were allowed", c.why, len(got), len(p)-1)
		}
	}
}

func TestBrokenDifferences(t *testing.T) {
	dict := []byte(strings.Repeat("0123456789", 10))
	for why, p := range map[string][]byte{
		"no length":                          {},
		"a length that does not end":         {0x80},
		"more than a difference can tell":    {0xff, 0xff, 0x7f},
		"less than it tells":                 {3, opLiteral<<5 | 1, 'a', 'b'},
		"more than it tells":                 {1, opLiteral<<5 | 1, 'a', 'b'},
		"a literal that is not whole":        {3, opLiteral<<5 | 2, 'a', 'b'},
		"digits that are not whole":          {6, opHex<<5 | 2, 0xab, 0xcd},
		"more digits than it tells":          {3, opHex<<5 | 1, 0xab, 0xcd},
		"an operation's length is missing":   {40, opSame<<5 | 30},
		"half of one is":                     {40, opSame<<5 | 31, 39},
		"behind the dictionary's end":        {101, opSame<<5 | 30, 101 - 31},
		"before its start":                   {4, opMove<<5 | 3, 1},
		"a move that does not end":           {4, opMove<<5 | 3, 0x80},
		"a move that no dictionary has":      {4, opMove<<5 | 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"back to before the object":          {4, opSame << 5, opAgain<<5 | 2, 2},
		"back to where it stands":            {4, opSame << 5, opAgain<<5 | 2, 0},
		"back by what no object has":         {4, opSame << 5, opAgain<<5 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"back by a number that does not end": {4, opSame << 5, opAgain<<5 | 2, 0x80},
		"an unknown operation":               {1, 7 << 5},
	} {
		if got, err := undelta(nil, p, dict); err == nil {
			t.Errorf("%s: unpacked to %q", why, got)
		}
	}
	if got, err := undelta(nil, []byte{5, opMove<<5 | 1, 6, opAgain<<5 | 2, 2}, dict); err != nil || string(got) != "34343" {
		t.Errorf("a difference that is whole: %q, %v", got, err)
	}
}

// FuzzDelta checks that every object comes back, whatever it is the difference from.
func FuzzDelta(f *testing.F) {
	pods := samples.New(1).Pods(wire.JSON, 2, 2)
	f.Add(pods[0].Raw[:600], pods[1].Raw[:700]) // short: the fuzzer takes minutes to shorten long ones
	f.Add(pods[0].Raw[:600], pods[3].Raw[:600])
	f.Add(noise(300), bytes.Repeat([]byte("0123456789abcdef"), 10))
	f.Add(bytes.Repeat([]byte("ab"), 300), bytes.Repeat([]byte("ba"), 300))
	f.Fuzz(func(t *testing.T, src, dict []byte) {
		src, dict = sized(src), sized(dict)
		p := differ(src, dict, noLimit)
		got, err := undelta(nil, p, dict)
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%q came back as %q, %v", src, got, err)
		}
		if len(p) > len(src)+len(src)/minMove+8 {
			t.Errorf("%d bytes became %d", len(src), len(p))
		}
	})
}

// sized makes bytes as long as delta may be given them.
func sized(b []byte) []byte {
	if len(b) < minSource {
		b = append(bytes.Clone(b), make([]byte, minSource-len(b))...)
	}
	return b[:min(len(b), maxSource)]
}

// FuzzUndelta checks that no bytes panic, take more than they may, or harm what lies before.
func FuzzUndelta(f *testing.F) {
	pods := samples.New(1).Pods(wire.Protobuf, 1, 2)
	f.Add(differ(pods[1].Raw[:600], pods[0].Raw[:700], noLimit), pods[0].Raw[:700])
	f.Add([]byte{5, opMove<<5 | 1, 6, opAgain<<5 | 2, 2}, []byte("0123456789"))
	f.Fuzz(func(t *testing.T, p, dict []byte) {
		got, err := undelta([]byte("kept"), p, dict)
		if err == nil && (string(got[:4]) != "kept" || len(got)-4 > maxSource || len(got)-4 != unpackedLen(p)) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}

// FuzzPack packs pieces of the input in the ways that the input says, and looks whether they come
// back.
func FuzzPack(f *testing.F) {
	pods := samples.New(1).Pods(wire.JSON, 2, 3)
	f.Add(bytes.Join([][]byte{pods[0].Raw[:300], pods[1].Raw[:300], pods[2].Raw[:300], pods[4].Raw[:300]}, nil), uint16(299), "uid", "1")
	f.Add(noise(900), uint16(100), "", "")
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 100), uint16(64), "0123456789abcdef", "7")
	f.Fuzz(func(t *testing.T, in []byte, each uint16, uid, rv string) {
		r := NewRouter(Options{Fingerprint: func(_ wire.Format, raw []byte) (uint64, bool) {
			return uint64(raw[0] % 4), raw[0]%5 > 0
		}})
		r.shared.due = len(in) / 4 // so that a shared dictionary is tried
		p := Packer{Router: r}
		var raws [][]byte
		var versions []*Version
		for len(in) > 0 && len(raws) < 100 {
			n := min(len(in), int(each)+1)
			raws = append(raws, in[:n])
			versions = append(versions, p.Pack(wire.JSON, uid+fmt.Sprint(len(versions)), rv, in[:n]))
			in = in[n:]
		}
		for i, v := range versions {
			got, err := v.Append(nil)
			if err != nil || !bytes.Equal(got, raws[i]) {
				t.Fatalf("%q came back as %q, %v", raws[i], got, err)
			}
			if v.UID() != uid+fmt.Sprint(i) || v.RV() != rv {
				t.Fatalf("UID %q and a number is %q, version %q is %q", uid, v.UID(), rv, v.RV())
			}
			if _, d := v.Stored(); d != nil {
				if _, err := LoadDict(d.Bytes()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzRestore checks that neither a payload nor a dictionary from a checkpoint can do harm, and that
// memory stays bounded.
func FuzzRestore(f *testing.F) {
	pods := samples.New(1).Pods(wire.Protobuf, 1, 3)
	p := Packer{Router: NewRouter(Options{})}
	for _, it := range pods {
		payload, d := p.Pack(it.Format, it.UID, it.RV, it.Raw[:600]).Stored()
		if d == nil {
			f.Add(payload, []byte{}, "u", "1")
		} else {
			f.Add(payload, d.Bytes(), "u", "1")
		}
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0x1f, 0}, append([]byte{storedShared}, s2.Encode(nil, noise(100))...), "", "")
	f.Fuzz(func(t *testing.T, payload, dict []byte, uid, rv string) {
		d, err := LoadDict(dict)
		if err == nil {
			if back, err := LoadDict(d.Bytes()); err != nil || !bytes.Equal(back.unpack(nil), d.unpack(nil)) {
				t.Fatalf("a dictionary does not come back, %v", err)
			}
			r := NewRouter(Options{})
			r.Adopt(wire.JSON, d)
			p := Packer{Router: r}
			if raw, err := p.Pack(wire.JSON, uid, rv, dict).Append(nil); err != nil || !bytes.Equal(raw, dict) {
				t.Fatalf("an object comes back as %q with a dictionary adopted, %v", raw, err)
			}
		}
		if unpackedLen(payload) > 1<<20 {
			return // is allowed, and only slow
		}
		v, err := Restore(wire.JSON, uid, rv, 0, payload, d)
		if err != nil {
			return
		}
		if v.UID() != uid || v.RV() != rv {
			t.Errorf("UID %q is %q, version %q is %q", uid, v.UID(), rv, v.RV())
		}
		if raw, err := v.Append([]byte("kept")); string(raw[:4]) != "kept" || err == nil && len(raw)-4 != unpackedLen(payload) {
			t.Errorf("restored to %q, %v", raw, err)
		}
	})
}
