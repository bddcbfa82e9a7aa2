package compact

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func someVersions(n int) []*Version {
	p := Packer{}
	out := make([]*Version, n)
	for i := range out {
		out[i] = p.Pack(wire.JSON, fmt.Sprint(i), "1", []byte("{}"))
	}
	return out
}

const each = 1000 + perDecoded // size counted for an object of 1,000 bytes

func TestHotEviction(t *testing.T) {
	put := func(h *Hot, v *Version) { h.Put(v, "d", v.UID(), 1000) }
	read := func(h *Hot, vs ...*Version) {
		for _, v := range vs {
			h.Get(v, "d")
		}
	}
	for _, c := range []struct {
		why  string
		do   func(h *Hot, v []*Version)
		kept []int // of the versions
	}{
		{"within the budget all stay", func(h *Hot, v []*Version) { put(h, v[0]); put(h, v[1]); put(h, v[2]) }, []int{0, 1, 2}},
		{"the oldest goes where none was read", func(h *Hot, v []*Version) { put(h, v[0]); put(h, v[1]); put(h, v[2]); put(h, v[3]) }, []int{1, 2, 3}},
		{"what was read has a second chance", func(h *Hot, v []*Version) {
			put(h, v[0])
			put(h, v[1])
			put(h, v[2])
			read(h, v[0])
			put(h, v[3])
		}, []int{0, 2, 3}},
		{"a scan of what is read once does not drive out what is read often", func(h *Hot, v []*Version) {
			put(h, v[0])
			for _, w := range v[1:] {
				read(h, v[0])
				put(h, w)
			}
		}, []int{0, 8, 9}},
		{"where all were read, one goes all the same", func(h *Hot, v []*Version) {
			put(h, v[0])
			put(h, v[1])
			put(h, v[2])
			read(h, v[0], v[1], v[2])
			put(h, v[3])
		}, []int{1, 2, 3}},
		{"what is dropped makes room", func(h *Hot, v []*Version) {
			put(h, v[0])
			put(h, v[1])
			put(h, v[2])
			h.Drop(v[1])
			put(h, v[3])
		}, []int{0, 2, 3}},
		{"what is pinned stays, beside the budget", func(h *Hot, v []*Version) {
			h.Pin(v[0], "d", "0", 1000)
			for _, w := range v[1:] {
				put(h, w)
			}
		}, []int{0, 7, 8, 9}},
		{"what is pinned later stays as well", func(h *Hot, v []*Version) {
			put(h, v[0])
			h.Pin(v[0], "d", "other", 1000)
			for _, w := range v[1:] {
				put(h, w)
			}
		}, []int{0, 7, 8, 9}},
		{"who reads everything fills what room there is, and drives out nothing", func(h *Hot, v []*Version) {
			put(h, v[0])
			for _, w := range v[1:] {
				h.Fill(w, "d", w.UID(), 1000)
			}
		}, []int{0, 1, 2}},
		{"what is larger than the budget is not kept, and drives out nothing", func(h *Hot, v []*Version) {
			put(h, v[0])
			if got := h.Put(v[1], "d", "large", 10_000); got != "large" {
				t.Errorf("Put returned %v", got)
			}
		}, []int{0}},
		{"all can go", func(h *Hot, v []*Version) {
			h.Pin(v[0], "d", "0", 1000)
			put(h, v[1])
			h.Drop(v[0])
			h.Drop(v[1])
			h.Drop(v[2])
			h.Drop(nil)
		}, nil},
	} {
		h := NewHot(3 * each)
		v := someVersions(10)
		c.do(h, v)
		var kept []int
		for i := range v {
			if obj, ok := h.Get(v[i], "d"); ok {
				kept = append(kept, i)
				if obj != v[i].UID() {
					t.Errorf("%s: version %d is kept as %v", c.why, i, obj)
				}
			}
		}
		if fmt.Sprint(kept) != fmt.Sprint(c.kept) {
			t.Errorf("%s: kept %v, want %v", c.why, kept, c.kept)
		}
		if got, want := h.Bytes(), int64(len(c.kept))*each; got != want {
			t.Errorf("%s: %d bytes, want %d", c.why, got, want)
		}
	}
}

func TestHotDecoders(t *testing.T) {
	type codec struct{ name string }
	typed, partial := &codec{"typed"}, &codec{"partial"}
	h := NewHot(100 * each)
	v := someVersions(1)[0]
	if got := h.Put(v, typed, "a", 1000); got != "a" {
		t.Errorf("Put returned %v", got)
	}
	if got := h.Put(v, typed, "b", 1000); got != "a" {
		t.Errorf("two readers decoded at once: the second has %v, not what the first has", got)
	}
	h.Put(v, partial, "p", 1000)
	if got := h.Pin(v, typed, "c", 1000); got != "a" {
		t.Errorf("Pin returned %v", got)
	}
	for _, c := range []struct {
		decoder any
		want    any
	}{{typed, "a"}, {partial, "p"}, {&codec{"typed"}, nil}} {
		if got, _ := h.Get(v, c.decoder); got != c.want {
			t.Errorf("decoder %v: %v, want %v", c.decoder, got, c.want)
		}
	}
	if h.Bytes() != 2*each {
		t.Errorf("%d bytes of two objects of %d", h.Bytes(), each)
	}
	h.Drop(v)
	if _, ok := h.Get(v, typed); ok || h.Bytes() != 0 {
		t.Errorf("a dropped version is kept, %d bytes", h.Bytes())
	}
}

// TestHotRandomly compares the accounting with what is kept, after each of many random steps.
func TestHotRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := NewHot(20 * each)
	versions := someVersions(40)
	for range 5_000 {
		v, d := versions[r.IntN(len(versions))], r.IntN(3)
		switch r.IntN(10) {
		case 0:
			h.Drop(v)
		case 1:
			h.Pin(v, d, d, 500)
		case 2, 3, 4:
			h.Get(v, d)
		default:
			h.Put(v, d, d, r.Int64N(3000))
		}
		var all, ring int64
		n := 0
		for _, v := range versions {
			for d := v.hot.Load(); d != nil; d = d.next.Load() {
				all += d.size
				if d.before != nil {
					ring += d.size
					n++
				}
			}
		}
		for d, left := h.hand, n; left > 0; d, left = d.after, left-1 {
			if d.after.before != d || left == 1 && d.after != h.hand {
				t.Fatal("the ring is broken")
			}
		}
		if all != h.Bytes() || ring != h.evicting || (n == 0) != (h.hand == nil) || ring > h.budget {
			t.Fatalf("%d bytes are kept, %d reported; %d in the ring, %d reported, of %d", all, h.Bytes(), ring, h.evicting, h.budget)
		}
	}
}

// TestHotConcurrently is for the race detector: readers take no lock.
func TestHotConcurrently(t *testing.T) {
	h := NewHot(10 * each)
	versions := someVersions(30)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range 3_000 {
				v, d := versions[r.IntN(len(versions))], r.IntN(2)
				obj, ok := h.Get(v, d)
				switch {
				case ok && obj != v.UID()+fmt.Sprint(d):
					t.Errorf("%v was kept of %v", obj, v.UID())
				case !ok && r.IntN(10) == 0:
					h.Pin(v, d, v.UID()+fmt.Sprint(d), 1000)
				case !ok:
					h.Put(v, d, v.UID()+fmt.Sprint(d), 1000)
				case r.IntN(20) == 0:
					h.Drop(v)
				case r.IntN(20) == 0:
					h.Retire(v)
				case r.IntN(100) == 0:
					h.Age()
				}
			}
		})
	}
	wg.Wait()
	for _, v := range versions {
		h.Drop(v)
	}
	if h.Bytes() != 0 || h.hand != nil {
		t.Errorf("%d bytes are left", h.Bytes())
	}
}

// TestHotRetire: the object of a replaced version, pinned or not, can be read until the budget is spent, and is then evicted
// like any other.
func TestHotRetire(t *testing.T) {
	h := NewHot(2 * each)
	v := someVersions(5)
	h.Pin(v[0], "d", "pinned", 1000)
	h.Put(v[1], "d", "put", 1000)
	for _, v := range v[:3] {
		h.Retire(v)
		h.Retire(v)
		if h.Bytes() != 2*each {
			t.Errorf("%d bytes are kept, want %d", h.Bytes(), 2*each)
		}
	}
	if obj, ok := h.Get(v[0], "d"); !ok || obj != "pinned" {
		t.Errorf("a retired version was decoded to %v, %v", obj, ok)
	}
	if _, ok := h.Get(v[2], "d"); ok {
		t.Error("something is kept of a version that was never decoded")
	}
	h.Pin(v[2], "d", "late", 1000)
	if obj, ok := h.Get(v[2], "d"); !ok || obj != "late" {
		t.Errorf("a version that was decoded after it was retired is %v, %v", obj, ok)
	}
	for _, v := range v[3:] {
		h.Put(v, "d", "new", 1000)
		h.Get(v, "d")
	}
	for _, v := range v[:3] {
		if _, ok := h.Get(v, "d"); ok {
			t.Errorf("%s was retired and is kept, though newer ones need the budget", v.UID())
		}
	}
	small := NewHot(each)
	small.Pin(v[3], "e", "pinned", 1000)
	small.Pin(v[4], "e", "pinned", 1000)
	small.Retire(v[3])
	small.Retire(v[4])
	if small.Bytes() != each {
		t.Errorf("%d bytes are kept of a budget of %d", small.Bytes(), each)
	}
}

// TestHotAge: an object that is no longer read is evicted after two rounds, and no other is.
func TestHotAge(t *testing.T) {
	h := NewHot(1 << 20)
	h.Age()
	v := someVersions(4)
	h.Pin(v[0], "d", "pinned", 1000)
	for _, v := range v[1:] {
		h.Put(v, "d", "obj", 1000)
	}
	kept := func(want ...bool) {
		t.Helper()
		for i, w := range want {
			if (v[i].hot.Load() != nil) != w {
				t.Errorf("version %d is kept: %v", i, !w)
			}
		}
	}
	h.Age()
	kept(true, true, true, true)
	h.Get(v[2], "d")
	h.Age()
	kept(true, false, true, false)
	h.Age()
	kept(true, false, true, false)
	h.Age()
	kept(true, false, false, false)
	if h.Bytes() != each || h.evicting != 0 || h.hand != nil {
		t.Errorf("%d bytes are kept, %d of them can be evicted", h.Bytes(), h.evicting)
	}
}

func BenchmarkHotGet(b *testing.B) {
	h := NewHot(1 << 20)
	v := someVersions(1)[0]
	h.Put(v, "d", "obj", 1000)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := h.Get(v, "d"); !ok {
				b.Error("is not kept")
			}
		}
	})
}

// TestHotPinOfADroppedVersion: a reader that decodes a dropped version uses the budget like any other, and nothing is counted
// forever.
func TestHotPinOfADroppedVersion(t *testing.T) {
	h := NewHot(2 * each)
	for _, v := range someVersions(100) {
		h.Pin(v, "d", "obj", 1000)
		h.Drop(v)
		if got := h.Pin(v, "d", "again", 1000); got != "again" {
			t.Fatalf("got %v", got)
		}
		if got := h.Pin(v, "d", "once more", 1000); got != "again" {
			t.Fatalf("got %v, though another one is kept", got)
		}
	}
	if n := h.Bytes(); n > 2*each {
		t.Errorf("%d bytes are kept of a budget of %d", n, 2*each)
	}
	never := someVersions(1)[0]
	h.Drop(never)
	h.Pin(never, "d", "obj", 1000)
	if n := h.Bytes(); n > 2*each {
		t.Errorf("dropped before it was ever decoded: %d bytes", n)
	}
	h.Drop(never)
	if _, ok := h.Get(never, "d"); ok {
		t.Error("dropped twice, and still kept")
	}
}
