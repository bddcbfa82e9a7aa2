// Package usage is the error for a wrong flag, argument or parameter, as opposed to a failure.
package usage

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Error says what is wrong with a flag, an argument or a parameter. The command exits with 2, and the API answers with 400.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Parameter is a parameter of a URL.
type Parameter struct {
	Name string
	// Repeatable says that the parameter may have several values.
	Repeatable bool
}

// CheckParameters returns an Error for a parameter that a path does not have, or that has several values although only one
// counts. elsewhere returns the paths that have a parameter.
func CheckParameters(given url.Values, known []Parameter, elsewhere func(name string) []string) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(known, func(p Parameter) bool { return p.Name == name })
		switch {
		case i < 0:
			return unknownParameter(name, known, elsewhere(name))
		case len(given[name]) > 1 && !known[i].Repeatable:
			return Errorf("%s: it has %d values, but only one is possible", name, len(given[name]))
		}
	}
	return nil
}

// unknownParameter is the error for a parameter that only other paths have.
func unknownParameter(name string, known []Parameter, paths []string) error {
	text := fmt.Sprintf("there is no parameter %q", name)
	if len(paths) > 0 {
		text = fmt.Sprintf("%s: a parameter of %s only", name, strings.Join(paths, ", "))
	}
	if len(known) == 0 {
		return Errorf("%s; this path has none", text)
	}
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	return Errorf("%s; this path has: %s", text, strings.Join(names, ", "))
}
