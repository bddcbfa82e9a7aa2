package log

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/relations"
	"github.com/tattler-dev/tattler/internal/render"
)

// branch is an object in a tree: its lines, and the objects that belong to it.
type branch struct {
	*relations.Found
	above    *branch
	depth    int
	children []*branch
	lines    []string
}

// tree prints the lines of related objects below the objects that they belong to. It keeps all of them until the end.
type tree struct {
	s          *selected
	namespaces bool
	of         map[relations.Ref]*branch
	roots      []*branch
	others     []string // notices and gaps
}

// treeIndent is the indentation of an object below the one that it belongs to.
const treeIndent = 2

// newTree places the related objects. An owner is above what it owns, and every other object below the one that led to it.
func newTree(s *selected, namespaces bool) *tree {
	t := &tree{s: s, namespaces: namespaces, of: map[relations.Ref]*branch{}}
	if s.related == nil {
		return t
	}
	for _, f := range s.related.Found {
		b := &branch{Found: f}
		t.of[f.Ref] = b
		if f.Via == nil {
			continue
		}
		via := t.of[f.Via.Ref]
		if f.Relation == relations.OwnedBy && !f.Back && via.above == nil && ownsNamed(f) {
			via.above = b
			continue
		}
		b.above = via
	}
	for _, f := range s.related.Found {
		b := t.of[f.Ref]
		if b.above == nil {
			t.roots = append(t.roots, b)
		} else {
			b.above.children = append(b.above.children, b)
		}
	}
	for _, r := range t.roots {
		t.sort(r, 0)
	}
	return t
}

// ownsNamed reports whether an object owns a named one, directly or not.
func ownsNamed(f *relations.Found) bool {
	for ; f.Via != nil; f = f.Via {
		if f.Relation != relations.OwnedBy || f.Back {
			return false
		}
	}
	return true
}

// sort puts what an object owns first, then what it names, and then the others.
func (t *tree) sort(b *branch, depth int) {
	b.depth = depth
	rank := func(b *branch) int {
		switch {
		case b.Relation == relations.OwnedBy:
			return 0
		case !b.Back:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(b.children, func(x, y *branch) int {
		return cmp.Or(rank(x)-rank(y), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	for _, c := range b.children {
		t.sort(c, depth+1)
	}
}

// place returns the branch that a line belongs to: an Event belongs to its object.
func (t *tree) place(l render.Line) *branch {
	b := t.of[relations.Ref{Group: l.Object.Group, Kind: l.Object.Kind, Namespace: l.Object.Namespace, Name: l.Object.Name}]
	for b != nil && b.Relation == relations.About && b.above != nil {
		b = b.above
	}
	return b
}

// indent returns the indentation of a line.
func (t *tree) indent(l render.Line) int {
	if b := t.place(l); b != nil {
		return treeIndent * (b.depth + 1)
	}
	return 0
}

func (t *tree) add(e entry) {
	b := t.place(e.Line)
	if b == nil {
		t.others = append(t.others, e.text)
		return
	}
	indent := strings.Repeat(" ", t.indent(e.Line))
	var text strings.Builder
	for line := range strings.Lines(e.text) {
		text.WriteString(indent + line)
	}
	b.lines = append(b.lines, text.String())
}

// print writes the tree, without objects that have no lines and nothing below them that has.
func (t *tree) print(w io.Writer) error {
	var out strings.Builder
	for _, text := range t.others {
		out.WriteString(text)
	}
	for _, r := range t.roots {
		t.branch(&out, r)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (t *tree) branch(out *strings.Builder, b *branch) {
	if !b.hasLines() {
		return
	}
	title := t.s.name(b.Ref)
	if t.namespaces && b.Namespace != "" && (b.above == nil || b.above.Namespace != b.Namespace) {
		title += " in " + b.Namespace
	}
	if words := b.words(); words != "" {
		title += ", " + words
	}
	fmt.Fprintf(out, "%s%s\n", strings.Repeat(" ", treeIndent*b.depth), terminal.Line(title))
	for _, text := range b.lines {
		out.WriteString(text)
	}
	for _, c := range b.children {
		t.branch(out, c)
	}
}

// words describe how an object belongs to the one above it.
func (b *branch) words() string {
	switch {
	case b.above == nil:
		return ""
	case b.Via == nil || b.above.Found != b.Via:
		return relationWords[link{relations.OwnedBy, true}]
	}
	return relationWords[link{b.Relation, b.Back}]
}

func (b *branch) hasLines() bool {
	return len(b.lines) > 0 || slices.ContainsFunc(b.children, (*branch).hasLines)
}

// asTree makes a folding print a tree of the related objects.
func (f *folding) asTree(s *selected, ro *render.Options) {
	f.tree = newTree(s, ro.Namespaces)
	ro.Namespaces, ro.Nameless, ro.Remark = false, true, nil
	ro.Head = func(l render.Line) {
		f.head = l
		if w := f.o.IO.Width(); w > 0 {
			f.text.SetWidth(max(w-f.tree.indent(l), 1))
		}
	}
	ro.Out = treeLines{f}
}

// treeLines takes the lines of a tree, each in one write.
type treeLines struct{ f *folding }

func (l treeLines) Write(b []byte) (int, error) {
	l.f.tree.add(entry{Line: l.f.head, text: string(b)})
	return len(b), nil
}
