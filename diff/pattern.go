package diff

import (
	"math/bits"
	"slices"
	"strings"
)

// Pattern selects places of an object and everything below them. The zero Pattern selects nothing.
type Pattern struct {
	text  string
	steps []step
	deep  matched // positions of **
}

// maxSteps lets a set of positions in a pattern fit one word.
const maxSteps = 63

// ParsePattern parses a pattern (docs/paths.md): a path that may contain [*] for any list element, * for any run of
// characters within a key or value, and ** for any number of steps. The text of a Path is a pattern that covers it. The error
// is a *PathError.
func ParsePattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, &PathError{Text: text, Column: 1, Reason: "empty path"}
	}
	steps, err := parse(text, true)
	if err != nil {
		return Pattern{}, err
	}
	if len(steps) > maxSteps {
		return Pattern{}, &PathError{Text: text, Column: 1, Reason: "more than 63 steps"}
	}
	p := Pattern{text: text, steps: steps}
	for i := range steps {
		if steps[i].anyDepth {
			p.deep |= 1 << i
		}
	}
	return p, nil
}

// String returns the text that was parsed.
func (p Pattern) String() string { return p.text }

// Covers reports whether the pattern selects the path or something above it.
func (p Pattern) Covers(path Path) bool {
	m := p.begin()
	for i := range path {
		if p.done(m) || m == 0 {
			break
		}
		m = p.next(m, func(s *step) bool { return s.matchesElem(&path[i]) })
	}
	return p.done(m)
}

// Touches reports whether the pattern covers the change's path, or selects something inside the value before or after. A
// Reorder touches the elements that it names, and their merge keys.
func (p Pattern) Touches(c Change) bool {
	m := p.begin()
	for i := range c.Path {
		if p.done(m) {
			return true
		}
		m = p.next(m, func(s *step) bool { return s.matchesElem(&c.Path[i]) })
	}
	if c.Op == Reorder {
		names, _ := c.From.([]any)
		return p.done(m) || slices.ContainsFunc(names, func(v any) bool {
			e := nameElem(v)
			return p.within(p.next(m, func(s *step) bool { return s.matchesElem(&e) }), v)
		})
	}
	return p.within(m, c.From) || p.within(m, c.To)
}

// within reports whether anything in v, or v itself, is selected.
func (p Pattern) within(m matched, v any) bool {
	if p.done(m) {
		return v != nil
	}
	if m == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if p.within(p.nextField(m, name), child) {
				return true
			}
		}
	case []any:
		for i, child := range v {
			if p.within(p.nextElement(m, i, child), child) {
				return true
			}
		}
	}
	return false
}

// matched is the set of positions in a pattern that a path can have reached: bit i says that the steps before i matched. It is
// a set because ** may match any number of steps.
type matched uint64

func (p Pattern) begin() matched { return p.skip(1) }

// done reports whether the whole pattern matched.
func (p Pattern) done(m matched) bool { return len(p.steps) > 0 && m>>len(p.steps)&1 == 1 }

// skip adds the positions after each ** that was reached, because it may match nothing.
func (p Pattern) skip(m matched) matched {
	for left := m & p.deep; left != 0; left = left << 1 & p.deep {
		m |= left << 1
	}
	return m
}

// next takes one step down; fits reports whether a step of the pattern matches.
func (p Pattern) next(m matched, fits func(*step) bool) matched {
	var out matched
	for left := uint64(m); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		switch {
		case i == len(p.steps):
		case p.steps[i].anyDepth:
			out |= 1 << i
		case fits(&p.steps[i]):
			out |= 1 << (i + 1)
		}
	}
	return p.skip(out)
}

func (p Pattern) nextField(m matched, name string) matched {
	return p.next(m, func(s *step) bool { return s.matchesElem(&Elem{Kind: Field, Name: name}) })
}

func (p Pattern) nextElement(m matched, i int, v any) matched {
	return p.next(m, func(s *step) bool { return s.matchesValue(i, v) })
}

// matchesElem compares with a step of a path. A keyed step need not name all merge keys.
func (s *step) matchesElem(e *Elem) bool {
	switch {
	case s.anyElem:
		return e.Kind != Field
	case s.Kind != e.Kind:
		return false
	case s.Kind == Field:
		return glob(s.Name, e.Name)
	case s.Kind == Index:
		return s.Index == e.Index
	case s.Kind == Value:
		return globValue(s.Value, e.Value)
	}
	return s.matchesKeys(func(name string) (any, bool) {
		for _, k := range e.Keys {
			if k.Name == name {
				return k.Value, true
			}
		}
		return nil, false
	})
}

// matchesValue compares with a list element, which has more fields than a path names.
func (s *step) matchesValue(i int, v any) bool {
	switch {
	case s.anyElem:
		return true
	case s.Kind == Index:
		return s.Index == i
	case s.Kind == Value:
		return isScalar(v) && globValue(s.Value, v)
	case s.Kind == Keyed:
		m, ok := v.(map[string]any)
		return ok && s.matchesKeys(func(name string) (any, bool) { v, ok := m[name]; return v, ok && isScalar(v) })
	}
	return false
}

func (s *step) matchesKeys(value func(name string) (any, bool)) bool {
	for _, k := range s.Keys {
		if v, ok := value(k.Name); !ok || !globValue(k.Value, v) {
			return false
		}
	}
	return true
}

// globValue compares as text, so that [port=80] and [port="80"] both match 80 and "80".
func globValue(pattern, v any) bool { return glob(plainText(pattern), plainText(v)) }

func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return scalarText(v)
}

// glob matches * with any run of characters, including dots and slashes.
func glob(pattern, s string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == s
	}
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
