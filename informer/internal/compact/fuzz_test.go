package compact

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
	"github.com/tattler-dev/tattler/internal/delta"
)

// FuzzPack packs pieces of the input, as the input directs, and checks that they are unpacked unchanged.
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

// FuzzRestore checks that payloads and dictionaries from a checkpoint cannot cause a panic, and that memory is bounded.
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
		if delta.Len(payload) > 1<<20 {
			return // allowed, but slow
		}
		v, err := Restore(wire.JSON, uid, rv, 0, payload, d)
		if err != nil {
			return
		}
		if v.UID() != uid || v.RV() != rv {
			t.Errorf("UID %q is %q, version %q is %q", uid, v.UID(), rv, v.RV())
		}
		if raw, err := v.Append([]byte("kept")); string(raw[:4]) != "kept" || err == nil && len(raw)-4 != delta.Len(payload) {
			t.Errorf("restored to %q, %v", raw, err)
		}
	})
}
