package story

import (
	"cmp"
	"slices"

	"github.com/tattler-dev/tattler/internal/owners"
)

// Tree returns the story that another one belongs to, or that one itself, with all that belongs to it; false if there is none.
// The copies are the caller's.
func (e *Engine) Tree(id string) (Tree, bool) {
	head := e.story(id)
	if head == nil {
		return Tree{}, false
	}
	head = e.head(head)
	t := Tree{Story: *head, Seq: head.Moved}
	add := func(n owners.Node) {
		o := e.objects[n]
		if o == nil {
			return
		}
		for _, s := range o.stories {
			if s != head && (s.Via == head.ID || e.head(s) == head) {
				t.Parts = append(t.Parts, *s)
			}
		}
	}
	if kind := head.Object.GroupKind(); kind == "Node" || kind == "Namespace" {
		for n := range e.objects {
			add(n)
		}
	} else {
		add(head.Object.Node())
		e.owners.Below(head.Object.Node(), add)
	}
	slices.SortFunc(t.Parts, func(a, b Story) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.ID, b.ID)) })
	t.Via = e.explained(&t)
	return t, true
}

// head returns the story that a story belongs to.
func (e *Engine) head(s *Story) *Story {
	for range owners.Depth {
		of := s.Of()
		p := e.story(of)
		if p == nil {
			break
		}
		s = p
	}
	return s
}

// explained returns the stories that explain a tree, other than its own.
func (e *Engine) explained(t *Tree) (all []Story) {
	seen := map[string]bool{"": true, t.ID: true}
	for _, s := range append([]Story{t.Story}, t.Parts...) {
		if seen[s.Via] {
			continue
		}
		seen[s.Via] = true
		if v := e.story(s.Via); v != nil {
			all = append(all, *v)
		}
	}
	return all
}
