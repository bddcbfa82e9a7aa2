package change

import (
	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/managers"
)

// Unknown stands for a manager that the API server does not name.
const Unknown = managers.Unknown

// Writers returns a function that names the manager of a field of the object, which has its managed fields, for
// display.
func Writers(object map[string]any) func(path diff.Path, value any) string {
	entries := managers.Parse(object)
	return func(path diff.Path, value any) string {
		return managers.Display(entries.Owner(path, value))
	}
}

// Writer is the manager of a changed field, for display.
func (f *FieldChange) Writer() string { return managers.Display(f.Manager, f.Subresource) }
