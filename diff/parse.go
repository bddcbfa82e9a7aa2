package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PathError is the position at which a text stops being a path or pattern.
type PathError struct {
	Text string
	// Column counts characters from 1.
	Column int
	Reason string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("invalid path %q: column %d: %s", e.Text, e.Column, e.Reason)
}

// ParsePath parses a path; a pattern is an error. The error is a *PathError.
func ParsePath(text string) (Path, error) {
	if text == "" {
		return nil, nil
	}
	steps, err := parse(text, false)
	if err != nil {
		return nil, err
	}
	p := make(Path, len(steps))
	for i, s := range steps {
		p[i] = s.Elem
	}
	return p, nil
}

// step is an Elem, or one of the two forms for patterns only.
type step struct {
	Elem
	anyElem  bool // [*]
	anyDepth bool // **
}

// parser parses paths and patterns: one grammar, in which patterns may have wildcards.
type parser struct {
	text     string
	pos      int
	wildcard bool
}

func parse(text string, wildcard bool) ([]step, error) {
	p := &parser{text: text, wildcard: wildcard}
	var steps []step
	p.eat('.') // kubectl and jq write a leading dot
	for first := true; first || p.pos < len(p.text); first = false {
		s, err := p.step(first)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (p *parser) step(first bool) (step, error) {
	switch {
	case p.eat('['):
		return p.bracket()
	case first || p.eat('.'):
		return p.name()
	default:
		return step{}, p.fail(p.pos, "want . or [ after ]")
	}
}

// name parses an unquoted map key.
func (p *parser) name() (step, error) {
	start := p.pos
	name := p.until(`.[`)
	if name == "" {
		return step{}, p.fail(start, "empty name")
	}
	for i, r := range name {
		switch {
		case strings.ContainsRune(`]"=,`, r) || !unicode.IsPrint(r) || r == ' ':
			return step{}, p.fail(start+i, fmt.Sprintf("unexpected %q; a key with such characters is written [\"…\"]", r))
		case r == '*' && !p.wildcard:
			return step{}, p.fail(start+i, "a wildcard where one path is wanted")
		}
	}
	return step{Elem: Elem{Kind: Field, Name: name}, anyDepth: name == "**"}, nil
}

// bracket parses what follows a [: a quoted map key, an index, keys and values, a set's value, or *.
func (p *parser) bracket() (step, error) {
	start := p.pos
	if p.eat('=') {
		v, err := p.value()
		if err != nil {
			return step{}, err
		}
		return step{Elem: Elem{Kind: Value, Value: v}}, p.closing()
	}
	name, quoted, err := p.word()
	if err != nil {
		return step{}, err
	}
	switch {
	case p.peek('='):
		return p.keys(name)
	case quoted:
		return step{Elem: Elem{Kind: Field, Name: name}}, p.closing()
	case name == "*" && p.wildcard:
		return step{anyElem: true}, p.closing()
	}
	i, err := strconv.ParseUint(name, 10, 31)
	if err != nil {
		return step{}, p.fail(start, `want an index, "key", key=value or =value`)
	}
	return step{Elem: Elem{Kind: Index, Index: int(i)}}, p.closing()
}

// keys parses [a=1,b=2] after the first name.
func (p *parser) keys(name string) (step, error) {
	e := Elem{Kind: Keyed}
	for {
		start := p.pos
		if name == "" || !p.eat('=') {
			return step{}, p.fail(start, "want key=value")
		}
		if slices.ContainsFunc(e.Keys, func(k KeyValue) bool { return k.Name == name }) {
			return step{}, p.fail(start, fmt.Sprintf("%q twice", name))
		}
		v, err := p.value()
		if err != nil {
			return step{}, err
		}
		e.Keys = append(e.Keys, KeyValue{name, v})
		if !p.eat(',') {
			return step{Elem: e}, p.closing()
		}
		if name, _, err = p.word(); err != nil {
			return step{}, err
		}
	}
}

// value parses a scalar: a quoted string, or bareScalar.
func (p *parser) value() (any, error) {
	start := p.pos
	s, quoted, err := p.word()
	switch {
	case err != nil:
		return nil, err
	case quoted:
		return s, nil
	case s == "":
		return nil, p.fail(start, `empty value; the empty string is ""`)
	}
	return bareScalar(s), nil
}

// word parses a quoted string, or the text before the next of ,=]
func (p *parser) word() (s string, quoted bool, err error) {
	start := p.pos
	if p.peek('"') {
		q, err := strconv.QuotedPrefix(p.text[p.pos:])
		if err != nil {
			return "", false, p.fail(start, "unterminated or invalid quotes")
		}
		p.pos += len(q)
		s, err = strconv.Unquote(q)
		return s, true, err
	}
	s = p.until(",=]")
	for i, r := range s {
		if strings.ContainsRune(`["`, r) || !unicode.IsPrint(r) || r == ' ' {
			return "", false, p.fail(start+i, fmt.Sprintf("unexpected %q; put the text in quotes", r))
		}
		if r == '*' && !p.wildcard {
			return "", false, p.fail(start+i, "a wildcard where one path is wanted")
		}
	}
	return s, false, nil
}

func (p *parser) closing() error {
	if !p.eat(']') {
		return p.fail(p.pos, "want ]")
	}
	return nil
}

func (p *parser) peek(c byte) bool { return p.pos < len(p.text) && p.text[p.pos] == c }

func (p *parser) eat(c byte) bool {
	if !p.peek(c) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) until(stops string) string {
	rest := p.text[p.pos:]
	if i := strings.IndexAny(rest, stops); i >= 0 {
		rest = rest[:i]
	}
	p.pos += len(rest)
	return rest
}

func (p *parser) fail(pos int, reason string) error {
	return &PathError{Text: p.text, Column: utf8.RuneCountInString(p.text[:pos]) + 1, Reason: reason}
}
