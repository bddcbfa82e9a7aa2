package story

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/owners"
)

// place finds the story that another one is part of: that of the highest object above it that covers it.
func (e *Engine) place(s *Story) {
	e.link(s)
	switch n := s.Object.Node(); s.Object.GroupKind() {
	case "Node":
		e.within(place{s.Object.Cluster, true, s.Object.Name})
	case "Namespace":
		e.within(place{s.Object.Cluster, false, s.Object.Name})
	default:
		e.relink(n)
	}
}

// link finds what a story is part of, and what explains it.
func (e *Engine) link(s *Story) {
	parent, via := e.parent(s), e.via(s)
	if parent != s.Parent || via != s.Via {
		s.Parent, s.Via = parent, via
		e.update(s)
		if s.All != event.Normal {
			e.raiseParent(s, s.Moved)
		}
	}
}

// via returns the story of a pod's node, or of its namespace's deletion, that covers a story.
func (e *Engine) via(s *Story) string {
	in := []place{{s.Object.Cluster, false, s.Object.Namespace}, {s.Object.Cluster, true, s.State.Facts.Node}}
	for _, p := range in {
		n, ok := e.places[p]
		if !ok || p.name == "" || e.objects[n] == nil {
			continue
		}
		for _, over := range slices.Backward(e.objects[n].stories) {
			switch {
			case !e.counts(over):
			case p.node && over.Kind == Drain && s.Kind != Deletion:
			case !p.node && over.Kind != Deletion:
			case over.covers(s, delay):
				return over.ID
			}
		}
	}
	return ""
}

// within places the stories of everything on a node, or in a namespace, again.
func (e *Engine) within(p place) {
	for _, o := range e.objects {
		for _, s := range o.stories {
			if e.counts(s) && (p.node && s.State.Facts.Node == p.name || !p.node && s.Object.Namespace == p.name) {
				e.link(s)
			}
		}
	}
}

func (e *Engine) parent(s *Story) string {
	chain := e.owners.Chain(s.Object.Node())
	for i := len(chain) - 1; i >= 0; i-- {
		o := e.objects[chain[i].Node]
		if o == nil {
			continue
		}
		for _, covers := range []func(p *Story) bool{
			func(p *Story) bool { return p.Kind.asked() && p.covers(s, 0) }, func(p *Story) bool { return p.covers(s, delay) }, func(p *Story) bool { return p.follows(s) },
		} {
			for _, p := range slices.Backward(o.stories) {
				if e.counts(p) && covers(p) {
					return p.ID
				}
			}
		}
	}
	return ""
}

// delay is how long after a write it may be seen, at most.
const delay = 5 * time.Second

// earliest returns when the story may have begun, if its beginning was seen with a delay at most: the times in objects are in
// whole seconds.
func (s *Story) earliest(delay time.Duration) time.Time {
	at := s.Begin.Truncate(time.Second)
	if s.Facts.Seen {
		at = at.Add(-delay)
	}
	return at
}

// follows reports whether a story that nobody asked for came of a deletion below it.
func (s *Story) follows(part *Story) bool {
	return part.Kind == Deletion && (s.Kind == Disruption || s.Kind == Incident) && (part.Open() || !part.End.Before(s.Begin)) && (s.Open() || !part.Begin.After(s.End))
}

// covers reports whether a story of an object below s's is part of s. What somebody asked for covers what began while it was
// under way; anything else covers what it overlaps. Nothing comes after the end of an object but the end of what it owned.
func (s *Story) covers(part *Story, delay time.Duration) bool {
	switch {
	case s.Kind == Status || s.Kind == Report:
		return false
	case s.State.Word == Gone:
		return part.Kind == Deletion && !part.Begin.Before(s.earliest(delay))
	case s.Kind.asked() || part.Kind == Deletion:
		return (s.Unknown || !part.Begin.Before(s.earliest(delay))) && (s.Open() || !part.Begin.After(s.End))
	}
	return (part.Open() || s.Unknown || !part.End.Before(s.Begin)) && (s.Open() || !part.Begin.After(s.End))
}

// relink places the stories of all objects below n again, because a story of n or an owner is news.
func (e *Engine) relink(n owners.Node) {
	again := func(n owners.Node) {
		o := e.objects[n]
		if o == nil {
			return
		}
		for _, s := range o.stories {
			if e.counts(s) {
				e.link(s)
			}
		}
	}
	again(n)
	e.owners.Below(n, again)
}
