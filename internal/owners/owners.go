// Package owners knows who belongs to whom: the chain of controllers from a pod to its Deployment.
//
// An object names only its direct controller, so the chain is learned from the objects in between, in any order.
package owners

import "github.com/tattler-dev/tattler/event"

// Node identifies an object.
type Node struct{ Cluster, UID string }

// Depth bounds a chain. A CronJob owns Jobs, which own pods; users may write circular references.
const Depth = 8

// Graph holds the controllers of objects. It is not safe for concurrent use.
type Graph struct {
	owners  map[Node]Owner
	members map[Node]map[Node]bool
}

// Owner is the controller of an object.
type Owner struct {
	Node
	Kind, Name string
}

// New returns an empty graph.
func New() *Graph { return &Graph{owners: map[Node]Owner{}, members: map[Node]map[Node]bool{}} }

// See learns the controller of an object, and reports whether that is news. Without a controller, there is nothing to learn.
func (g *Graph) See(n Node, owner *event.Owner) bool {
	if owner == nil || n.UID == "" || owner.UID == "" || owner.UID == n.UID {
		return false
	}
	o := Owner{Node{n.Cluster, owner.UID}, owner.Kind, owner.Name}
	was, known := g.owners[n]
	if known && was == o {
		return false
	}
	g.Forget(n)
	g.owners[n] = o
	if g.members[o.Node] == nil {
		g.members[o.Node] = map[Node]bool{}
	}
	g.members[o.Node][n] = true
	return true
}

// Forget drops what an object belongs to.
func (g *Graph) Forget(n Node) {
	o, ok := g.owners[n]
	if !ok {
		return
	}
	delete(g.owners, n)
	if delete(g.members[o.Node], n); len(g.members[o.Node]) == 0 {
		delete(g.members, o.Node)
	}
}

// Owner returns an object's controller; false if none is known.
func (g *Graph) Owner(n Node) (Owner, bool) {
	o, ok := g.owners[n]
	return o, ok
}

// Keep forgets the controllers of all objects but the wanted ones and what is above them.
func (g *Graph) Keep(wanted func(Node) bool) {
	kept := New()
	for n, o := range g.owners {
		if !wanted(n) {
			continue
		}
		for range Depth {
			if !kept.See(n, &event.Owner{Kind: o.Kind, Name: o.Name, UID: o.UID}) {
				break
			}
			n = o.Node
			above, ok := g.owners[n]
			if !ok {
				break
			}
			o = above
		}
	}
	*g = *kept
}

// Len returns how many controllers are known.
func (g *Graph) Len() int { return len(g.owners) }

// Chain returns the controllers of an object, the nearest first, as far as they are known.
func (g *Graph) Chain(n Node) []Owner {
	var chain []Owner
	for range Depth {
		o, ok := g.owners[n]
		if !ok {
			break
		}
		chain = append(chain, o)
		n = o.Node
	}
	return chain
}

// Below calls each with every known object that belongs to n, directly or not, in no order.
func (g *Graph) Below(n Node, each func(Node)) { g.below(n, each, map[Node]bool{n: true}, Depth) }

func (g *Graph) below(n Node, each func(Node), seen map[Node]bool, left int) {
	if left == 0 {
		return
	}
	for m := range g.members[n] {
		if !seen[m] {
			seen[m] = true
			each(m)
			g.below(m, each, seen, left-1)
		}
	}
}
