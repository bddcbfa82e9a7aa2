package redact

import (
	"crypto/sha256"
	"hash"

	"github.com/tattler-dev/tattler/diff"
)

// Paths up to these numbers of steps and bytes are hashed as text, which covers ordinary objects. Longer ones
// are represented by digests, so that redacting a value costs the same at any depth.
const (
	plainSteps = 64
	plainBytes = 1 << 10
)

// place is the path of the current value. Its text and digests are built step by step when a value is redacted,
// and shared by all values below a step.
type place struct {
	steps   []step
	text    []byte
	ends    []int               // of the text after each step
	digests [][sha256.Size]byte // of the path up to each step
	hash    hash.Hash           // makes digests
}

// step is a step of a path; its text is built only if needed.
type step struct {
	kind  diff.ElemKind
	text  string // the name of a Field or of a Keyed element, or a Value
	index int
	other *diff.Elem // replaces the other fields if set
}

func (s *step) elem() diff.Elem {
	switch {
	case s.other != nil:
		return *s.other
	case s.kind == diff.Index:
		return diff.Elem{Kind: diff.Index, Index: s.index}
	case s.kind == diff.Keyed:
		return diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: "name", Value: s.text}}}
	case s.kind == diff.Value:
		return diff.Elem{Kind: diff.Value, Value: s.text}
	}
	return diff.Elem{Kind: diff.Field, Name: s.text}
}

func (p *place) push(s step) { p.steps = append(p.steps, s) }

func (p *place) pop() {
	p.steps = p.steps[:len(p.steps)-1]
	p.ends = p.ends[:min(len(p.ends), len(p.steps))]
	p.digests = p.digests[:min(len(p.digests), len(p.steps))]
}

func (p *place) pushField(name string) { p.push(step{kind: diff.Field, text: name}) }

// is reports whether the path has exactly these fields.
func (p *place) is(fields ...string) bool {
	if len(p.steps) != len(fields) {
		return false
	}
	for i, name := range fields {
		if p.steps[i].kind != diff.Field || p.steps[i].text != name {
			return false
		}
	}
	return true
}

// identity returns the path as used in a marker's hash: its text, or, if that is long, a zero byte and a
// digest: d(n) = SHA-256(d(n-1), text of step n), with d(0) empty. It is valid until the next call.
func (p *place) identity() []byte {
	for n := len(p.ends); n < len(p.steps); n++ {
		p.text = p.steps[n].elem().AppendText(p.text[:p.end(n)], n == 0)
		cost(len(p.text) - p.end(n))
		p.ends = append(p.ends, len(p.text))
	}
	p.text = p.text[:p.end(len(p.steps))]
	if len(p.steps) <= plainSteps && len(p.text) <= plainBytes {
		return p.text
	}
	if p.hash == nil {
		p.hash = sha256.New()
	}
	h := p.hash
	for n := len(p.digests); n < len(p.steps); n++ {
		h.Reset()
		if n > 0 {
			h.Write(p.digests[n-1][:])
		}
		h.Write(p.text[p.end(n):p.ends[n]])
		var d [sha256.Size]byte
		h.Sum(d[:0])
		p.digests = append(p.digests, d)
	}
	return append([]byte{0}, p.digests[len(p.digests)-1][:]...)
}

// end returns the length of the text of the first n steps.
func (p *place) end(n int) int {
	if n == 0 {
		return 0
	}
	return p.ends[n-1]
}

// element identifies a list element by its name, so that moving it does not look like a change.
func element(t *tree, n *node, i int) step {
	if f := t.field(n, "name"); f != nil && f.kind == '"' {
		return step{kind: diff.Keyed, text: f.text}
	}
	return step{kind: diff.Index, index: i}
}

// sibling identifies an element of XML among others of the same name, as element does.
func sibling(t *tree, n *node, i int) step {
	if key := t.textOf(n, "key"); key != "" {
		return step{kind: diff.Keyed, text: key}
	}
	return element(t, n, i)
}
