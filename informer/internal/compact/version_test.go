package compact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestPack(t *testing.T) {
	pod := samples.New(1).Pods(wire.JSON, 1, 1)[0].Raw
	for _, c := range []struct {
		why     string
		raw     []byte
		uid, rv string
	}{
		{"an object", pod, "0c5b2a5e-5f5c-4c8e-9d55-0d2f3c1b7a11", "12345"},
		{"the size of a lease: a dictionary must not cost more than it saves", pod[:400], "u", "1"},
		{"empty, but not absent", nil, "u", "1"},
		{"fakes have neither UID nor version", pod, "", ""},
		{"a UID in the bytes is not stored twice", []byte(strings.Repeat("x", 80) + "the-uid"), "the-uid", "7"},
		{"a UID of any length", pod, strings.Repeat("u", 70_000), strings.Repeat("7", 300)},
		{"too small for a delta", []byte("{}"), "u", "1"},
		{"the smallest delta", pod[:minSource], "u", "1"},
		{"repetitive", bytes.Repeat([]byte(`{"a":1}`), 9_000), "u", "1"},
		{"incompressible", noise(10_000), "u", "1"},
		{"the largest delta", bytes.Repeat(pod, 10)[:maxSource], "u", "1"},
		{"one byte too large for a delta", bytes.Repeat(pod, 10)[:maxSource+1], "u", "1"},
		{"a large object", bytes.Repeat(noise(3<<10), 1<<10), "u", "1"},
	} {
		for _, router := range []*Router{nil, NewRouter(Options{}), NewRouter(Options{Fingerprint: oneRoute})} {
			p := Packer{Router: router}
			uids := []string{c.uid, c.uid + "2", c.uid, c.uid + "2"} // so that one is the other's sample
			var versions []*Version
			for _, uid := range uids {
				raw := bytes.Clone(c.raw)
				versions = append(versions, p.Pack(wire.JSON, uid, c.rv, raw))
				clear(raw) // Pack does not retain it
			}
			for i, v := range versions {
				if v.UID() != uids[i] || v.RV() != c.rv || v.Format() != wire.JSON {
					t.Errorf("%s, %d: UID %.50q, version %.50q, format %v", c.why, i, v.UID(), v.RV(), v.Format())
				}
				for _, dst := range [][]byte{nil, []byte("before"), make([]byte, 3, 3+len(c.raw)), make([]byte, 0, 100)} {
					got, err := v.Append(dst)
					if err != nil || !bytes.Equal(got[:len(dst)], dst) || !bytes.Equal(got[len(dst):], c.raw) {
						t.Errorf("%s, %d: %d bytes came back of %d behind %d, %v", c.why, i, len(got), len(c.raw), len(dst), err)
					}
				}
				if !v.Identical(versions[0]) {
					t.Errorf("%s: pack %d is not identical to the first", c.why, i)
				}
			}
		}
	}
}

func TestUIDIsNotStoredTwice(t *testing.T) {
	const uid = "0c5b2a5e-5f5c-4c8e-9d55-0d2f3c1b7a11"
	raw := fmt.Appendf(noise(200), "uid %s", uid)
	p := Packer{}
	if in, apart := p.Pack(wire.JSON, uid, "7", raw), p.Pack(wire.JSON, strings.ToUpper(uid), "7", raw); len(in.record) > len(apart.record)-len(uid)+2 {
		t.Errorf("a record has %d bytes where the object's bytes have the UID, %d where not", len(in.record), len(apart.record))
	}
}

func TestAbsentVersion(t *testing.T) {
	var v *Version
	raw, err := v.Append([]byte("a"))
	payload, d := v.Stored()
	if v.UID() != "" || v.RV() != "" || v.Format() != 0 || v.Size() != 0 || string(raw) != "a" || err != nil || payload != nil || d != nil {
		t.Errorf("an absent version: %q %q %v %d %q %v", v.UID(), v.RV(), v.Format(), v.Size(), raw, err)
	}
	if v.Identical(nil) || v.Identical(&Version{}) {
		t.Error("an absent version has no bytes that could be the same")
	}
}

// kinds returns the sources that tests pack.
func kinds(f wire.Format) map[string][]samples.Item {
	if f == wire.Protobuf {
		return protobufKinds()
	}
	return jsonKinds()
}

var (
	protobufKinds = sync.OnceValue(func() map[string][]samples.Item { return makeKinds(wire.Protobuf) })
	jsonKinds     = sync.OnceValue(func() map[string][]samples.Item { return makeKinds(wire.JSON) })
)

func makeKinds(f wire.Format) map[string][]samples.Item {
	return map[string][]samples.Item{
		"pods":                samples.New(1).Pods(f, 20, 25),
		"pods, all different": samples.New(2).Pods(f, 100, 1),
		"config maps":         samples.New(3).ConfigMaps(f, 100),
		"leases":              samples.New(4).Leases(f, 300),
		"replica sets":        samples.New(5).ReplicaSets(f, 20, 10),
	}
}

func TestKindsComeBack(t *testing.T) {
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		for kind, items := range kinds(f) {
			for order, items := range map[string][]samples.Item{"list order": items, "random order": samples.Shuffled(items)} {
				p := Packer{Router: NewRouter(Options{})}
				versions := packAll(&p, items)
				for i, it := range items {
					v := versions[i]
					if raw, err := v.Append(nil); err != nil || !bytes.Equal(raw, it.Raw) {
						t.Fatalf("%v, %s, %s: object %d came back otherwise, %v", f, kind, order, i, err)
					}
					if v.UID() != it.UID || v.RV() != it.RV || v.Format() != f {
						t.Fatalf("%v, %s, %s: object %d is %q at %q", f, kind, order, i, v.UID(), v.RV())
					}
				}
			}
		}
	}
}

func packAll(p *Packer, items []samples.Item) []*Version {
	out := make([]*Version, len(items))
	for i, it := range items {
		out[i] = p.Pack(it.Format, it.UID, it.RV, it.Raw)
	}
	return out
}

// cost returns the size in bytes per version, with its share of the router.
func cost(versions []*Version, r *Router) float64 {
	n := r.Stats().Bytes
	for _, v := range versions {
		n += int64(v.Size())
	}
	return float64(n) / float64(len(versions))
}

// TestCost checks the sizes that this package is for; see also BenchmarkSource.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		kind string
		max  float64 // per object, everything included, relative to its bytes
		why  string
	}{
		{"pods", 1.0 / 10, "25 of each application: the sample has nearly everything"},
		{"pods, all different", 0.45, "no samples, but a shared dictionary"},
		{"config maps", 0.8, "nothing in common: at most a version's overhead worse than S2"},
		{"leases", 0.75, "most of a tiny object is random"},
		{"replica sets", 1.0 / 6, "ten revisions of each application"},
	} {
		for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
			items := kinds(f)[c.kind]
			for order, items := range map[string][]samples.Item{"list order": items, "random order": samples.Shuffled(items)} {
				raw := 0
				for _, it := range items {
					raw += len(it.Raw)
				}
				r := NewRouter(Options{})
				got, each := cost(packAll(&Packer{Router: r}, items), r), float64(raw)/float64(len(items))
				t.Logf("%v, %s, %s: %.0f of %.0f bytes", f, c.kind, order, got, each)
				if got > c.max*each {
					t.Errorf("%v, %s, %s: %.0f of %.0f bytes; %s", f, c.kind, order, got, each, c.why)
				}
			}
		}
	}
}

// TestSize compares Size and Stats with the heap.
func TestSize(t *testing.T) {
	items := samples.New(1).Pods(wire.Protobuf, 500, 4)
	for kind, c := range map[string]struct {
		items []samples.Item
		times int
	}{"few of each": {items, 5}, "small": {samples.New(1).Leases(wire.JSON, 2_000), 5}} {
		r := NewRouter(Options{})
		p := Packer{Router: r}
		before := heap()
		versions := make([]*Version, 0, len(c.items)*c.times)
		for range c.times {
			versions = append(versions, packAll(&p, c.items)...)
		}
		used := float64(heap()-before) / float64(len(versions))
		reported := cost(versions, r) + 8 // its place in the slice
		t.Logf("%s: %.0f bytes each, reported %.0f", kind, used, reported)
		if used > 1.15*reported || reported > 1.15*used {
			t.Errorf("%s: a version costs %.0f bytes, but reports %.0f", kind, used, reported)
		}
		runtime.KeepAlive(versions)
		runtime.KeepAlive(&p)
	}
	runtime.KeepAlive(items)
}

// heap returns the live bytes. The second collection empties the pools.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAllocations(t *testing.T) {
	items := samples.New(1).Pods(wire.Protobuf, 1, 20)
	p := Packer{Router: NewRouter(Options{})}
	packAll(&p, items)
	it, v := items[7], (*Version)(nil)
	if n := testing.AllocsPerRun(100, func() { v = p.Pack(it.Format, it.UID, it.RV, it.Raw) }); n > 2 && !raceEnabled {
		t.Errorf("a version takes %v allocations, want its record and itself", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = v.UID(), v.RV(), v.Format() }); n > 0 {
		t.Errorf("reading UID and version takes %v allocations", n)
	}
	dst := make([]byte, 0, len(it.Raw))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := v.Append(dst); err != nil {
			t.Fatal(err)
		}
	}); n > 0 && !raceEnabled { // the race detector makes sync.Pool drop items at random
		t.Errorf("unpacking into space that suffices takes %v allocations", n)
	}
}

func TestIdentical(t *testing.T) {
	items := samples.New(1).Pods(wire.JSON, 2, 4)
	apart, other, none := &Packer{Router: NewRouter(Options{})}, &Packer{Router: NewRouter(Options{})}, &Packer{}
	for i := range items {
		// Samples live as long as a version that was packed with them.
		kept := [][]*Version{packAll(apart, items), packAll(other, samples.Shuffled(items))} // the other order makes other samples
		a, b, c := packAll(apart, items[i:i+1])[0], packAll(other, items[i:i+1])[0], packAll(none, items[i:i+1])[0]
		if a.dict == b.dict || b.dict == c.dict {
			t.Fatal("the packs do not differ: the test tests nothing")
		}
		if !a.Identical(b) || !b.Identical(c) || !c.Identical(a) || !a.Identical(a) {
			t.Errorf("object %d is not identical to itself, packed otherwise", i)
		}
		for j := range items {
			if v := packAll(apart, items[j:j+1])[0]; j != i && v.Identical(a) {
				t.Errorf("object %d is identical to object %d", i, j)
			}
		}
		same := bytes.Clone(items[i].Raw)
		same[len(same)/2] ^= 1
		if v := apart.Pack(wire.JSON, items[i].UID, items[i].RV, same); v.Identical(a) || a.Identical(v) {
			t.Errorf("object %d is identical with one byte changed", i)
		}
		one, err1 := Restore(wire.JSON, "u", "1", 0, []byte{70}, load(t, noise(100)))
		two, err2 := Restore(wire.JSON, "u", "1", 0, []byte{70}, load(t, noise(101)))
		if err1 != nil || err2 != nil || one.Identical(two) {
			t.Errorf("equal deltas from different samples are identical; %v, %v", err1, err2)
		}
		if v := apart.Pack(wire.Protobuf, items[i].UID, items[i].RV, items[i].Raw); v.Identical(a) {
			t.Error("the format does not count")
		}
		runtime.KeepAlive(kept)
	}
}

// load makes a sample of bytes.
func load(t *testing.T, raw []byte) *Dict {
	d, err := LoadDict(append([]byte{storedSample}, s2.Encode(nil, raw)...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRestore(t *testing.T) {
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		for kind, items := range kinds(f) {
			versions := packAll(&Packer{Router: NewRouter(Options{})}, items)
			loaded := map[*Dict]*Dict{nil: nil}
			for i, v := range versions {
				payload, d := v.Stored()
				if _, ok := loaded[d]; !ok {
					b := d.Bytes()
					l, err := LoadDict(b)
					if err != nil {
						t.Fatal(err)
					}
					clear(b) // LoadDict does not retain it
					loaded[d] = l
				}
				stored := bytes.Clone(payload)
				back, err := Restore(f, v.UID(), v.RV(), v.Sum(), stored, loaded[d])
				if err != nil {
					t.Fatal(err)
				}
				clear(stored)
				if raw, err := back.Append(nil); err != nil || !bytes.Equal(raw, items[i].Raw) {
					t.Fatalf("%v, %s: object %d was restored otherwise, %v", f, kind, i, err)
				}
				if back.UID() != v.UID() || back.RV() != v.RV() || back.Format() != f || !back.Identical(v) {
					t.Fatalf("%v, %s: object %d was restored as %q at %q", f, kind, i, back.UID(), back.RV())
				}
			}
		}
	}
}

func TestDamagedBytesAreRefused(t *testing.T) {
	huge := s2.Encode(nil, make([]byte, maxRaw+1))
	sample := load(t, noise(1000))
	for why, c := range map[string]struct {
		payload []byte
		d       *Dict
	}{
		"no length":                         {nil, nil},
		"a length that does not end":        {[]byte{0xff, 0xff}, nil},
		"more than any object has":          {huge, nil},
		"more than a difference can tell":   {[]byte{0xff, 0xff, 0x7f}, sample},
		"a length beyond what an int holds": {bytes.Repeat([]byte{0xff}, 9), nil},
	} {
		if v, err := Restore(wire.JSON, "u", "1", 0, c.payload, c.d); err == nil {
			t.Errorf("%s: restored as %v", why, v)
		}
	}
	for why, b := range map[string][]byte{
		"nothing":             {},
		"an unknown kind":     append([]byte{2}, s2.Encode(nil, noise(100))...),
		"too small":           append([]byte{storedSample}, s2.Encode(nil, noise(minSource-1))...),
		"too large":           append([]byte{storedShared}, s2.Encode(nil, noise(maxSource+1))...),
		"its length is a lie": {storedSample, 100, 0, 1},
	} {
		if _, err := LoadDict(b); err == nil {
			t.Errorf("a dictionary of %s was loaded", why)
		}
	}
	for _, d := range []*Dict{nil, sample} {
		v, err := Restore(wire.JSON, "u", "1", 0, []byte{100, 0xff, 0xff}, d)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.Append([]byte("kept")); err == nil || string(got) != "kept" {
			t.Errorf("damaged bytes were unpacked to %q, %v", got, err)
		}
		if v.Identical(packAll(&Packer{}, []samples.Item{{Raw: noise(100), Format: wire.JSON}})[0]) {
			t.Error("damaged bytes are identical to something")
		}
	}
}

func ExampleVersion_Append() {
	p := Packer{Router: NewRouter(Options{})}
	v := p.Pack(wire.JSON, "0c5b", "7", []byte(`{"metadata":{"name":"web","uid":"0c5b","resourceVersion":"7"}}`))
	raw, err := v.Append(nil)
	fmt.Println(string(raw), err, v.UID(), v.RV())
	// Output: {"metadata":{"name":"web","uid":"0c5b","resourceVersion":"7"}} <nil> 0c5b 7
}
