package compact

import (
	"fmt"
	"slices"
	"testing"
)

func TestForget(t *testing.T) {
	h := NewHot(3 * each)
	v := someVersions(5)
	h.Pin(v[0], "d", "pinned", 1000)
	h.Put(v[0], "other", "put", 1000)
	h.Put(v[1], "d", "1", 1000)
	h.Put(v[2], "d", "2", 1000)
	h.Retire(v[2])
	if !h.Keeps(v[1], "d", "1") || h.Keeps(v[1], "d", "2") || h.Keeps(v[1], "other", "1") || h.Keeps(v[4], "d", nil) {
		t.Error("Keeps does not tell what is kept")
	}
	h.Forget(v[0])
	h.Forget(v[2])
	h.Forget(v[3])
	h.Forget(nil)
	if got := h.Bytes(); got != each {
		t.Errorf("%d bytes, want %d", got, each)
	}
	if h.Pin(v[0], "d", "anew", 1000) != "anew" || !h.Keeps(v[0], "d", "anew") {
		t.Error("what was forgotten is not pinned again")
	}
	h.Pin(v[2], "d", "anew", 1000) // a retired version's object is not pinned
	h.ForgetUnpinned()
	if got := h.Bytes(); got != each || !h.Keeps(v[0], "d", "anew") || h.Keeps(v[1], "d", "1") || h.Keeps(v[2], "d", "anew") {
		t.Errorf("%d bytes, want those of what is pinned", got)
	}
	h.ForgetUnpinned()
	h.Put(v[1], "d", "again", 1000)
	h.Drop(v[0])
	h.Drop(v[1])
	if got := h.Bytes(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}

// TestLeft: Left is called with evicted and dropped objects only, once each.
func TestLeft(t *testing.T) {
	h := NewHot(2 * each)
	var left []string
	h.Left = func(v *Version, decoder, obj any) { left = append(left, fmt.Sprint(v.UID(), decoder, obj)) }
	v := someVersions(5)
	for i, w := range v[:4] {
		h.Put(w, "d", i, 1000)
	}
	h.Retire(v[2])
	h.Drop(v[2])
	h.Drop(v[2])
	h.Forget(v[3])
	h.Drop(v[3])
	h.Pin(v[4], "d", 4, 1000)
	h.Drop(v[4])
	if want := []string{"0d0", "1d1", "2d2", "4d4"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}
