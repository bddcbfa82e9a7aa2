package render

import (
	"slices"

	"github.com/tattler-dev/tattler/diff"
)

// maxNet bounds the paths of an object whose net changes are kept. A line names the first.
const maxNet = 100

// netChanges is the net effect of several changes of one object, in the order in which its paths first changed.
type netChanges struct {
	changes []diff.Change
	index   map[string]int
	beyond  bool // more than maxNet paths changed
}

func (n *netChanges) add(c diff.Change) {
	path := c.Path.String()
	if c.Op == diff.Reorder {
		path = "order of " + path // apart from the list's values
	}
	if i, ok := n.index[path]; ok {
		n.changes[i].To = c.To
		n.changes[i].Op = netOp(n.changes[i])
		return
	}
	if len(n.changes) == maxNet {
		n.beyond = true
		return
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[path] = len(n.changes)
	n.changes = append(n.changes, c)
}

func netOp(c diff.Change) diff.Op {
	switch {
	case c.Op == diff.Reorder:
		return c.Op
	case c.From == nil:
		return diff.Add
	case c.To == nil:
		return diff.Remove
	}
	return diff.Replace
}

// left returns the paths whose values differ now.
func (n *netChanges) left() []diff.Change {
	return slices.DeleteFunc(slices.Clone(n.changes), func(c diff.Change) bool { return diff.Equal(c.From, c.To) })
}

// String returns one line, such as "status.x: a → b, 3 more".
func (n *netChanges) String() string {
	left := n.left()
	if len(left) == 0 {
		return "changed and back"
	}
	if i := slices.IndexFunc(left, func(c diff.Change) bool { return !changesEveryWrite(c.Path) }); i > 0 {
		left = append(left[i:], left[:i]...)
	}
	s := excerpt{first: &left[0], more: len(left) - 1}.String()
	if n.beyond {
		s += " at least"
	}
	return s
}

// touched reports whether a path changed, even if it has its old value again.
func (n *netChanges) touched(path string) bool {
	_, ok := n.index[path]
	return ok
}
