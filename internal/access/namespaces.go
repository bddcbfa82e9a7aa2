package access

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// Limited is an Access that makes a limited number of reviews for a request.
type Limited interface {
	Access
	// Left is how many reviews it can still make. Targets that it remembers cost nothing.
	Left() int
}

// left returns how many reviews can be made for a context.
func left(ctx context.Context) int {
	a, _ := ctx.Value(accessKey{}).(Access)
	return leftOf(a)
}

func leftOf(a Access) int {
	if a, ok := a.(Limited); ok {
		return a.Left()
	}
	return math.MaxInt
}

// Namespaces are the namespaces to which a query must be narrowed, so that the viewer's reviews suffice.
type Namespaces struct {
	// All says that the query needs no narrowing.
	All bool
	// Names are namespaces in which the viewer may see changes that the query selects, those that changed most recently
	// first.
	Names []string
	// Unchecked says that there may be others. Which ones, and how many, the viewer must not learn.
	Unchecked bool
}

const (
	// spareReviews are left for places that the journal has since.
	spareReviews = 40
	// probedAtOnce is how many namespaces are checked at a time, and probedKinds how many kinds of each before it counts as
	// not visible.
	probedAtOnce = 64
	probedKinds  = 3
	// maxNamespaces bounds the names of a query.
	maxNamespaces = 100
	// recencySteps is how finely the order of namespaces distinguishes times.
	recencySteps = 100
)

// Namespaces finds namespaces in which the viewer may see changes that a query selects; Until must be set. It makes as many
// reviews as the viewer has left, except for those that reading the changes in the returned namespaces needs. Its error is
// a *CheckError, or the journal's.
//
// Kubernetes does not answer in which namespaces a user has rights. So each namespace is checked for the kinds that it has,
// beginning with the namespaces that changed most recently. Which namespaces the query selects makes no difference: else the
// time would tell the names of others.
func (s *Source) Namespaces(ctx context.Context, q journal.Query) (Namespaces, error) {
	counter, ok := s.Journal.(Counter)
	if !ok || left(ctx) == math.MaxInt {
		return Namespaces{All: true}, nil
	}
	p := prober{ctx: ctx, checker: newChecker(ctx), wide: map[selection.Place]bool{}}
	kinds, err := s.Kinds(ctx) // it also checks cluster-scoped kinds, which every page needs
	if err != nil {
		return Namespaces{}, err
	}
	kinds = slices.DeleteFunc(s.concerned(kinds, &q), func(k journal.Kind) bool { return !k.Namespaced })
	if all, err := p.widely(kinds); all || err != nil {
		return Namespaces{All: all}, err
	}
	places, err := s.Journal.Places(ctx)
	if err != nil {
		return Namespaces{}, err
	}
	if q.Since.IsZero() {
		if q.Since, err = s.RecordedSince(ctx); err != nil || q.Since.IsZero() {
			return Namespaces{All: true}, err
		}
	}
	step := max(q.Until.Sub(q.Since)/recencySteps, time.Second).Round(time.Second)
	q.Namespaces, q.Without, q.Scope = nil, nil, nil
	series, err := counter.Counts(ctx, q, step)
	if err != nil {
		return Namespaces{}, err
	}
	p.gather(kinds, places, series)
	return p.probe()
}

// prober checks namespaces.
type prober struct {
	*checker
	ctx  context.Context
	wide map[selection.Place]bool // kinds that the viewer may get in all namespaces
	gaps []Target                 // other kinds with gaps in all namespaces
	all  []*candidate
}

// candidate is a namespace of the journal.
type candidate struct {
	name    string
	kinds   []Target // that need a review in it, those with the most changes first
	changes map[Target]int
	last    int // the step of the newest change
	newest  int // changes in it
	asked   int // kinds that were checked
	visible bool
	out     bool // it is visible, but the reviews do not suffice for it
}

// widely checks the kinds in all namespaces, and reports whether the viewer may get them all.
func (p *prober) widely(kinds []journal.Kind) (bool, error) {
	for _, k := range kinds {
		p.want(TargetOf(k, ""))
	}
	if err := p.decide(); err != nil {
		return false, err
	}
	all := true
	for _, k := range kinds {
		p.wide[placeOf(k, "")] = p.known[TargetOf(k, "")]
		all = all && p.known[TargetOf(k, "")]
	}
	return all, nil
}

// gather makes the candidates.
func (p *prober) gather(kinds []journal.Kind, places map[selection.Place]bool, series []journal.Series) {
	byName := map[string]*candidate{}
	targets := map[selection.Place]Target{}
	for _, k := range kinds {
		targets[placeOf(k, "")] = TargetOf(k, "")
	}
	for place := range places {
		ofKind := selection.Place{Cluster: place.Cluster, Resource: place.Resource}
		t, concerned := targets[ofKind]
		switch {
		case !concerned:
			continue
		case place.Namespace == "":
			if !p.wide[ofKind] {
				p.gaps = append(p.gaps, t)
			}
			continue
		case byName[place.Namespace] == nil:
			byName[place.Namespace] = &candidate{name: place.Namespace, changes: map[Target]int{}, last: -1}
		}
		c := byName[place.Namespace]
		if p.wide[ofKind] {
			c.visible = true
		} else {
			c.kinds = append(c.kinds, t)
		}
	}
	for _, s := range series {
		c := byName[s.Namespace]
		if c == nil || s.Op == event.Absent {
			continue
		}
		for i, n := range s.Counts {
			c.changes[TargetOf(s.Kind, "")] += n
			if n > 0 && i > c.last {
				c.last, c.newest = i, 0
			}
			if i == c.last {
				c.newest += n
			}
		}
	}
	p.all = slices.SortedFunc(maps.Values(byName), func(a, b *candidate) int {
		return cmp.Or(b.last-a.last, b.newest-a.newest, cmp.Compare(a.name, b.name))
	})
	for _, c := range p.all {
		slices.SortFunc(c.kinds, func(a, b Target) int {
			return cmp.Or(rarelyGranted(a)-rarelyGranted(b), c.changes[b]-c.changes[a], cmp.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource))
		})
	}
}

// rarelyGranted is 1 for Secrets, which few viewers may get, so that other kinds are checked first.
func rarelyGranted(t Target) int {
	if t.Group == "" && t.Resource == "secrets" {
		return 1
	}
	return 0
}

// rest is how many reviews a visible candidate still needs, with one for its creation. A gap of a whole kind is shown where the
// viewer may see the kind in a named namespace.
func (p *prober) rest(c *candidate) int {
	n := len(c.kinds) + 1
	for _, t := range p.gaps {
		if !slices.Contains(c.kinds, t) {
			n++
		}
	}
	return n - c.asked
}

// probe checks the candidates.
func (p *prober) probe() (Namespaces, error) {
	needed := 0
	for _, c := range p.all {
		needed += len(c.kinds) + 1
	}
	if needed <= left(p.ctx)-spareReviews {
		return Namespaces{All: true}, nil
	}
	reserved, found := 0, 0
	fits := func(more int) bool { return reserved+more <= left(p.ctx)-spareReviews && found < maxNamespaces }
	take := func(c *candidate) {
		if !fits(p.rest(c)) {
			c.visible, c.out = false, true
			return
		}
		reserved += p.rest(c)
		found++
	}
	n := Namespaces{}
	for _, c := range p.all {
		if c.visible {
			take(c)
		}
	}
	for round := range probedKinds {
		for from := 0; from < len(p.all); from += probedAtOnce {
			open := slices.DeleteFunc(slices.Clone(p.all[from:min(from+probedAtOnce, len(p.all))]), func(c *candidate) bool {
				return c.visible || c.out || c.asked != round || round >= len(c.kinds)
			})
			if len(open) == 0 {
				continue
			}
			if !fits(1) {
				break
			}
			open = open[:min(len(open), left(p.ctx)-spareReviews-reserved)]
			if err := p.ask(open, round); err != nil {
				return Namespaces{}, err
			}
			for _, c := range open {
				if c.visible {
					take(c)
				}
			}
		}
	}
	for _, c := range p.all {
		if c.visible {
			n.Names = append(n.Names, c.name)
		}
		n.Unchecked = n.Unchecked || !c.visible && (c.out || c.asked < len(c.kinds))
	}
	return n, nil
}

// ask checks one kind of each candidate.
func (p *prober) ask(open []*candidate, kind int) error {
	target := func(c *candidate) Target {
		t := c.kinds[kind]
		t.Namespace = c.name
		return t
	}
	for _, c := range open {
		p.want(target(c))
	}
	if err := p.decide(); err != nil {
		return err
	}
	for _, c := range open {
		c.asked++
		c.visible = p.known[target(c)]
	}
	return nil
}
