package render

import (
	"testing"

	"github.com/tattler-dev/tattler/diff"
)

// TestNetOrder: orders of a list are combined with each other, and not with its values.
func TestNetOrder(t *testing.T) {
	path, err := diff.ParsePath("spec.list")
	if err != nil {
		t.Fatal(err)
	}
	list := func(names ...any) (list []any) {
		for _, n := range names {
			list = append(list, map[string]any{"name": n})
		}
		return list
	}
	var n netChanges
	n.add(diff.Change{Path: path, Op: diff.Reorder, From: list("a", "b", "c"), To: list("b", "a", "c")})
	n.add(diff.Change{Path: path, Op: diff.Reorder, From: list("b", "a", "c"), To: list("c", "b", "a")})
	if got, want := n.String(), "spec.list: order a, b, c → c, b, a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	n.add(diff.Change{Path: path, Op: diff.Reorder, From: list("c", "b", "a"), To: list("a", "b", "c")})
	n.add(diff.Change{Path: path, Op: diff.Remove, From: "x"})
	if got, want := n.String(), "spec.list: - x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
