// Package owners knows who belongs to whom: the chain of controllers from a pod to its Deployment.
//
// An object names only its direct controller, so the chain is learned from the objects in between, in any order. What a
// deleted object belonged to stays known until the graph is full: its dependents outlive it.
package owners

import "github.com/tattler-dev/tattler/event"

// Node identifies an object.
type Node struct{ Cluster, UID string }

// depth bounds a chain. A CronJob owns Jobs, which own pods; users may write circular references.
const depth = 8

// Graph holds the controllers of objects. The zero Graph is not ready for use: see New. It is not safe for concurrent use.
type Graph struct {
	most           int
	owners, older  map[Node]Owner
	members, olden map[Node]map[Node]bool
}

// Owner is the controller of an object.
type Owner struct {
	Node
	Kind, Name string
}

// New returns a graph that holds the controllers of at least most objects, and of at most twice as many: those that were
// seen last.
func New(most int) *Graph {
	return &Graph{most: most, owners: map[Node]Owner{}, members: map[Node]map[Node]bool{}}
}

// See learns the controller of an object, and reports whether that is news. Without a controller, there is nothing to learn.
func (g *Graph) See(n Node, owner *event.Owner) bool {
	if owner == nil || n.UID == "" || owner.UID == "" || owner.UID == n.UID {
		return false
	}
	o := Owner{Node{n.Cluster, owner.UID}, owner.Kind, owner.Name}
	if was, ok := g.owners[n]; ok && was == o {
		return false
	}
	was, known := g.older[n]
	if len(g.owners) >= g.most {
		g.owners, g.older = make(map[Node]Owner, g.most/4), g.owners
		g.members, g.olden = map[Node]map[Node]bool{}, g.members
	}
	g.owners[n] = o
	if g.members[o.Node] == nil {
		g.members[o.Node] = map[Node]bool{}
	}
	g.members[o.Node][n] = true
	return !known || was != o
}

// Owner returns an object's controller; false if none is known.
func (g *Graph) Owner(n Node) (Owner, bool) {
	if o, ok := g.owners[n]; ok {
		return o, true
	}
	o, ok := g.older[n]
	return o, ok
}

// Chain returns the controllers of an object, the nearest first, as far as they are known.
func (g *Graph) Chain(n Node) []Owner {
	var chain []Owner
	for range depth {
		o, ok := g.Owner(n)
		if !ok {
			break
		}
		chain = append(chain, o)
		n = o.Node
	}
	return chain
}

// Below calls each with every known object that belongs to n, directly or not, in no order.
func (g *Graph) Below(n Node, each func(Node)) { g.below(n, each, map[Node]bool{n: true}, depth) }

func (g *Graph) below(n Node, each func(Node), seen map[Node]bool, left int) {
	if left == 0 {
		return
	}
	for _, members := range []map[Node]bool{g.members[n], g.olden[n]} {
		for m := range members {
			if !seen[m] {
				seen[m] = true
				each(m)
				g.below(m, each, seen, left-1)
			}
		}
	}
}
