package history

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Blame says when a field got its value, and who wrote it.
type Blame struct {
	// Time is when it was changed last. Before says that this was at that time or earlier: the journal does not reach
	// back further.
	Time   time.Time
	Before bool
	// Manager wrote it; change.Unknown where the API server does not say.
	Manager string
	// ID is the change's; empty where the journal does not have it.
	ID string
}

// Line is a line of an object's YAML.
type Line struct {
	Text string
	// Depth is how many levels it is below the object.
	Depth int
	// Path is that of the field; list elements are named by their name or type where each has another one, else by
	// their index.
	Path diff.Path
	// Blame is nil for a line that only names the fields below it.
	Blame *Blame
}

// Blame returns the YAML of an object at a moment, with the change that led to each line.
//
// It reads the object's changes from the newest to the oldest, until each line has one. A change of a list whose
// elements have no keys counts for the elements by their positions.
func (t *Builder) Blame(ctx context.Context, s *journal.State) ([]Line, error) {
	object, err := jsonmap.Decode(s.JSON)
	if err != nil {
		return nil, &ContentError{s.Kind.Resource + "/" + s.Name, err}
	}
	writer := change.Writers(object)
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	b := blaming{root: &node{}}
	b.root.build(object)
	b.open = b.root.leaves
	if s.Last != nil {
		if err := t.attribute(ctx, s, &b, object); err != nil {
			return nil, err
		}
	}
	b.rest(s, writer, object)
	var lines []Line
	b.root.print(object, nil, "", "", 0, &lines)
	return lines, nil
}

// node is a value of the object: a map, a list, or a leaf. An empty map or list is a leaf.
type node struct {
	fields map[string]*node
	items  []*node
	blame  *Blame // of a leaf
	leaves int    // at and below it that have no blame yet
}

// build makes the nodes of a value.
func (n *node) build(v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			n.fields = make(map[string]*node, len(v))
			for k, e := range v {
				c := &node{}
				c.build(e)
				n.fields[k], n.leaves = c, n.leaves+c.leaves
			}
			return
		}
	case []any:
		for _, e := range v {
			c := &node{}
			c.build(e)
			n.items, n.leaves = append(n.items, c), n.leaves+c.leaves
		}
		if len(v) > 0 {
			return
		}
	}
	n.leaves = 1
}

// blaming is an object of which some leaves have no blame yet.
type blaming struct {
	root *node
	open int
}

// mark gives a blame to the leaves at and below a path that have none. A path that the object does not have marks
// nothing.
func (b *blaming) mark(path diff.Path, object any, blame *Blame) {
	n := b.root
	above := []*node{n}
	for _, e := range path {
		var ok bool
		if n, object, ok = n.step(e, object); !ok {
			return
		}
		above = append(above, n)
	}
	marked := n.mark(blame)
	for _, a := range above[:len(above)-1] {
		a.leaves -= marked
	}
	b.open = b.root.leaves
}

// mark gives a blame to the leaves at and below a node that have none, and returns how many.
func (n *node) mark(blame *Blame) (marked int) {
	switch {
	case n.leaves == 0:
		return 0
	case n.fields == nil && n.items == nil:
		n.blame, n.leaves = blame, 0
		return 1
	}
	marked = n.leaves
	for _, c := range n.fields {
		c.mark(blame)
	}
	for _, c := range n.items {
		c.mark(blame)
	}
	n.leaves = 0
	return marked
}

// step returns the node and the value that one step of a path leads to.
func (n *node) step(e diff.Elem, v any) (*node, any, bool) {
	if e.Kind == diff.Field {
		m, _ := v.(map[string]any)
		c, ok := n.fields[e.Name]
		return c, m[e.Name], ok
	}
	list, _ := v.([]any)
	for i, item := range list {
		if i < len(n.items) && isElement(e, i, item) {
			return n.items[i], item, true
		}
	}
	return nil, nil, false
}

// isElement reports whether a step of a path names an element of a list.
func isElement(e diff.Elem, i int, item any) bool {
	switch e.Kind {
	case diff.Index:
		return e.Index == i
	case diff.Value:
		return diff.Equal(e.Value, item)
	}
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range e.Keys {
		// A key with a default, as a port's protocol, may be missing where an older version has no default.
		if v, has := m[k.Name]; has && !diff.Equal(v, k.Value) || !has && k.Value != nil {
			return false
		}
	}
	return true
}

// attribute reads the changes from the newest to the oldest.
func (t *Builder) attribute(ctx context.Context, s *journal.State, b *blaming, object map[string]any) error {
	for step, err := range t.source.History(ctx, s) {
		if err != nil {
			return err
		}
		e := &step.Entry
		if e.Op.Differs() && !step.Purged && !b.root.differs(step.Before, step.After) {
			continue
		}
		c, _, err := t.Make(ctx, e, step.Before, step.After, true)
		if err != nil {
			return err
		}
		blame := &Blame{Time: c.Time, Manager: c.Manager, ID: e.ID}
		if !e.Op.Differs() || c.Blind {
			return b.first(e, step.After, blame, object)
		}
		for i := range c.Fields {
			f := &c.Fields[i]
			if f.Op == diff.Remove {
				continue
			}
			own := *blame
			own.Manager = f.Writer()
			b.mark(f.Path, object, &own)
		}
		if b.open == 0 {
			return nil
		}
	}
	return nil
}

// differs reports whether two versions can differ in a leaf at or below a node that has no blame yet: most changes
// are of a status, whose leaves soon have one. It compares texts.
func (n *node) differs(before, after []byte) bool {
	switch {
	case n.leaves == 0 || bytes.Equal(before, after):
		return false
	case n.items != nil:
		return n.elementsDiffer(before, after)
	case n.fields == nil:
		return true
	}
	old := map[string]json.RawMessage{}
	for name, value := range jsonmap.Members(before) {
		if c := n.fields[name]; c != nil && c.leaves > 0 {
			old[name] = value
		}
	}
	for name, value := range jsonmap.Members(after) {
		if c := n.fields[name]; c != nil && c.differs(old[name], value) {
			return true
		}
	}
	return false
}

// elementsDiffer is differs for a list. Its elements may have been elsewhere in these versions, so a field without a
// blame counts in all of them.
func (n *node) elementsDiffer(before, after []byte) bool {
	open := map[string]bool{}
	for _, item := range n.items {
		if item.fields == nil && item.leaves > 0 {
			return true
		}
		for name, c := range item.fields {
			open[name] = open[name] || c.leaves > 0
		}
	}
	next, stop := iter.Pull(jsonmap.Elements(before))
	defer stop()
	for now := range jsonmap.Elements(after) {
		was, ok := next()
		if !ok || !bytes.Equal(was, now) && openFieldsDiffer(open, was, now) {
			return true
		}
	}
	_, more := next()
	return more
}

// openFieldsDiffer reports whether two objects differ in some of their fields.
func openFieldsDiffer(open map[string]bool, before, after []byte) bool {
	old := map[string]json.RawMessage{}
	for name, value := range jsonmap.Members(before) {
		if open[name] {
			old[name] = value
		}
	}
	for name, value := range jsonmap.Members(after) {
		if open[name] && !bytes.Equal(old[name], value) {
			return true
		}
		delete(old, name)
	}
	return len(old) > 0
}

// first attributes what is left to the first change that the journal has of an object: its creation, or that it was
// seen.
func (b *blaming) first(e *journal.Entry, after []byte, blame *Blame, object map[string]any) error {
	was, err := jsonmap.Decode(after)
	if err != nil {
		return &ContentError{e.Kind.Resource + "/" + e.Name, err}
	}
	blame.Before = e.Op != "created"
	if blame.Before {
		blame.Time = e.At
	}
	writer := change.Writers(was)
	b.root.each(object, nil, func(n *node, path diff.Path, v any) {
		own := *blame
		if own.Manager = writer(path, v); own.Manager == change.Unknown && !blame.Before {
			own.Manager = blame.Manager
		}
		n.blame = &own
	})
	b.open = 0
	return nil
}

// rest attributes what is left where the journal lacks the object's first changes.
func (b *blaming) rest(s *journal.State, writer func(diff.Path, any) string, object map[string]any) {
	if b.open == 0 {
		return
	}
	at := s.From
	if at.IsZero() && s.Last != nil {
		at = s.Last.At
	}
	b.root.each(object, nil, func(n *node, path diff.Path, v any) {
		n.blame = &Blame{Time: at, Before: true, Manager: writer(path, v)}
	})
}

// each calls f with the leaves that have no blame.
func (n *node) each(v any, path diff.Path, f func(*node, diff.Path, any)) {
	if n.leaves == 0 {
		return
	}
	n.leaves = 0
	switch {
	case n.fields != nil:
		m, _ := v.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(n.fields)) {
			n.fields[k].each(m[k], child(path, diff.Elem{Name: k}), f)
		}
	case n.items != nil:
		list, _ := v.([]any)
		for i, c := range n.items {
			c.each(list[i], child(path, diff.Elem{Kind: diff.Index, Index: i}), f)
		}
	default:
		f(n, path, v)
	}
}

func child(path diff.Path, e diff.Elem) diff.Path { return append(path[:len(path):len(path)], e) }

// elem names an element of a list for people.
func elem(list []any, i int) diff.Elem {
keys:
	for _, key := range []string{"name", "type"} {
		seen := map[string]bool{}
		for _, e := range list {
			m, _ := e.(map[string]any)
			v, ok := m[key].(string)
			if !ok || seen[v] {
				continue keys
			}
			seen[v] = true
		}
		return diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: key, Value: list[i].(map[string]any)[key]}}}
	}
	return diff.Elem{Kind: diff.Index, Index: i}
}

// print appends the YAML of a node, as kubectl prints it. The first line begins with first, the others with rest.
func (n *node) print(v any, path diff.Path, first, rest string, depth int, to *[]Line) {
	switch {
	case n.fields != nil:
		m, _ := v.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(n.fields)) {
			c, p := n.fields[k], child(path, diff.Elem{Name: k})
			if c.fields == nil && c.items == nil {
				c.leaf(diff.YAML(map[string]any{k: m[k]}), p, first, rest, depth, to)
			} else {
				key := diff.YAML(map[string]any{k: ""})[0]
				*to = append(*to, Line{Text: first + key[:len(key)-len(` ""`)], Depth: depth, Path: p})
				below := rest + "  "
				if c.items != nil {
					below = rest
				}
				c.print(m[k], p, below, below, depth+1, to)
			}
			first = rest
		}
	case n.items != nil:
		list, _ := v.([]any)
		for i, c := range n.items {
			p := child(path, elem(list, i))
			if c.fields == nil && c.items == nil {
				c.leaf(diff.YAML(list[i]), p, first+"- ", rest+"  ", depth, to)
			} else {
				c.print(list[i], p, first+"- ", rest+"  ", depth, to)
			}
			first = rest
		}
	default:
		n.leaf(diff.YAML(v), path, first, rest, depth, to)
	}
}

// leaf appends the lines of a leaf.
func (n *node) leaf(lines []string, path diff.Path, first, rest string, depth int, to *[]Line) {
	for _, l := range lines {
		*to = append(*to, Line{Text: first + l, Depth: depth, Path: path, Blame: n.blame})
		first = rest
	}
}
