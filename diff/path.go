package diff

// Path names one place in an object; docs/paths.md defines its text.
type Path []Elem

// Elem is one step of a path: exactly one of its forms is set, told by Kind.
type Elem struct {
	Kind ElemKind
	// Name is the map key of a Field.
	Name string
	// Index is the position of an Index.
	Index int
	// Keys are the merge keys of a Keyed list element, in declared order.
	Keys []KeyValue
	// Value is the scalar of a set list's element.
	Value any
}

// ElemKind tells the forms of Elem apart.
type ElemKind uint8

// The forms of a step.
const (
	Field ElemKind = iota
	Index
	Keyed
	Value
)

// KeyValue is one merge key of a list element and its value.
type KeyValue struct {
	Name  string
	Value any
}
