package store

import (
	"math/rand/v2"
	"testing"
)

type member struct{ id, sum uint32 }

func (m *member) hash() uint32 { return m.sum }

// TestSet compares a set with a map. Few distinct hashes, some at the end of the table, cause long searches that wrap
// around, and gaps within them.
func TestSet(t *testing.T) {
	for _, hashes := range []uint32{1, 3, 16, 1 << 31} {
		r := rand.New(rand.NewPCG(1, uint64(hashes)))
		var s set[*member]
		want := map[uint32]*member{}
		for range 5000 {
			id := r.Uint32N(60)
			sum := ^(id * 0x9E3779B1 % hashes)
			got := s.find(sum, func(m *member) bool { return m.id == id })
			if got != want[id] {
				t.Fatalf("%d hashes: found %v, want %v", hashes, got, want[id])
			}
			switch {
			case got == nil:
				want[id] = &member{id, sum}
				s.add(want[id])
			case r.IntN(2) == 0:
				s.remove(got)
				s.shrink()
				delete(want, id)
			}
			if s.used != len(want) {
				t.Fatalf("%d used, want %d", s.used, len(want))
			}
		}
	}
}

func TestSetGivesMemoryBack(t *testing.T) {
	var s set[*member]
	var all []*member
	for i := range uint32(1000) {
		all = append(all, &member{i, hashString(string(rune(i)))})
		s.add(all[i])
	}
	for _, m := range all[1:] {
		s.remove(m)
		s.shrink()
	}
	if len(s.slots) > 2*minSlots {
		t.Errorf("%d slots for one element", len(s.slots))
	}
	if s.find(all[0].sum, func(m *member) bool { return m == all[0] }) != all[0] {
		t.Error("the last element is not found")
	}
}
