package managers

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// tree is one FieldsV1 node. Its JSON keys are f:<field>, k:<merge keys as a JSON object>, v:<a set's value as
// JSON>, i:<index>, and "." for the node itself if it has children; the format is documented at
// k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1. A node without keys is owned itself: a scalar, an atomic map
// or list, or an empty one. A node is parsed when a path reaches it.
type tree struct {
	text     json.RawMessage
	depth    int
	read     bool // parsed, as are the fields below
	bare     bool // has no keys
	owned    bool
	leaf     bool // no child is owned separately or unreadable
	fields   map[string]*tree
	elements []element
}

// maxTree is the depth below which ownership is unknown: finding a child means scanning everything below its
// siblings, on each level.
const maxTree = 100

// element is a child for a list element: exactly one of keys, index and value is set.
type element struct {
	keys  map[string]any
	index int // -1: not by index
	value any
	*tree
}

// open parses the node, but not its children.
func (t *tree) open() *tree {
	if t == nil || t.read {
		return t
	}
	t.read, t.bare, t.leaf = true, true, true
	for key, child := range jsonmap.Members(t.text) {
		t.bare = false
		if key == "." {
			t.owned = true
			continue
		}
		t.leaf = false
		kind, text, ok := strings.Cut(key, ":")
		switch {
		case !ok || len(child) == 0 || child[0] != '{' || t.depth == maxTree:
		case kind == "f":
			if t.fields == nil {
				t.fields = make(map[string]*tree)
			}
			t.fields[text] = &tree{text: child, depth: t.depth + 1}
		default:
			if e, ok := newElement(kind, text); ok {
				e.tree = &tree{text: child, depth: t.depth + 1}
				t.elements = append(t.elements, e)
			}
		}
	}
	t.owned = t.owned || t.bare
	return t
}

func newElement(kind, text string) (element, bool) {
	e := element{index: -1}
	var err error
	switch kind {
	case "k":
		e.keys, err = jsonmap.Decode([]byte(text))
		return e, err == nil && len(e.keys) > 0
	case "v":
		err = json.Unmarshal([]byte(text), &e.value)
		return e, err == nil && e.value != nil
	case "i":
		e.index, err = strconv.Atoi(text)
		return e, err == nil && e.index >= 0
	}
	return e, false
}

// place is the position of a walk along a path: in the object, and in the trees of the entries that have it.
// Below the last node of every tree, leaf nodes own everything.
type place struct {
	value     any
	lists     *lists
	node      *node  // nil if inherited
	inherited bool   // no tree has this place
	who       owners // if inherited: the leaves above this place
}

func (at place) step(e diff.Elem) place {
	if at.inherited { // everything here has one owner
		return at
	}
	if e.Kind == diff.Field {
		m, _ := at.value.(map[string]any)
		return at.field(e.Name, m[e.Name])
	}
	list, _ := at.value.([]any)
	switch e.Kind {
	case diff.Index:
		var v any
		if e.Index < len(list) {
			v = list[e.Index]
		}
		return at.element(e.Index, v, nil)
	case diff.Value:
		return at.element(-1, e.Value, nil)
	}
	if i := at.lists.find(list, e); i >= 0 {
		return at.element(i, list[i], e.Keys)
	}
	for i, v := range list {
		if m, ok := v.(map[string]any); ok && hasKeys(m, e.Keys) {
			return at.element(i, v, e.Keys)
		}
	}
	return at.element(-1, nil, e.Keys)
}

func (at place) field(name string, v any) place {
	if at.inherited {
		return at
	}
	return at.down(v, at.node.fields[name])
}

// element descends to a list element, given any of its index (-1: unknown), its value (nil: unknown) and the
// merge keys of its path.
func (at place) element(i int, v any, keys []diff.KeyValue) place {
	if at.inherited {
		return at
	}
	return at.down(v, at.node.element(i, v, keys))
}

func (at place) down(v any, child *node) place {
	at.lists.count(1)
	if child == nil {
		return place{value: v, lists: at.lists, inherited: true, who: at.node.leaf}
	}
	child.open(at.lists)
	return place{value: v, lists: at.lists, node: child}
}

// owners returns who owns the value; false if a part of it has no owner.
func (at place) owners(value any) (who owners, ok bool) {
	if at.inherited { // the parts have the same owners
		return at.who, at.who.count != none
	}
	add := func(part place, child any) bool {
		if child == nil {
			return true
		}
		of, ok := part.owners(child)
		who = who.and(of)
		return ok
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if !add(at.field(name, child), child) {
				return who, false
			}
		}
		if len(v) > 0 {
			return who, true
		}
	case []any:
		for i, child := range v {
			if !add(at.element(i, child, nil), child) {
				return who, false
			}
		}
		if len(v) > 0 {
			return who, true
		}
	}
	return at.node.own, at.node.own.count != none
}

func hasKeys(m map[string]any, keys []diff.KeyValue) bool {
	for _, k := range keys {
		// A key with a default may be absent from the object.
		if v := m[k.Name]; v != nil && !diff.Equal(v, k.Value) {
			return false
		}
	}
	return len(keys) > 0
}

// is compares with a list element. Keys that the element lacks are taken from its path, which includes
// defaults.
func (e element) is(i int, v any, keys []diff.KeyValue) bool {
	switch {
	case e.index >= 0:
		return e.index == i
	case e.keys == nil:
		return v != nil && diff.Equal(e.value, v)
	}
	m, _ := v.(map[string]any)
	for name, want := range e.keys {
		have := m[name]
		for _, k := range keys {
			if have == nil && k.Name == name {
				have = k.Value
			}
		}
		if !diff.Equal(want, have) {
			return false
		}
	}
	return true
}
