package redact

import "slices"

// matcher finds many words in a text in one pass, letters of any case alike (Aho and Corasick, 1975). Its table
// is small enough to stay in the processor's cache: see BenchmarkMatcher for what it saves.
type matcher struct {
	class [256]uint8 // of bytes that no word tells apart
	width int        // number of classes
	next  []uint16   // by state and class
	found [][]uint16 // the words that end in a state, the longest first
	ends  []bool     // whether any does
}

// newMatcher makes a matcher of words in lower-case ASCII.
func newMatcher(words []string) *matcher {
	m := &matcher{width: 1}
	for _, w := range words {
		for i := range len(w) {
			c := w[i]
			if m.class[c] > 0 {
				continue
			}
			m.class[c] = uint8(m.width)
			if 'a' <= c && c <= 'z' {
				m.class[c-'a'+'A'] = uint8(m.width)
			}
			m.width++
		}
	}
	m.grow()
	for id, w := range words {
		state := uint16(0)
		for i := range len(w) {
			edge := int(state)*m.width + int(m.class[w[i]])
			if m.next[edge] == 0 {
				m.next[edge] = uint16(m.grow())
			}
			state = m.next[edge]
		}
		m.found[state] = append(m.found[state], uint16(id))
	}
	m.link()
	for _, words := range m.found {
		m.ends = append(m.ends, len(words) > 0)
	}
	return m
}

// grow adds a state and returns it.
func (m *matcher) grow() int {
	m.next = append(m.next, make([]uint16, m.width)...)
	m.found = append(m.found, nil)
	return len(m.found) - 1
}

// link gives every state the edges of the longest of its suffixes that is a state, in the order of their depth.
func (m *matcher) link() {
	suffix := make([]uint16, len(m.found))
	queue := []uint16{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for c := range m.width {
			to := &m.next[int(state)*m.width+c]
			other := m.next[int(suffix[state])*m.width+c]
			switch {
			case *to == 0:
				if state != 0 {
					*to = other
				}
			case state == 0:
				queue = append(queue, *to)
			default:
				suffix[*to] = other
				m.found[*to] = slices.Concat(m.found[*to], m.found[other])
				queue = append(queue, *to)
			}
		}
	}
}

// any tells whether a text has one of the words.
func (m *matcher) any(s string) bool {
	_, end := m.find(s, 0, 0)
	return end >= 0
}

// find returns the state behind the first end of a word at or after from, and that end; -1 where there is none.
// It goes on in a state of find.
func (m *matcher) find(s string, from int, state uint16) (uint16, int) {
	next, width, ends := m.next, m.width, m.ends
	for i := from; i < len(s); i++ {
		state = next[int(state)*width+int(m.class[s[i]])]
		if ends[state] {
			return state, i + 1
		}
	}
	return state, -1
}
