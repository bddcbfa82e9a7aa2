package relations

import (
	"k8s.io/apimachinery/pkg/labels"
)

// Graph holds the relations of many objects. Versions of one object add up: a relation holds if it held in some version. The
// zero value is not usable; see NewGraph. It is not safe for concurrent use.
type Graph struct {
	nodes map[Ref]*node
	// By namespace, in the order in which they were added.
	selecting, labelled map[string][]*node
}

// node is an object. Others may refer to it although none of its versions is known.
type node struct {
	ref       Ref
	uids      map[string]bool
	edges     []Edge
	back      []Edge // of others to this object: To is the holder, UID is this object's
	selectors []labels.Selector
	labels    []labels.Set
	// known are the edges, and the texts of the selectors and of the labels: an object may have thousands of references, and as
	// many versions.
	known map[any]bool
}

// selectorText and labelsText are elements of node.known.
type (
	selectorText string
	labelsText   string
)

// learn reports whether something about the object was not known, and is from now on.
func (n *node) learn(what any) bool {
	if n.known[what] {
		return false
	}
	if n.known == nil {
		n.known = map[any]bool{}
	}
	n.known[what] = true
	return true
}

// NewGraph returns an empty graph.
func NewGraph() *Graph {
	return &Graph{nodes: map[Ref]*node{}, selecting: map[string][]*node{}, labelled: map[string][]*node{}}
}

func (g *Graph) node(r Ref) *node {
	n := g.nodes[r]
	if n == nil {
		n = &node{ref: r}
		g.nodes[r] = n
	}
	return n
}

// Add adds what a version of an object says. What is known already takes no memory.
func (g *Graph) Add(f Facts) {
	n := g.node(f.Self)
	if f.UID != "" {
		if n.uids == nil {
			n.uids = map[string]bool{}
		}
		n.uids[f.UID] = true
	}
	for _, e := range f.Edges {
		if !n.learn(e) {
			continue
		}
		n.edges = append(n.edges, e)
		to := g.node(e.To)
		to.back = append(to.back, Edge{e.Relation, f.Self, e.UID})
	}
	if s := f.Selector; s != nil && n.learn(selectorText(s.String())) {
		if n.selectors = append(n.selectors, s); len(n.selectors) == 1 {
			g.selecting[f.Self.Namespace] = append(g.selecting[f.Self.Namespace], n)
		}
	}
	if l := f.PodLabels; l != nil && n.learn(labelsText(l.String())) {
		if n.labels = append(n.labels, l); len(n.labels) == 1 {
			g.labelled[f.Self.Namespace] = append(g.labelled[f.Self.Namespace], n)
		}
	}
}

// Neighbour is an object in one relation to another one. Back means that the neighbour is the holder: it owned by, names or
// selects the other one.
type Neighbour struct {
	Ref
	Relation Relation
	Back     bool
}

// Neighbours returns the objects directly related to one: those that it refers to, then those that refer to it.
func (g *Graph) Neighbours(r Ref) []Neighbour {
	n := g.nodes[r]
	if n == nil {
		return nil
	}
	var all []Neighbour
	seen := map[Neighbour]bool{}
	add := func(to Ref, relation Relation, back bool) {
		if nb := (Neighbour{to, relation, back}); to != r && !seen[nb] {
			seen[nb] = true
			all = append(all, nb)
		}
	}
	for _, e := range n.edges {
		if is(e, g.nodes[e.To]) {
			add(e.To, e.Relation, false)
		}
	}
	if len(n.selectors) > 0 {
		for _, o := range g.labelled[r.Namespace] {
			if matches(n, o) {
				add(o.ref, Selects, false)
			}
		}
	}
	for _, e := range n.back {
		if is(e, n) {
			add(e.To, e.Relation, true)
		}
	}
	if len(n.labels) > 0 {
		for _, o := range g.selecting[r.Namespace] {
			if matches(o, n) {
				add(o.ref, Selects, true)
			}
		}
	}
	return all
}

// is reports whether a reference is to an object: its UID, if both are known, is one that the object had.
func is(e Edge, to *node) bool {
	return e.UID == "" || to == nil || len(to.uids) == 0 || to.uids[e.UID]
}

// matches reports whether a selector of one object matches labels of another one.
func matches(selecting, labelled *node) bool {
	for _, s := range selecting.selectors {
		for _, l := range labelled.labels {
			if s.Matches(l) {
				return true
			}
		}
	}
	return false
}
