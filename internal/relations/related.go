package relations

// MaxSteps is the maximum number of relations between a named object and a related one.
const MaxSteps = 10

// Found is a related object. Via leads to it; nil for a named object.
type Found struct {
	Neighbour
	Via *Found
	// Steps is the number of relations from the named object.
	Steps int
}

// role is how an object is related to the named ones, and so which relations are followed from it.
type role uint8

const (
	own   role = iota // named, or owned by a named object, directly or not
	up                // owns a named object, directly or not
	near              // related to one of those
	route             // leads to a near Service
	over              // owns a near object or a route
	leaf              // nothing but its Events is followed
)

type step struct {
	role     role
	relation Relation
	back     bool
}

// followed says which relations are followed from an object, and the role of the object that they lead to.
//
// The named objects and those that they own show everything in a direct relation. Further away, only single relations are
// followed, so that an object that many share does not bring in its other users.
var followed = map[step]role{
	{own, OwnedBy, true}:  own,
	{own, OwnedBy, false}: up,
	{own, Names, false}:   near,
	{own, Names, true}:    near,
	{own, Binds, false}:   near,
	{own, Binds, true}:    near,
	{own, Selects, false}: near,
	{own, Selects, true}:  near,
	{own, Scales, false}:  near,
	{own, Scales, true}:   near,
	{own, Routes, false}:  near,
	{own, Routes, true}:   route,
	{own, RunsOn, false}:  leaf,
	{own, About, false}:   near,
	{own, About, true}:    leaf,

	{up, OwnedBy, false}: up,
	{up, Names, false}:   near,
	{up, Selects, true}:  near,
	{up, Scales, true}:   near,
	{up, About, true}:    leaf,

	{near, OwnedBy, false}: over,
	{near, OwnedBy, true}:  leaf, // the EndpointSlices of a Service
	{near, Binds, false}:   leaf,
	{near, Routes, true}:   route,
	{near, About, true}:    leaf,

	{route, Names, false}:   leaf,
	{route, OwnedBy, false}: over,
	{route, About, true}:    leaf,

	{over, OwnedBy, false}: over,
	{over, About, true}:    leaf,

	{leaf, About, true}: leaf,
}

// hub reports whether an object is one that most objects of a cluster or a namespace refer to: it is found, and its Events
// are, but no other reference to it is followed.
func hub(r Ref) bool {
	switch r.Kind {
	case "Node", "Namespace":
		return r.Group == ""
	case "PriorityClass", "RuntimeClass", "Gateway":
		return r.Group != ""
	case "ServiceAccount":
		return r.Name == "default"
	case "ConfigMap":
		return r.Name == "kube-root-ca.crt"
	}
	return false
}

// Related returns the named objects and everything related to them, each once and with the shortest way to it, in the order
// in which they are found. Objects of which no version is known are included if others refer to them.
func (g *Graph) Related(named []Ref) []*Found {
	type place struct {
		Ref
		role role
	}
	type visit struct {
		*Found
		role role
	}
	seen, found := map[place]bool{}, map[Ref]*Found{}
	var all []*Found
	var queue []visit
	reach := func(f *Found, as role) {
		if seen[place{f.Ref, as}] {
			return
		}
		seen[place{f.Ref, as}] = true
		if found[f.Ref] == nil {
			found[f.Ref] = f
			all = append(all, f)
		}
		queue = append(queue, visit{f, as})
	}
	for _, r := range named {
		reach(&Found{Neighbour: Neighbour{Ref: r}}, own)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v.Steps == MaxSteps {
			continue
		}
		for _, n := range g.Neighbours(v.Ref) {
			if as, ok := next(v.Ref, v.role, n); ok {
				reach(&Found{n, v.Found, v.Steps + 1}, as)
			}
		}
	}
	return all
}

// next returns the role of a neighbour; false if the relation is not followed.
func next(from Ref, as role, n Neighbour) (role, bool) {
	if n.Back && n.Relation != About && hub(from) {
		return 0, false
	}
	to, ok := followed[step{as, n.Relation, n.Back}]
	if ok && hub(n.Ref) {
		to = leaf
	}
	return to, ok
}
