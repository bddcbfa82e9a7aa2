package store

import "hash/maphash"

// set is a hash table of pointers with open addressing. Unlike a map it costs 8 bytes a slot, takes a known hash,
// keeps its elements in place, and gives memory back.
type set[P hashed] struct {
	slots []P // their number is a power of two; nil is free
	used  int
}

type hashed interface {
	comparable
	hash() uint32
}

const minSlots = 8

// seed is shared by all tables, since a store passes hashes to its queues.
var seed = maphash.MakeSeed()

func hashString(s string) uint32 { return uint32(maphash.String(seed, s)) }

// hashKey combines the hashes of a namespace and a name.
func hashKey(namespace, name uint32) uint32 { return namespace*0x9E3779B1 ^ name }

// find returns the element with this hash for which is returns true, or nil.
func (s *set[P]) find(hash uint32, is func(P) bool) P {
	var none P
	if s.used == 0 {
		return none
	}
	mask := uint32(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if p := s.slots[i]; p == none || p.hash() == hash && is(p) {
			return p
		}
	}
}

// add adds a new element.
func (s *set[P]) add(p P) {
	if 4*(s.used+1) > 3*len(s.slots) {
		s.resize(max(minSlots, 2*len(s.slots)))
	}
	s.place(p)
	s.used++
}

func (s *set[P]) place(p P) {
	var none P
	mask := uint32(len(s.slots) - 1)
	i := p.hash() & mask
	for s.slots[i] != none {
		i = (i + 1) & mask
	}
	s.slots[i] = p
}

// remove removes an element of the set, and closes the gap, so that no search ends there.
func (s *set[P]) remove(p P) {
	var none P
	mask := uint32(len(s.slots) - 1)
	hole := p.hash() & mask
	for s.slots[hole] != p {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; s.slots[i] != none; i = (i + 1) & mask {
		if way := i - s.slots[i].hash(); way&mask >= (i-hole)&mask { // its search passes the gap
			s.slots[hole], hole = s.slots[i], i
		}
	}
	s.slots[hole] = none
	s.used--
}

// shrink gives memory back if little of it is used.
func (s *set[P]) shrink() {
	if len(s.slots) > minSlots && 8*s.used < len(s.slots) {
		s.resize(len(s.slots) / 4)
	}
}

func (s *set[P]) resize(slots int) {
	old := s.slots
	s.slots = make([]P, slots)
	var none P
	for _, p := range old {
		if p != none {
			s.place(p)
		}
	}
}
