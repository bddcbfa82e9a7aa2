package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is one thing that is wrong with a file.
type Error struct {
	File string
	// Line and Column count from 1; 0 where there is none.
	Line, Column int
	// Key is the key's path, such as sinks[0].where; empty where the file itself is wrong.
	Key string
	// Reason says what is wrong, and what to do.
	Reason string
	// Excerpt, if any, shows the mistake; it is lines without an end.
	Excerpt string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&b, ":%d", e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Reason)
	if e.Excerpt != "" {
		b.WriteString("\n" + e.Excerpt)
	}
	return b.String()
}

// Errors is everything that is wrong with a file, in its order. It is not empty.
type Errors []*Error

// shown bounds how much an error says: a file in another form has a mistake in every line.
const shown = 20

func (es Errors) Error() string {
	var lines []string
	for _, e := range es[:min(len(es), shown)] {
		lines = append(lines, e.Error())
	}
	if more := len(es) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// input is what is being read, and what is wrong with it.
type input struct {
	name    string
	lines   []string
	places  map[string]*yaml.Node // of keys' values
	strange map[string]bool       // keys that have an unknown one: perhaps the one that seems to be missing
	errs    Errors
}

// fail notes an error at a node; nil is the file as a whole.
func (f *input) fail(n *yaml.Node, key, format string, args ...any) {
	e := &Error{File: f.name, Key: key, Reason: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	f.errs = append(f.errs, e)
}

// failAt notes an error at a key's value, or, where the key is absent, at what it would be in.
func (f *input) failAt(key, format string, args ...any) {
	if f.blamed(key) {
		return
	}
	at := key
	for f.places[at] == nil && at != "" {
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	f.fail(f.places[at], key, format, args...)
}

// positions are the places of the keys' values.
func (f *input) positions() map[string]place {
	out := map[string]place{}
	for key, n := range f.places {
		if n != nil {
			out[key] = place{n.Line, n.Column}
		}
	}
	return out
}

// blamed tells whether something is wrong with a key, or with what it is in, already: what else seems
// wrong would follow from that.
func (f *input) blamed(key string) bool {
	return slices.ContainsFunc(f.errs, func(e *Error) bool { return e.Key == "" || e.Key == key || isBelow(key, e.Key) })
}

// isBelow tells whether a key is in the value of another.
func isBelow(key, above string) bool {
	rest, ok := strings.CutPrefix(key, above)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

func (f *input) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(f.errs, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.errs
}
