package managers

import (
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// owners are those of a place or of several, reduced to one name.
type owners struct {
	count                howMany
	manager, subresource string
}

type howMany uint8

const (
	none howMany = iota
	one
	several // or one without a name
)

func ownerOf(m *event.Manager) owners {
	if m.Manager == "" {
		return owners{count: several}
	}
	return owners{one, m.Manager, m.Subresource}
}

// and adds other owners. One that writes by several subresources has none.
func (o owners) and(p owners) owners {
	switch {
	case o.count == none:
		return p
	case p.count == none:
		return o
	case o.count == several || p.count == several || o.manager != p.manager:
		return owners{count: several}
	case o.subresource != p.subresource:
		o.subresource = ""
	}
	return o
}

// node is a place in the trees of all entries. It makes the index from paths to entries, as far as paths lead: to find the
// owner of each of many fields in the tree of each of many entries would take the product of the two numbers.
type node struct {
	list  []event.Manager // the entries
	trees []owned

	opened bool // as are the fields below
	fields map[string]*node
	// byText are the list elements, by the text of what identifies them. sets are the names of merge keys, for each set of
	// them in use.
	byText map[string]*node
	sets   [][]string
	joined map[string]*node // of byText: those that identify one element together, by their texts
	// own owns the place itself, leaf also everything below it. parts says that an entry owns parts of it.
	own, leaf owners
	parts     bool
}

// owned is a node in the tree of one entry. Of the list elements in a tree that are the same, the first counts.
type owned struct {
	entry, position int
	*tree
}

// maxKeys bounds the sets of merge keys of one list, each of which is looked up for an element. A list has one, and with
// defaults a few. Elements with others have no known owner.
const maxKeys = 16

// open reads the trees of the node, but not those of its children.
func (n *node) open(l *lists) {
	if n.opened {
		return
	}
	n.opened = true
	sets := map[string]bool{}
	for _, o := range n.trees {
		o.open()
		l.count(1 + len(o.fields) + len(o.elements))
		who := ownerOf(&n.list[o.entry])
		if o.owned {
			n.own = n.own.and(who)
		}
		if o.leaf {
			n.leaf = n.leaf.and(who)
		} else {
			n.parts = true
		}
		for name, child := range o.fields {
			if n.fields == nil {
				n.fields = map[string]*node{}
			}
			n.add(n.fields, name, owned{o.entry, 0, child})
		}
		for i, e := range o.elements {
			if text, ok := n.identify(e, sets); ok {
				if n.byText == nil {
					n.byText = map[string]*node{}
				}
				n.add(n.byText, text, owned{o.entry, i, e.tree})
			}
		}
	}
}

// add adds a tree to a child.
func (n *node) add(to map[string]*node, name string, t owned) {
	child := to[name]
	if child == nil {
		child = &node{list: n.list}
		to[name] = child
	}
	if last := len(child.trees) - 1; last < 0 || child.trees[last].entry != t.entry {
		child.trees = append(child.trees, t)
	}
}

// identify returns the text that identifies a list element. sets are the known sets of merge keys.
func (n *node) identify(e element, sets map[string]bool) (text string, ok bool) {
	var step diff.Elem
	switch {
	case e.index >= 0:
		step = diff.Elem{Kind: diff.Index, Index: e.index}
	case e.keys == nil:
		step = diff.Elem{Kind: diff.Value, Value: e.value}
	default:
		step.Kind = diff.Keyed
		names := slices.Sorted(maps.Keys(e.keys))
		var set []byte
		for _, name := range names {
			step.Keys = append(step.Keys, diff.KeyValue{Name: name, Value: e.keys[name]})
			set = append(append(set, name...), 0)
		}
		if !sets[string(set)] {
			if len(sets) == maxKeys {
				return "", false
			}
			sets[string(set)] = true
			n.sets = append(n.sets, names)
		}
	}
	return textOf(step)
}

// element returns the child for a list element, of which some is known: see place.element. Only scalars identify elements.
func (n *node) element(i int, v any, keys []diff.KeyValue) *node {
	var texts []string
	look := func(step diff.Elem) {
		if text, ok := textOf(step); ok && n.byText[text] != nil && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if i >= 0 {
		look(diff.Elem{Kind: diff.Index, Index: i})
	}
	if v != nil {
		look(diff.Elem{Kind: diff.Value, Value: v})
	}
	m, _ := v.(map[string]any)
	for _, names := range n.sets {
		step := diff.Elem{Kind: diff.Keyed}
		for _, name := range names {
			have := m[name]
			for _, k := range keys {
				if have == nil && k.Name == name {
					have = k.Value
				}
			}
			step.Keys = append(step.Keys, diff.KeyValue{Name: name, Value: have})
		}
		look(step)
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return n.byText[texts[0]]
	}
	return n.join(texts)
}

// join returns a child that several texts identify. Of each entry, the first element counts.
func (n *node) join(texts []string) *node {
	id := strings.Join(texts, "\x00")
	if known := n.joined[id]; known != nil {
		return known
	}
	first := map[int]owned{} // by entry
	for _, text := range texts {
		for _, o := range n.byText[text].trees {
			if has, known := first[o.entry]; !known || o.position < has.position {
				first[o.entry] = o
			}
		}
	}
	child := &node{list: n.list}
	for _, entry := range slices.Sorted(maps.Keys(first)) {
		child.trees = append(child.trees, first[entry])
	}
	if n.joined == nil {
		n.joined = map[string]*node{}
	}
	n.joined[id] = child
	return child
}
