package store

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// every is the expectation of a queue that never overflows: the initial state, then every change.
type every struct {
	base
	due   []Delta
	gaps  []int // number of deltas due before each gap
	knows map[Key]*compact.Version
	taken bool
}

func (e *every) start(s *source, at time.Time) {
	e.due, e.knows = nil, map[Key]*compact.Version{}
	for _, k := range slices.SortedFunc(maps.Keys(s.ref.has), compareKeys) {
		if v := s.ref.has[k].v; e.skip {
			e.knows[k] = v
		} else {
			e.due = append(e.due, Delta{Op: Added, Key: k, New: v, Initial: true, At: at})
		}
	}
}

func (e *every) push(means []meaning, gap, firstList bool, _ time.Time) {
	if gap {
		e.gaps = append(e.gaps, len(e.due))
	}
	if e.skip && firstList {
		e.knows = e.ref.versions()
		return
	}
	for _, m := range means {
		e.due = append(e.due, m.Delta)
	}
}

func (e *every) left() int { return len(e.due) }

func (e *every) check(b *Batch) {
	if !e.taken && (len(b.Deltas) > 0 || b.Phase == Live) {
		e.taken = true
		maps.Copy(e.state, e.knows)
	}
	if b.Gap != nil && b.Gap.Reason != "test" {
		e.Fatalf("gap %+v within the budget", b.Gap)
	}
	if len(b.Deltas) > len(e.due) {
		e.Fatalf("%d deltas, want %d", len(b.Deltas), len(e.due))
	}
	for i := range b.Deltas {
		e.compare(&b.Deltas[i], &e.due[i])
	}
	if b.Gap != nil {
		if len(e.gaps) == 0 || e.gaps[0] != 0 {
			e.Fatalf("unexpected gap; want gaps before %v", e.gaps)
		}
		e.gaps = e.gaps[1:]
	}
	e.due = e.due[len(b.Deltas):]
	for i := range e.gaps {
		if e.gaps[i] -= len(b.Deltas); e.gaps[i] < 0 {
			e.Fatalf("%d deltas from behind a gap", -e.gaps[i])
		}
	}
}

// budgeted is the expectation of a queue that sometimes overflows: every change in order, or fewer after a gap.
type budgeted struct {
	base
	log   []Delta        // the changes since it joined
	next  map[Key]int    // by key: the consumer's position in log
	at    map[string]int // by epoch and version: the length of log when the stream came there
	owed  map[Key]bool   // initial objects that it does not have yet
	knows map[Key]*compact.Version
	taken bool
	gap   bool // a gap was delivered since the consumer was last live
}

func (g *budgeted) start(s *source, _ time.Time) {
	g.knows, g.owed = s.ref.versions(), map[Key]bool{}
	if !g.skip {
		for k := range g.knows {
			g.owed[k] = true
		}
		g.knows = nil
	}
	g.mark()
}

// mark notes where the log stands at a version. A change without a new version, as of an object's form, comes after it: a
// batch at that version may be from before the change, which then follows in the next batch.
func (g *budgeted) mark() {
	at := fmt.Sprint(g.ref.epoch, g.ref.version)
	if _, known := g.at[at]; g.ref.live() && !known {
		g.at[at] = len(g.log)
	}
}

func (g *budgeted) push(means []meaning, _, firstList bool, _ time.Time) {
	if g.skip && firstList {
		g.knows = g.ref.versions()
	} else {
		for _, m := range means {
			g.log = append(g.log, m.Delta)
		}
	}
	g.mark()
}

// left returns the number of objects that differ from the consumer's.
func (g *budgeted) left() int {
	have, n := g.state, 0
	if !g.taken {
		have = g.knows
	}
	for k, h := range g.ref.has {
		if v := have[k]; v == nil || !alike(v, h.v) {
			n++
		}
	}
	for k := range have {
		if g.ref.has[k] == nil {
			n++
		}
	}
	return n
}

func (g *budgeted) check(b *Batch) {
	if !g.taken && (len(b.Deltas) > 0 || b.Phase == Live) {
		g.taken = true
		maps.Copy(g.state, g.knows)
	}
	g.gap = g.gap || b.Gap != nil && b.Gap.Reason != "test"
	for i := range b.Deltas {
		g.one(&b.Deltas[i])
	}
	if b.Phase != Live {
		return
	}
	end := g.at[fmt.Sprint(b.Epoch, b.Version)]
	for i, d := range g.log[:end] {
		if i >= g.next[d.Key] {
			g.skipped(d.Key, end)
		}
	}
	g.gap = false
}

// one finds a delta in the log.
func (g *budgeted) one(d *Delta) {
	if g.owed[d.Key] && d.Op == Added && d.Initial {
		delete(g.owed, d.Key)
		for i := len(g.log) - 1; i >= 0; i-- {
			if g.log[i].New == d.New {
				g.next[d.Key] = i + 1
			}
		}
		return
	}
	for i := g.next[d.Key]; i < len(g.log); i++ {
		if l := &g.log[i]; l.Key == d.Key && l.New == d.New && (d.New != nil || l.Old.UID() == d.Old.UID()) {
			g.skipped(d.Key, i)
			g.next[d.Key] = i + 1
			return
		}
	}
	g.Fatalf("%s: did not happen after what the consumer has seen", describe(d))
}

// skipped checks that versions of an object that a consumer misses, before a position in the log, follow a gap,
// unless they are changes of its initial state.
func (g *budgeted) skipped(k Key, end int) {
	for i := g.next[k]; i < end; i++ {
		if d := &g.log[i]; d.Key == k {
			if !g.gap && !g.owed[k] && !(d.Op == Added && d.Initial) {
				g.Fatalf("%s: skipped without a gap", describe(d))
			}
			break
		}
	}
	g.next[k] = end
	delete(g.owed, k)
}
