// Package diff compares two versions of a Kubernetes object, and names the differences by path.
//
// List elements are identified by their merge keys if the schema knows them, so that a changed image is one line, and so is a
// container that moved. Values have the types of encoding/json style decoders: map[string]any, []any, string,
// int64, float64, bool and nil.
package diff

// Op is what happened to the value at a path.
type Op string

const (
	// Add says that the path did not exist before.
	Add Op = "add"
	// Remove says that the path no longer exists.
	Remove Op = "remove"
	// Replace says that the path has another value.
	Replace Op = "replace"
	// Reorder says that elements of the list at the path moved. It says nothing about their values.
	Reorder Op = "reorder"
)

// Change is one difference between two objects.
type Change struct {
	Path Path
	Op   Op
	// From and To are the values before and after; From is nil for Add, To is nil for Remove. They are shared with the
	// compared objects and must not be modified. Those of a Reorder are the merge keys of each element, as objects: of
	// the elements that are in both lists, from the first to the last that changed places.
	From, To any
	// Whole says that the value has more changes inside than Objects lists.
	Whole bool
}

// ListType says how the elements of a list are identified.
type ListType int

const (
	// ListUnknown has no declared identity: Objects falls back to heuristics.
	ListUnknown ListType = iota
	// ListAtomic is replaced as a whole; its elements are compared by index.
	ListAtomic
	// ListSet holds each scalar once; an element is identified by its value.
	ListSet
	// ListMap holds objects identified by their merge keys.
	ListMap
)

// Schema describes a value of an object. A nil Schema knows nothing.
type Schema interface {
	// Field returns the schema of a field of this object, or nil. For a map with user-named keys (labels), it returns the
	// schema of the values.
	Field(name string) Schema
	// List returns the list type and, for ListMap, the merge keys in their declared order.
	List() (ListType, []string)
	// Elem returns the schema of this list's elements, or nil.
	Elem() Schema
	// Default returns the default of a merge key that may be absent (protocol: TCP), or nil.
	Default(field string) any
}
