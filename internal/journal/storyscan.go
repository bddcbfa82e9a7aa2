package journal

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
)

// Stories yields the selected stories by Seq, the highest first, or with OldestFirst last. One that is part of another
// selected story is left out.
//
// A query selects stories by their objects, the manager of the change that began them, their highest severity or that of a
// part, and by their time: from when they began until when they ended, or last changed. With Until, they are as of then.
// After and Before bound Seq.
func (r *Reader) Stories(ctx context.Context, q Query) iter.Seq2[story.Tree, error] {
	return func(yield func(story.Tree, error) bool) {
		p := storyScan{r: r, q: q}
		for n := 0; !p.done; {
			var page []story.Tree
			err := r.do(ctx, func() (err error) {
				page, err = p.next()
				return err
			})
			if err != nil {
				yield(story.Tree{}, err)
				return
			}
			for i := range page {
				if n++; !yield(page[i], nil) || n == q.Limit {
					return
				}
			}
		}
	}
}

// Story returns the story whose id begins with prefix: else ErrNotFound, or an *AmbiguousError.
func (r *Reader) Story(ctx context.Context, prefix string) (story.Tree, error) {
	return r.StoryWithin(ctx, nil, prefix)
}

// StoryWithin is Story within a scope.
func (r *Reader) StoryWithin(ctx context.Context, scope *Scope, prefix string) (tree story.Tree, err error) {
	err = r.do(ctx, func() error {
		p := storyScan{r: r, q: Query{Scope: scope}}
		if err := p.begin(); err != nil {
			return err
		}
		all, err := r.db.stories("WHERE s.key >= ?1 AND s.key < ?1 || '~' ORDER BY s.key LIMIT 4", prefix)
		all = slices.DeleteFunc(all, func(s storyRecord) bool { return !p.f.shows(&s) })
		switch {
		case err != nil:
			return err
		case len(all) == 0 || prefix == "":
			return ErrNotFound
		case len(all) > 1:
			several := &AmbiguousError{Prefix: prefix}
			for _, s := range all {
				several.IDs = append(several.IDs, s.ID)
			}
			return several
		}
		t, err := p.tell(&all[0])
		if err == nil {
			tree = *t
		}
		return err
	})
	return tree, err
}

// StoryStates returns the states of a story, in the order in which they were proved.
func (r *Reader) StoryStates(ctx context.Context, id string) (states []story.State, err error) {
	err = r.do(ctx, func() (err error) {
		states, err = r.db.states("WHERE story = (SELECT id FROM stories WHERE key = ?) ORDER BY seq, n", id)
		return err
	})
	return states, err
}

// storyScan is one run of Stories, in pages. Each page is one read transaction.
type storyScan struct {
	r        *Reader
	q        Query
	f        *filter
	objects  map[int64]bool // those that the query names; nil: all
	selected map[string]bool
	where    string // further conditions, which selects implies
	args     []any
	open     []story.Tree // those that were read and come later, in order
	seq, id  int64        // of the last one that was read
	size     int          // of the next page
	done     bool
}

// storyPage and maxStoryPage are how many stories the first page of a scan reads, and any: each has twice as many as the one
// before.
const (
	storyPage    = 32
	maxStoryPage = 256
)

func (p *storyScan) next() (page []story.Tree, err error) {
	if p.f == nil {
		if err = p.begin(); err == nil {
			err = p.cutShort()
		}
		if err != nil {
			return nil, err
		}
	}
	err = p.read()
	for err == nil && !p.done && p.f.q.OldestFirst && p.f.until != 0 { // a later one may stand earlier at that time
		err = p.read()
	}
	if err != nil {
		return nil, err
	}
	return p.complete(), nil
}

// read reads some stories.
func (p *storyScan) read() error {
	where, bound := "WHERE (s.moved, s.id) < (?, ?) AND s.moved >= ?"+p.where+" ORDER BY s.moved DESC, s.id DESC LIMIT ", p.f.low
	if p.f.q.OldestFirst {
		where, bound = "WHERE (s.moved, s.id) > (?, ?) AND s.moved <= ?"+p.where+" ORDER BY s.moved, s.id LIMIT ", p.f.high
	}
	all, err := p.r.db.stories(where+strconv.Itoa(p.size), append([]any{p.seq, p.id, bound}, p.args...)...)
	if err != nil {
		return err
	}
	if p.done = len(all) < p.size; !p.done {
		last := &all[len(all)-1]
		p.seq, p.id = last.Moved, last.id
	}
	p.size = min(2*p.size, maxStoryPage)
	return p.heads(all)
}

// heads adds the stories that match to the open ones.
func (p *storyScan) heads(all []storyRecord) error {
	for i := range all {
		t, err := p.head(&all[i])
		if err != nil {
			return err
		}
		if t != nil {
			p.open = append(p.open, *t)
		}
	}
	slices.SortStableFunc(p.open, p.compare)
	return nil
}

// complete takes the open stories that no unread one precedes.
func (p *storyScan) complete() []story.Tree {
	n := len(p.open)
	if !p.done {
		n = 0
		for n < len(p.open) && p.compare(p.open[n], story.Tree{Seq: p.seq}) <= 0 {
			n++
		}
	}
	page := slices.Clone(p.open[:n])
	p.open = slices.Delete(p.open, 0, n)
	return page
}

// narrow makes the conditions that SQLite checks, so that stories that do not match cost less.
func (p *storyScan) narrow() {
	f := p.f
	if f.severities != 0 {
		p.where = fmt.Sprintf(` AND s."all" >= %d`, lowestBit(f.severities))
	}
	oneOf := func(ids map[int64]bool, condition string) {
		where, args := anyOf(ids, condition)
		p.where, p.args = p.where+where, append(p.args, args...)
	}
	if p.objects != nil { // a workload may own thousands
		p.where += " AND s.object IN (SELECT value FROM json_each(?))"
		p.args = append(p.args, strings.Join(strings.Fields(fmt.Sprint(slices.Sorted(maps.Keys(p.objects)))), ","))
	} else {
		oneOf(f.kinds, ` AND s."of" %s`)
		oneOf(f.namespaces, " AND o.namespace %s")
	}
	if !f.limited() { // as for changes
		oneOf(f.managers, " AND s.manager %s")
	}
}

func lowestBit(bits uint64) (n int) {
	for bits&1 == 0 {
		bits, n = bits>>1, n+1
	}
	return n
}

// begin resolves the query.
func (p *storyScan) begin() (err error) {
	p.selected, p.size = map[string]bool{}, storyPage
	if p.f, err = p.r.db.filter(p.q); err != nil {
		return err
	}
	if p.f.byObject {
		p.objects = map[int64]bool{}
		for _, o := range p.f.objects {
			p.objects[o.id] = true
		}
	}
	p.narrow()
	if p.seq, p.id = p.f.high, 1<<62; p.f.q.OldestFirst {
		p.seq, p.id = p.f.low, 0
	}
	return nil
}

// withParts is the condition of stories that parts may have moved, so that one whose parts are out of sight may stand at an
// earlier change.
const withParts = "EXISTS (SELECT 1 FROM stories c WHERE c.parent = s.key)"

// cutShort reads the stories that stand earlier than they are found by the change that moved them, because that is later than the
// query's time, or moved a part that is out of sight.
func (p *storyScan) cutShort() error {
	f := p.f
	last, err := p.r.db.integer("SELECT max(seq) FROM changes WHERE seq <= ?", f.high)
	if err != nil {
		return err
	}
	var where string
	args := []any{last, f.until}
	switch {
	case f.until != 0:
		where = "WHERE s.moved > ?1 AND s.first <= ?1 AND s.begin < ?2"
	case f.limited() && f.q.OldestFirst:
		where, args = "WHERE s.moved BETWEEN ?1 AND ?2 AND "+withParts, []any{f.low, last}
	case f.limited() && f.q.Before != 0:
		where, args = "WHERE s.moved > ?1 AND s.first <= ?1 AND "+withParts, []any{last}
	default:
		return nil
	}
	all, err := p.r.db.stories(where+p.where+" ORDER BY s.id", append(args, p.args...)...)
	if err != nil {
		return err
	}
	if f.until == 0 && f.q.OldestFirst {
		p.where += " AND NOT " + withParts
	}
	return p.heads(all)
}

func (p *storyScan) compare(a, b story.Tree) int {
	if p.f.q.OldestFirst {
		return cmp.Compare(a.Seq, b.Seq)
	}
	return cmp.Compare(b.Seq, a.Seq)
}

// head tells a story that matches and is no part of another one that is selected; else it returns nil.
func (p *storyScan) head(s *storyRecord) (*story.Tree, error) {
	if !p.selects(s) {
		return nil, nil
	}
	if part, err := p.hasHead(s); part || err != nil {
		return nil, err
	}
	t, err := p.tell(s)
	if err != nil || t == nil {
		return nil, err
	}
	if p.q.Before != 0 && t.Seq >= p.q.Before || !p.wants(t) {
		return nil, nil
	}
	return t, nil
}

// wants reports whether a story has a wanted severity and did not end, or stop to change, too early.
func (p *storyScan) wants(t *story.Tree) bool {
	worst, at := t.Worst, t.Latest()
	for i := range t.Parts {
		part := &t.Parts[i]
		if severityNumber(part.Worst) > severityNumber(worst) {
			worst = part.Worst
		}
		if part.Latest().After(at) {
			at = part.Latest()
		}
	}
	bits := uint64(1) << severityNumber(worst)
	if worst != event.Normal && t.State.Word == story.Done {
		bits |= 1 << severityNumber(event.Recovery)
	}
	return (p.f.severities == 0 || p.f.severities&bits != 0) && (p.f.since == 0 || at.UnixMilli() >= p.f.since)
}

// hasHead reports whether a story belongs to another one that is selected: one that it is part of, or for an incident the one
// that explains it.
func (p *storyScan) hasHead(s *storyRecord) (bool, error) {
	of := s.Of()
	if of == "" {
		return false, nil
	}
	known, ok := p.selected[of]
	if ok {
		return known, nil
	}
	heads, err := p.r.db.stories("WHERE s.key = ?", of)
	known = err == nil && len(heads) > 0 && p.selects(&heads[0])
	if len(p.selected) >= storyRows {
		clear(p.selected)
	}
	p.selected[of] = known
	return known, err
}

const storyParts = `WHERE s.key IN (WITH RECURSIVE part(key) AS (SELECT key FROM stories WHERE parent = ?1 OR via = ?1
	UNION SELECT c.key FROM part JOIN stories c ON c.parent = part.key) SELECT key FROM part) ORDER BY s.begin, s.id`

// tell returns a story with its visible parts, as of the end of the query's time; nil if it began later.
func (p *storyScan) tell(s *storyRecord) (*story.Tree, error) {
	all, err := p.r.db.stories(storyParts, s.ID)
	if err != nil {
		return nil, err
	}
	t := &story.Tree{Story: s.Story, Seq: s.Moved}
	if p.f.until != 0 || p.f.limited() { // what moved it may be out of sight
		t.Seq = 0
	}
	if there, err := p.asOf(&t.Story, s.id); !there || err != nil {
		return nil, err
	}
	for i := range all {
		part := &all[i]
		if !p.f.shows(part) {
			continue
		}
		there, err := p.asOf(&part.Story, part.id)
		if err != nil {
			return nil, err
		}
		if there {
			t.Parts = append(t.Parts, part.Story)
		}
	}
	if err := p.explain(t); err != nil {
		return nil, err
	}
	if t.Seq == 0 {
		standing(t)
	}
	return t, nil
}

// standing sets where a story stands by what is visible of it. What it only explains does not move it.
func standing(t *story.Tree) {
	if t.Seq = t.State.Seq; t.Open() && t.Facts.At != nil {
		t.Seq = t.Last
	}
	below := map[string]bool{t.ID: true}
	for n := 0; n < len(below); {
		n = len(below)
		for i := range t.Parts {
			if p := &t.Parts[i]; below[p.Parent] {
				below[p.ID] = true
			}
		}
	}
	for i := range t.Parts {
		if p := &t.Parts[i]; below[p.ID] && p.State.Severity != event.Normal {
			t.Seq = max(t.Seq, p.State.Seq)
		}
	}
}

// explain adds the visible stories that explain it or its parts, other than itself.
func (p *storyScan) explain(t *story.Tree) error {
	ids := map[string]bool{"": true, t.ID: true}
	for _, s := range append([]story.Story{t.Story}, t.Parts...) {
		if ids[s.Via] {
			continue
		}
		ids[s.Via] = true
		of, err := p.r.db.stories("WHERE s.key = ?", s.Via)
		if err != nil {
			return err
		}
		if len(of) > 0 && p.f.shows(&of[0]) {
			t.Via = append(t.Via, of[0].Story)
		}
	}
	return nil
}

// asOf sets a story back to the end of the query's time. It returns false if the story began later.
func (p *storyScan) asOf(s *story.Story, id int64) (there bool, err error) {
	if p.f.until == 0 || s.Latest().UnixMilli() < p.f.until {
		return true, nil
	}
	states, err := p.r.db.states("WHERE story = ? ORDER BY seq, n", id)
	states = slices.DeleteFunc(states, func(st story.State) bool { return st.At.UnixMilli() >= p.f.until })
	if err != nil || len(states) == 0 {
		return false, err
	}
	s.State, s.End, s.Worst, s.Facts.At = states[len(states)-1], time.Time{}, event.Normal, nil
	for i := range states {
		if severityNumber(states[i].Severity) > severityNumber(s.Worst) {
			s.Worst = states[i].Severity
		}
	}
	if !s.Open() {
		s.End = s.State.At
	}
	return true, nil
}

// selects reports whether a story's object and its beginning match.
func (p *storyScan) selects(s *storyRecord) bool {
	f := p.f
	switch {
	case p.objects != nil && !p.objects[s.object], f.clusters != nil && !f.clusters[s.of], f.kinds != nil && !f.kinds[s.of] && p.objects == nil,
		p.objects == nil && !f.has(s.namespace, s.Object.Name), !f.shows(s):
		return false
	case f.until != 0 && s.Begin.UnixMilli() >= f.until:
		return false
	}
	return len(f.q.Managers) == 0 || selection.MatchesManager(f.q.Managers, s.Manager)
}

// shows reports whether the object of a story is visible.
func (f *filter) shows(s *storyRecord) bool {
	if f.scope == nil {
		return true
	}
	since, ok := f.scope.in(f.scope.kinds[s.of], s.namespace)
	return ok && s.created >= since
}
