package web

import (
	"cmp"
	"context"
	"slices"

	"github.com/tattler-dev/tattler/internal/journal"
)

// swim are lanes: when each object, or each manager, changed.
type swim struct {
	Lanes []lane
	Note  string
}

// lane is a row of marks.
type lane struct {
	Name, URL string
	Parts     []lanePart
	Total     int

	counts [][len(stack)]int
}

// lanePart is a mark, in thousandths of the width.
type lanePart struct {
	Class       string
	N, X, Width int
}

// maxLanes is how many lanes are shown: those with the most changes.
const maxLanes = 12

// lanes makes the lanes of a histogram's time range.
func (p *Page) lanes(ctx context.Context, f *filter, h *histogram) (s swim, err error) {
	by := f.values.Get("lanes")
	switch by {
	case "":
		return s, nil
	case "object", "manager":
	default:
		return s, mistake("lanes: say object or manager, not %q", by)
	}
	all := map[string]*lane{}
	read, until, err := p.scanned(ctx, f, h, func(e *journal.Entry) {
		i := int(e.Time.Sub(h.Start) / h.Step)
		c := classOf(e.Op)
		if c < 0 || i < 0 || i >= len(h.Bars) {
			return
		}
		l := p.laneOf(f, by, e)
		if known := all[l.Name]; known != nil {
			l = known
		} else {
			l.counts = make([][len(stack)]int, len(h.Bars))
			all[l.Name] = l
		}
		l.counts[i][c]++
		l.Total++
	})
	if err != nil {
		damaged, err := p.withoutDamage("lanes", err)
		if damaged {
			s.Note = "not shown, because " + partDamaged
		}
		return s, err
	}
	if !until.IsZero() {
		s.Note = "those of the newest " + thousands(read) + " changes; earlier ones are not shown"
	}
	for _, l := range all {
		s.Lanes = append(s.Lanes, *l)
	}
	slices.SortFunc(s.Lanes, func(a, b lane) int { return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name)) })
	if len(s.Lanes) > maxLanes {
		s.Lanes = s.Lanes[:maxLanes]
	}
	for i := range s.Lanes {
		s.Lanes[i].draw(h)
	}
	return s, nil
}

// laneOf returns the empty lane of a change.
func (p *Page) laneOf(f *filter, by string, e *journal.Entry) *lane {
	if by == "manager" {
		return &lane{Name: cmp.Or(e.Manager, "?"), URL: f.with("/", "manager", cmp.Or(e.Manager, "?"))}
	}
	name := e.Kind.Resource + "/" + e.Name
	if e.Namespace != "" {
		name = e.Namespace + " " + name
	}
	cluster := f.values.Get("cluster")
	if len(f.clusters) > 0 {
		cluster = e.Kind.ClusterOr(f.own)
		name = cluster + " " + name
	}
	return &lane{Name: name, URL: f.with("/", "type", e.Kind.GroupResource(), "name", e.Name, "namespace", e.Namespace, "cluster", cluster)}
}

// draw makes the marks: of each step, the operation with the most changes.
func (l *lane) draw(h *histogram) {
	for i, c := range l.counts {
		best := 0
		sum := 0
		for k, n := range c {
			sum += n
			if n > c[best] {
				best = k
			}
		}
		if sum > 0 {
			b := h.Bars[i]
			l.Parts = append(l.Parts, lanePart{stack[best].class, sum, b.X, max(b.Width-1, 3)})
		}
	}
}
