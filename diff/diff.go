// Package diff compares two versions of a Kubernetes object and names what differs by path.
//
// List elements are told apart by their merge keys where the schema knows them, so that a container
// that moved is not a change and a changed image is one line. Values are what encoding/json style
// decoding gives: map[string]any, []any, string, int64, float64, bool and nil.
package diff

// Op tells what happened to the value at a path.
type Op string

const (
	// Add says that the path did not exist before.
	Add Op = "add"
	// Remove says that the path does not exist any more.
	Remove Op = "remove"
	// Replace says that the path has another value now.
	Replace Op = "replace"
)

// Change is one difference between two objects.
type Change struct {
	Path Path
	Op   Op
	// From and To are the values before and after; From is nil for Add, To is nil for Remove.
	// They are shared with the compared objects: read them, do not write them.
	From, To any
	// Whole says that the value stands for more changes within it than Objects lists one by one.
	Whole bool
}

// ListType tells how the elements of a list are told apart.
type ListType int

const (
	// ListUnknown has no stated identity: the fallback of Objects applies.
	ListUnknown ListType = iota
	// ListAtomic is replaced as a whole; its elements are compared by index.
	ListAtomic
	// ListSet holds each scalar once; an element is its value.
	ListSet
	// ListMap holds objects told apart by their merge keys.
	ListMap
)

// Schema describes the value at one place of an object. A nil Schema knows nothing.
type Schema interface {
	// Field returns the schema of a field of this object, or nil. For a map of user-named keys
	// (labels), it is the schema of the values.
	Field(name string) Schema
	// List returns the list type and, for ListMap, the merge keys in their declared order.
	List() (ListType, []string)
	// Elem returns the schema of this list's elements, or nil.
	Elem() Schema
	// Default returns the default value of a field that is a merge key and may be absent
	// (protocol: TCP), or nil.
	Default(field string) any
}
