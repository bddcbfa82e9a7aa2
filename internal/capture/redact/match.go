package redact

import "slices"

// matcher finds many words in a text in one pass, case-insensitively (Aho and Corasick, 1975). Its table is
// small enough for the processor's cache; BenchmarkMatcher measures the gain.
type matcher struct {
	class   [256]uint8 // bytes that no word distinguishes share a class
	width   int        // number of classes
	longest int        // length of the longest word
	next    []uint32   // by state and class: the next state times width, plus ends if a word ends there
	found   [][]uint16 // by state: the words that end in it
}

// ends marks a state in which a word ends.
const ends = 1 << 31

// newMatcher builds a matcher for words in lower-case ASCII.
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
		m.longest = max(m.longest, len(w))
		state := 0
		for i := range len(w) {
			edge := state*m.width + int(m.class[w[i]])
			if m.next[edge] == 0 {
				to := m.grow()
				m.next[edge] = uint32(to)
			}
			state = int(m.next[edge])
		}
		m.found[state] = append(m.found[state], uint16(id))
	}
	m.link()
	for i, state := range m.next {
		m.next[i] = state * uint32(m.width)
		if len(m.found[state]) > 0 {
			m.next[i] |= ends
		}
	}
	return m
}

// grow adds a state and returns it.
func (m *matcher) grow() int {
	m.next = append(m.next, make([]uint32, m.width)...)
	m.found = append(m.found, nil)
	return len(m.found) - 1
}

// link gives every state the edges of its longest suffix that is a state, in order of depth.
func (m *matcher) link() {
	suffix := make([]uint32, len(m.found))
	queue := []uint32{0}
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

// any reports whether a text contains one of the words.
func (m *matcher) any(s string) bool {
	_, end := m.find(s, 0, 0)
	return end >= 0
}

// find returns the offset after the first end of a word at or after from, or -1. state is the
// state of the search so far, 0 at the start.
func (m *matcher) find(s string, from int, state uint32) (now uint32, end int) {
	next := m.next
	for i := from; i < len(s); i++ {
		if state = next[state+uint32(m.class[s[i]])]; state&ends != 0 {
			cost(i - from)
			return state &^ ends, i + 1
		}
	}
	cost(len(s) - from)
	return state, -1
}

// words returns the words that end in a state of find.
func (m *matcher) words(state uint32) []uint16 { return m.found[int(state)/m.width] }
