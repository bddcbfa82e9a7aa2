package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	// Time is when it was changed last; if only an interval is known, its end, and Since is its beginning. Before says that
	// this was at Time or earlier: the journal does not reach back further.
	Since, Time time.Time
	Before      bool
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
	// Blame is nil for a line that only names the fields below it.
	Blame *Blame
	at    *step
}

// Path is the path of the field. List elements are named by their name or type where each has another one, else by their
// index.
func (l *Line) Path() diff.Path {
	n := 0
	for at := l.at; at != nil; at = at.above {
		n++
	}
	path := make(diff.Path, n)
	for at := l.at; at != nil; at = at.above {
		n--
		path[n] = at.Elem
	}
	return path
}

// step is the last step of a path. Lines share the steps above it: a path for each of them could be far larger than the
// object.
type step struct {
	above *step
	diff.Elem
}

// maxDepth is how many levels below the object lines have blames of their own. Values below that have one blame, as they are
// one change: see diff.Objects.
const maxDepth = 64

// Blame returns the YAML of an object at a moment, with the change that led to each line.
//
// It reads the object's changes from the newest to the oldest, until each line has one. A change of a list whose
// elements have no keys counts for the elements by their positions. The work for each change is bounded by the sizes of the
// object and of the change.
func (t *Builder) Blame(ctx context.Context, s *journal.State) ([]Line, error) {
	object, err := jsonmap.Decode(s.JSON)
	if err != nil {
		return nil, &ContentError{s.Kind.Resource + "/" + s.Name, err}
	}
	writers := change.WritersOf(object)
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	b := blaming{ctx: ctx, root: &node{}}
	b.root.build(object, 0)
	b.open = b.root.leaves
	if s.Last != nil {
		if err := t.attribute(ctx, s, &b, object); err != nil {
			return nil, err
		}
	}
	b.rest(s, writers, object)
	p := printer{blaming: &b}
	p.print(b.root, object, nil, "", "", 0)
	if b.err != nil {
		return nil, fmt.Errorf("make the lines of %s/%s: %w", s.Kind.Resource, s.Name, b.err)
	}
	return p.lines, nil
}

// node is a value of the object: a map, a list, or a leaf. An empty map or list is a leaf.
type node struct {
	fields map[string]*node
	items  []*node
	blame  *Blame // of a leaf
	leaves int    // at and below it that have no blame yet
	// index has the positions of a list's elements, by the texts of steps that name them; indexed are the names of the merge
	// keys of which it has the steps. Changes name many elements of one list.
	index   map[string]int
	indexed map[string]bool
}

// build makes the nodes of a value. Below maxDepth, every value is a leaf.
func (n *node) build(v any, depth int) {
	n.leaves = 1
	if depth == maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return
		}
		n.leaves, n.fields = 0, make(map[string]*node, len(v))
		for k, e := range v {
			c := &node{}
			c.build(e, depth+1)
			n.fields[k], n.leaves = c, n.leaves+c.leaves
		}
	case []any:
		if len(v) == 0 {
			return
		}
		n.leaves, n.items = 0, make([]*node, len(v))
		for i, e := range v {
			c := &node{}
			c.build(e, depth+1)
			n.items[i], n.leaves = c, n.leaves+c.leaves
		}
	}
}

// blaming is an object of which some leaves have no blame yet.
type blaming struct {
	ctx     context.Context //nolint:containedctx // it lives for one call
	root    *node
	open    int
	visited int
	err     error // the context's, once it has ended
}

// stop reports whether the context has ended. It is called for each node, and looks at the context for the first and then
// for some.
func (b *blaming) stop() bool {
	if b.visited++; b.err == nil && b.visited%256 == 1 {
		b.err = b.ctx.Err()
	}
	return b.err != nil
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

// moved gives a blame to the merge keys of the elements that moved: their other fields have the values they had.
func (b *blaming) moved(f *change.FieldChange, object any, blame *Blame) {
	for _, e := range f.Moved() {
		for _, k := range e.Keys {
			b.mark(append(slices.Clone(f.Path), e, diff.Elem{Name: k.Name}), object, blame)
		}
	}
}

// step returns the node and the value that one step of a path leads to.
func (n *node) step(e diff.Elem, v any) (*node, any, bool) {
	if e.Kind == diff.Field {
		m, _ := v.(map[string]any)
		c, ok := n.fields[e.Name]
		return c, m[e.Name], ok
	}
	list, _ := v.([]any)
	if i := n.element(e, list); i >= 0 {
		return n.items[i], list[i], true
	}
	return nil, nil, false
}

// element returns the position of the first element of a list that a step of a path names; -1 without one.
func (n *node) element(e diff.Elem, list []any) int {
	if e.Kind == diff.Index {
		if e.Index < len(n.items) {
			return e.Index
		}
		return -1
	}
	var names []byte
	for _, k := range e.Keys {
		names = append(append(names, k.Name...), 0)
	}
	if !n.indexed[string(names)] {
		if n.index == nil {
			n.index, n.indexed = map[string]int{}, map[string]bool{}
		}
		n.indexed[string(names)] = true
		for i := range n.items {
			if text, ok := elementText(list[i], e); ok {
				if _, known := n.index[text]; !known {
					n.index[text] = i
				}
			}
		}
	}
	if i, ok := n.index[string(e.AppendText(nil, true))]; ok {
		return i
	}
	return -1
}

// elementText is the text of a step of the kind of e that names a list's element. ok is false for an element that no such
// step names.
func elementText(item any, e diff.Elem) (text string, ok bool) {
	if e.Kind == diff.Value {
		if e.Value = item; !scalar(item) {
			return "", false
		}
		return string(e.AppendText(nil, true)), true
	}
	m, ok := item.(map[string]any)
	keys := make([]diff.KeyValue, len(e.Keys))
	for i, k := range e.Keys {
		keys[i] = diff.KeyValue{Name: k.Name, Value: m[k.Name]}
		ok = ok && scalar(m[k.Name])
	}
	if !ok {
		return "", false
	}
	e.Keys = keys
	return string(e.AppendText(nil, true)), true
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// attribute reads the changes from the newest to the oldest.
func (t *Builder) attribute(ctx context.Context, s *journal.State, b *blaming, object map[string]any) error {
	var later time.Time // when the change that was read last had happened at the latest
	for step, err := range t.source.History(ctx, s) {
		if err != nil {
			return err
		}
		e := &step.Entry
		blame := blameOf(e, later)
		later = blame.Time
		if e.Op.Differs() && !step.Purged && !b.root.differs(step.Before, step.After) {
			continue
		}
		c, _, err := t.Make(ctx, e, step.Before, step.After, true)
		if err != nil {
			return err
		}
		blame.Manager = c.Manager
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
			if f.Op == diff.Reorder {
				b.moved(f, object, &own)
				continue
			}
			b.mark(f.Path, object, &own)
		}
		if b.open == 0 {
			return nil
		}
	}
	return nil
}

// blameOf returns the time and the id of a change. A change of which only an interval is known was over when the next one of
// its object happened; later is the zero time without one.
func blameOf(e *journal.Entry, later time.Time) *Blame {
	from, to := e.Span()
	b := &Blame{Time: to, ID: e.ID}
	if from.Equal(to) {
		return b
	}
	if !later.IsZero() && later.After(from) && later.Before(to) {
		b.Time = later
	}
	b.Since = from
	return b
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
		blame.Since, blame.Time = time.Time{}, e.At
	}
	b.each(b.root, object, change.WritersOf(was), func(n *node, writers change.Writers, v any) {
		own := *blame
		if own.Manager = writers.Name(v); own.Manager == change.Unknown && !blame.Before {
			own.Manager = blame.Manager
		}
		n.blame = &own
	})
	b.open = 0
	return nil
}

// rest attributes what is left where the journal lacks the object's first changes.
func (b *blaming) rest(s *journal.State, writers change.Writers, object map[string]any) {
	if b.open == 0 {
		return
	}
	at := s.From
	if at.IsZero() && s.Last != nil {
		at = s.Last.At
	}
	b.each(b.root, object, writers, func(n *node, writers change.Writers, v any) {
		n.blame = &Blame{Time: at, Before: true, Manager: writers.Name(v)}
	})
}

// each calls f with the leaves that have no blame, until the context ends.
func (b *blaming) each(n *node, v any, writers change.Writers, f func(*node, change.Writers, any)) {
	if n.leaves == 0 || b.stop() {
		return
	}
	n.leaves = 0
	switch {
	case n.fields != nil:
		m, _ := v.(map[string]any)
		for k, c := range n.fields {
			b.each(c, m[k], writers.Step(diff.Elem{Name: k}), f)
		}
	case n.items != nil:
		list, _ := v.([]any)
		for i, c := range n.items {
			b.each(c, list[i], writers.Step(diff.Elem{Kind: diff.Index, Index: i}), f)
		}
	default:
		f(n, writers, v)
	}
}

// naming returns the field that names the elements of a list for people; empty if they have their indexes only.
func naming(list []any) string {
keys:
	for _, key := range []string{"name", "type"} {
		seen := make(map[string]bool, len(list))
		for _, e := range list {
			m, _ := e.(map[string]any)
			v, ok := m[key].(string)
			if !ok || seen[v] {
				continue keys
			}
			seen[v] = true
		}
		return key
	}
	return ""
}

// printer makes the lines.
type printer struct {
	*blaming
	lines []Line
}

// print appends the YAML of a node, as kubectl prints it, until the context ends. The first line begins with first, the
// others with rest.
func (p *printer) print(n *node, v any, at *step, first, rest string, depth int) {
	switch {
	case n.fields != nil:
		m, _ := v.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(n.fields)) {
			if p.stop() {
				return
			}
			c, below := n.fields[k], &step{at, diff.Elem{Name: k}}
			if c.fields == nil && c.items == nil {
				p.leaf(c, diff.YAML(map[string]any{k: m[k]}), below, first, rest, depth)
			} else {
				key := diff.YAML(map[string]any{k: ""})[0]
				p.lines = append(p.lines, Line{Text: first + key[:len(key)-len(` ""`)], Depth: depth, at: below})
				indent := rest + "  "
				if c.items != nil {
					indent = rest
				}
				p.print(c, m[k], below, indent, indent, depth+1)
			}
			first = rest
		}
	case n.items != nil:
		list, _ := v.([]any)
		name := naming(list)
		for i, c := range n.items {
			if p.stop() {
				return
			}
			below := &step{at, diff.Elem{Kind: diff.Index, Index: i}}
			if name != "" {
				below.Elem = diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: name, Value: list[i].(map[string]any)[name]}}}
			}
			if c.fields == nil && c.items == nil {
				p.leaf(c, diff.YAML(list[i]), below, first+"- ", rest+"  ", depth)
			} else {
				p.print(c, list[i], below, first+"- ", rest+"  ", depth)
			}
			first = rest
		}
	default:
		p.leaf(n, diff.YAML(v), at, first, rest, depth)
	}
}

// leaf appends the lines of a leaf.
func (p *printer) leaf(n *node, lines []string, at *step, first, rest string, depth int) {
	for _, l := range lines {
		p.lines = append(p.lines, Line{Text: first + l, Depth: depth, Blame: n.blame, at: at})
		first = rest
	}
}
