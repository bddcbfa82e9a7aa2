package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is one problem in a file.
type Error struct {
	File string
	// Line and Column count from 1; 0 if unknown.
	Line, Column int
	// Key is the key's path, such as sinks[0].where; empty for the file as a whole.
	Key string
	// Reason says what is wrong and what to do.
	Reason string
	// Excerpt, if any, shows the mistake as lines without a final newline.
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

// Errors are all the problems of a file, in file order. It is not empty.
type Errors []*Error

// shown limits the number of errors in the text: a file in another format has one in every line.
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

// input is the file being read, with its errors.
type input struct {
	name    string
	lines   []string
	places  map[string]*yaml.Node // of the keys' values
	strange map[string]bool       // keys with an unknown key below: it may be a misspelling of one that seems to be missing
	errs    Errors
}

// fail records an error at a node; nil is the file as a whole.
func (f *input) fail(n *yaml.Node, key, format string, args ...any) {
	e := &Error{File: f.name, Key: key, Reason: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	f.errs = append(f.errs, e)
}

// failAt records an error at a key's value or, if the key is absent, at its parent.
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

// positions returns the positions of the keys' values.
func (f *input) positions() map[string]place {
	out := map[string]place{}
	for key, n := range f.places {
		if n != nil {
			out[key] = place{n.Line, n.Column}
		}
	}
	return out
}

// blamed reports whether there is already an error about the key or its parents: further errors would only
// follow from that.
func (f *input) blamed(key string) bool {
	return slices.ContainsFunc(f.errs, func(e *Error) bool { return e.Key == "" || e.Key == key || isBelow(key, e.Key) })
}

// isBelow reports whether a key is within the value of another.
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
