package change

import (
	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/managers"
)

// Unknown stands for a manager that the API server does not name.
const Unknown = managers.Unknown

// Writers names the managers of the fields of an object, for display. It is at a place in the object.
type Writers struct{ at managers.Place }

// WritersOf returns the writers of an object, which has its managed fields, at its root.
func WritersOf(object map[string]any) Writers { return Writers{managers.Parse(object).Root()} }

// Step returns the writers one step below.
func (w Writers) Step(e diff.Elem) Writers { return Writers{w.at.Step(e)} }

// Name names the manager of a value at this place.
func (w Writers) Name(value any) string { return managers.Display(w.at.Owner(value)) }

// Writer is the manager of a changed field, for display.
func (f *FieldChange) Writer() string { return managers.Display(f.Manager, f.Subresource) }
