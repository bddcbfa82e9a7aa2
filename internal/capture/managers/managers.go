// Package managers tells which field manager owns a changed field after the write.
//
// The server says so in metadata.managedFields: a write that sets a value takes its ownership. It does
// not say who removed a field, and it cannot tell managers apart that own the same one: the answer is
// Unknown then, never a guess. A manager is a program's name for itself, not a person.
package managers

import (
	"encoding/json"
	"sync"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// Unknown stands for the manager of a field where the server does not say.
const Unknown = "?"

// Entries are the managedFields of one version of an object. The zero value has none. They serve one
// goroutine at a time.
type Entries struct {
	object map[string]any
	list   []event.Manager
	trees  func() []*tree
}

// Parse takes the entries of a decoded object, which it keeps and never writes. Entries that are
// malformed own nothing. The field trees are read as far as Owner needs them.
func Parse(obj map[string]any) Entries {
	meta, _ := obj["metadata"].(map[string]any)
	raw, _ := meta["managedFields"].([]any)
	es := Entries{object: obj}
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
	return es
}

// fieldsText is the text of an entry's fields, which a decoder may have left as that.
func fieldsText(fields any) json.RawMessage {
	text, ok := fields.(json.RawMessage)
	if m, isMap := fields.(map[string]any); !ok && isMap {
		text, _ = json.Marshal(m) // it was JSON
	}
	return text
}

// List returns the entries without their fields, in the object's order. It is shared.
func (es Entries) List() []event.Manager { return es.list }

// Creator is the manager of an object that was just created, for display: the only one that has an
// entry, or that has one beside those that wrote the status.
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

// Owner returns the manager that owns the path after the write, and the subresource it wrote to ("":
// the object itself, or several). The value is the one that is there now; nil says that it was
// removed, of which the server keeps no trace.
//
// The owner of a whole object or list is the manager that owns everything in it. Of an atomic map or
// list the server knows only the owner of the whole, which owns all that is in it. Lists may be named
// by other keys than the server's: the element is looked up in the object.
func (es Entries) Owner(p diff.Path, value any) (manager, subresource string) {
	if value == nil || es.trees == nil {
		return Unknown, ""
	}
	var at place
	for i, t := range es.trees() {
		if t != nil {
			at.owned = append(at.owned, owned{i, t})
		}
	}
	at.value = es.object
	for _, e := range p {
		if at = at.step(e); len(at.owned) == 0 {
			return Unknown, ""
		}
	}
	owners := make(map[int]bool)
	if !at.owners(value, owners) {
		return Unknown, ""
	}
	return es.name(owners)
}

// name reduces the owners to one name, and to one subresource if they agree.
func (es Entries) name(owners map[int]bool) (manager, subresource string) {
	first := true
	for i := range owners {
		m := es.list[i]
		switch {
		case m.Manager == "" || !first && m.Manager != manager:
			return Unknown, ""
		case first:
			manager, subresource = m.Manager, m.Subresource
		case m.Subresource != subresource:
			subresource = ""
		}
		first = false
	}
	return manager, subresource
}

// Display returns the text for a person: "kubectl (scale)". The status subresource is not named, as
// the path says it.
func Display(manager, subresource string) string {
	if subresource == "" || subresource == "status" {
		return manager
	}
	return manager + " (" + subresource + ")"
}
