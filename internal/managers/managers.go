// Package managers finds the field manager that owns a changed field after the write.
//
// The server records ownership in metadata.managedFields: a write that sets a value owns it. It does not record
// who removed a field, nor which of several owners of a field wrote last; the result is Unknown then, never a
// guess. A manager is a program's name for itself, not a person.
package managers

import (
	"encoding/json"
	"sync"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// Unknown is the manager of a field whose writer the server does not record.
const Unknown = "?"

// Entries are the managedFields of one version of an object. The zero value has none. They are not safe for
// concurrent use.
type Entries struct {
	object map[string]any
	list   []event.Manager
	trees  func() []*tree
	root   func() *node // of the trees
	lists  *lists
}

// Parse reads the entries of a decoded object, which it keeps and never writes. Malformed entries own nothing.
// Field trees are parsed lazily, as Owner needs them.
func Parse(obj map[string]any) Entries {
	meta, _ := obj["metadata"].(map[string]any)
	raw, _ := meta["managedFields"].([]any)
	es := Entries{object: obj, lists: &lists{}}
	var fields []any
	for _, r := range raw {
		entry, ok := r.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string { s, _ := entry[name].(string); return s }
		es.list = append(es.list, event.Manager{
			Manager: text("manager"), Operation: text("operation"), Subresource: text("subresource"), Time: text("time"),
		})
		fields = append(fields, entry["fieldsV1"])
	}
	es.trees = sync.OnceValue(func() []*tree {
		trees := make([]*tree, len(fields))
		for i, f := range fields {
			if t := (&tree{text: fieldsText(f)}).open(); !t.bare {
				trees[i] = t
			}
		}
		return trees
	})
	es.root = sync.OnceValue(func() *node {
		root := &node{list: es.list}
		for i, t := range es.trees() {
			if t != nil {
				root.trees = append(root.trees, owned{entry: i, tree: t})
			}
		}
		root.open(es.lists)
		return root
	})
	return es
}

// fieldsText returns the text of an entry's fields, which a decoder may have left undecoded.
func fieldsText(fields any) json.RawMessage {
	text, ok := fields.(json.RawMessage)
	if m, isMap := fields.(map[string]any); !ok && isMap {
		text, _ = json.Marshal(m) // it was JSON
	}
	return text
}

// List returns the entries without their fields, in the object's order. The slice is shared.
func (es Entries) List() []event.Manager { return es.list }

// Creator returns the manager of a newly created object, for display: the only one with an entry, apart from
// those that only wrote the status.
func (es Entries) Creator() string {
	creator := ""
	for _, m := range es.list {
		if m.Subresource == "status" && len(es.list) > 1 {
			continue
		}
		who := Display(m.Manager, m.Subresource)
		if creator != "" && creator != who {
			return Unknown
		}
		creator = who
	}
	if creator == "" {
		return Unknown
	}
	return creator
}

// Owner returns the manager that owns the path after the write, and the subresource it wrote to (empty for the
// object itself, or if there are several). value is the current value; nil means that it was removed, of which
// the server keeps no record.
//
// The owner of a whole object or list is the manager that owns everything in it. For an atomic map or list the
// server only records the owner of the whole, which owns everything in it. List elements may be identified by
// other keys than the server's: the element is looked up in the object.
func (es Entries) Owner(p diff.Path, value any) (manager, subresource string) {
	at := es.Root()
	for _, e := range p {
		at = at.Step(e)
	}
	return at.Owner(value)
}

// Place is a place in the object. A caller that visits the whole object steps down with it: Owner would begin at the root for
// each field.
type Place struct{ at place }

// Root returns the place of the object itself.
func (es Entries) Root() Place {
	if es.root == nil {
		return Place{place{inherited: true}}
	}
	return Place{place{value: es.object, lists: es.lists, node: es.root()}}
}

// Step returns a place one step below.
func (p Place) Step(e diff.Elem) Place { return Place{p.at.step(e)} }

// Owner is Entries.Owner of the place.
func (p Place) Owner(value any) (manager, subresource string) {
	if value == nil {
		return Unknown, ""
	}
	who, ok := p.at.owners(value)
	if !ok || who.count != one {
		return Unknown, ""
	}
	return who.manager, who.subresource
}

// Display formats a manager for people: "kubectl (scale)". It omits the status subresource, which the path
// shows.
func Display(manager, subresource string) string {
	if subresource == "" || subresource == "status" {
		return manager
	}
	return manager + " (" + subresource + ")"
}
