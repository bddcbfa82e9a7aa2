package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Retention limits what is kept; zero fields are no limit.
type Retention struct {
	// Age is how long ago a kept change may have been seen.
	Age time.Duration
	// Size is how many bytes of the file may be in use. Quiet changes go first, oldest first. Of the others, those that
	// every sink has got go before those that one still lacks, and of either, those of the namespace that takes the most
	// go first; see shares. States stay, and so does a quarter of Size for listed changes, even if the states alone exceed
	// it.
	Size int64
	// States is how many bytes of the file the states take, as Reader.States measured it: they are never removed, so a
	// quarter of Size is left for changes besides them. 0: unknown; then at least listed changes have this quarter.
	States int64
	// Snapshots names the sinks that receive snapshots; see Sink.Lost.
	Snapshots []string
}

// limit is how many bytes of the file may be in use.
func (r *Retention) limit() int64 { return max(r.Size, r.States+r.Size/leastShare) }

// Retained is the result of Retain.
type Retained struct {
	// Removed counts the removed changes, Quiet the quiet ones among them.
	Removed, Quiet int
	// Used is the size in bytes of the file's pages in use.
	Used int64
	// Paid are the namespaces whose listed changes were removed because of Size, those that lost the most first.
	Paid []Paid
	// Cut is when the newest of these changes was seen.
	Cut time.Time
	// Names counts removed names of managers and namespaces that nothing referred to.
	Names int
	// Lost counts, per sink, changes removed before the sink got them. Sink.Lost grows in the same transaction.
	Lost []Missed
	// Full says that the disk was full and that more was removed for that than the limits demand.
	Full bool
	// Unreserved is why the reserve could not be made; nil if it exists.
	Unreserved error
}

const (
	// leastShare: 1/leastShare of Retention.Size is kept for listed changes, however much the states take. A share of the
	// limit rather than a time, so that a flood of changes cannot make the file grow without bounds.
	leastShare = 4
	// retainRows is how many changes are removed per transaction, in some milliseconds: the longest that an append waits.
	retainRows = 100
	// retainWindow is how many changes are searched for quiet ones per transaction.
	retainWindow = 4096
	// retainPages is how many pages are returned to the file system at a time. That happens once 1/retainShare of the
	// file is unused: freed pages are usually reused soon.
	retainPages = 256
	retainShare = 4
)

// Retain removes what exceeds r, but no change after upTo, which sinks still need, and names that nothing refers to. It
// works in small steps, between which others can write, until nothing is left to do or ctx ends, which is not an error.
// On a full disk it frees space, and other calls wait for that.
func (j *Journal) Retain(ctx context.Context, now time.Time, r Retention, upTo int64) (Retained, error) {
	s := shrinking{j: j, now: now, r: r, upTo: upTo, paid: map[int64]*Paid{}}
	full, err := s.all(ctx)
	if err == nil && !full {
		s.done.Names, err = j.removeUnused(ctx, now)
	}
	if full && ctx.Err() == nil {
		err = s.heal(ctx)
	}
	if err == nil {
		err = s.name(ctx)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return s.done, err
}

// name completes done.Paid.
func (s *shrinking) name(ctx context.Context) error {
	if len(s.paid) == 0 {
		return nil
	}
	return s.j.do(ctx, "read", func() error {
		for namespace, paid := range s.paid {
			var err error
			if paid.Cluster, paid.Namespace, err = s.j.db.namespace(namespace); err != nil {
				return err
			}
			s.done.Paid = append(s.done.Paid, *paid)
		}
		slices.SortFunc(s.done.Paid, func(a, b Paid) int {
			return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace))
		})
		return nil
	})
}

// namespace returns the name of a namespace and of its cluster (as in Kind); empty if nothing uses it any longer.
func (db *db) namespace(id int64) (cluster, name string, err error) {
	err = db.query("SELECT "+clusterKey+", n.name FROM namespaces n JOIN clusters c ON c.id = n.cluster WHERE n.id = ?", []any{id}, func(s *sqlite3.Stmt) error {
		cluster, name = s.ColumnText(0), s.ColumnText(1)
		return nil
	})
	return cluster, name, err
}

// shrinking is one call of Retain.
type shrinking struct {
	j     *Journal
	now   time.Time
	r     Retention
	upTo  int64
	least int64 // bytes of listed changes that limits of size leave
	keep  int64 // bytes of the file that may stay unused; 0: a share
	paid  map[int64]*Paid
	done  Retained
}

// all takes all steps, and reports whether the disk is full.
func (s *shrinking) all(ctx context.Context) (full bool, err error) {
	used, _, err := s.j.used(ctx)
	if err == nil && s.r.Size > 0 && used > s.r.limit() {
		s.least = s.r.Size / leastShare
		err = s.j.weigh(ctx, s.r.Size)
	}
	for n := 1; n > 0 && err == nil; {
		err = s.j.do(ctx, "shrink", func() (err error) {
			if n, err = s.next(); err == nil && n == 0 && !s.j.full {
				s.done.Unreserved = s.j.keepReserve()
			}
			full = s.j.full
			return err
		})
	}
	return full || errors.Is(err, ErrFull), err
}

// used returns how many bytes of the file are in use, and how many are not.
func (j *Journal) used(ctx context.Context) (used, unused int64, err error) {
	err = j.do(ctx, "read", func() error {
		all, free, size, err := j.db.pages()
		used, unused = (all-free)*size, free*size
		return err
	})
	return used, unused, err
}

// next takes a step; n is 0 if nothing was left to do.
func (s *shrinking) next() (n int, err error) {
	p := pruner{j: s.j, done: &s.done, least: s.least}
	if err := s.j.db.transaction(func() error { return p.step(s.now, s.r, s.upTo) }); err != nil {
		s.j.stories = follower{} // it may have forgotten stories that are still there
		return 0, err
	}
	s.removed(&p)
	s.done.Removed += p.removed
	s.done.Quiet += p.quiet
	for _, m := range p.lost {
		s.done.Lost = missed(s.done.Lost, m.Sink, m.Changes)
	}
	if p.removed > 0 || p.looked > 0 {
		return p.removed + 1, nil
	}
	return s.giveBack()
}

// removed notes in memory what a step has removed.
func (s *shrinking) removed(p *pruner) {
	s.j.quietAt = max(s.j.quietAt, p.looked)
	for _, v := range p.victims {
		if v.quiet {
			continue
		}
		if p.forced && s.paid[v.namespace] == nil {
			s.paid[v.namespace] = &Paid{}
			if sh := s.j.shares.of[v.namespace]; sh != nil {
				s.paid[v.namespace].Size = sh.n * s.j.shares.each
			}
		}
		if p.forced {
			s.paid[v.namespace].Changes++
			if seen := time.UnixMilli(v.seen).UTC(); seen.After(s.done.Cut) {
				s.done.Cut = seen
			}
		}
	}
	for _, v := range p.victims { // after the sizes were noted
		s.j.shares.drop(v.namespace, v.seq)
	}
}

// giveBack shrinks the file if much of it is unused, and returns by how many pages.
func (s *shrinking) giveBack() (int, error) {
	pages, free, size, err := s.j.db.pages()
	keep, most := s.keep/max(size, 1), int64(retainPages)
	if keep > 0 {
		most = min(most, keep/4) // on a full disk, their log has the room of the reserve
	} else {
		keep = pages / retainShare
	}
	if err != nil || free < max(most, keep) {
		return 0, err
	}
	if err := s.j.db.script(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", most)); err != nil {
		return 0, err
	}
	_, now, _, err := s.j.db.pages()
	return int(free - now), err
}

// pages returns the number of pages, how many of them are free, and their size.
func (db *db) pages() (all, free, size int64, err error) {
	if all, err = db.integer("PRAGMA page_count"); err != nil {
		return 0, 0, 0, err
	}
	if free, err = db.integer("PRAGMA freelist_count"); err != nil {
		return 0, 0, 0, err
	}
	size, err = db.integer("PRAGMA page_size")
	return all, free, size, err
}

// pruner is one step of Retain.
type pruner struct {
	j              *Journal
	done           *Retained
	least          int64 // bytes of listed changes that limits of size leave
	victims        []victim
	forced         bool // they go because the file is too big
	removed, quiet int
	looked         int64    // no quiet change is left up to here
	lost           []Missed // by sinks
	purge          bool     // everything that the changes proved goes, too
	cut            bool     // purge: the next change also loses its before
}

// victim is a change to be removed.
type victim struct {
	seq, object, namespace int64
	seen                   int64 // milliseconds
	quiet                  bool
	op                     event.Op
}

func (p *pruner) step(now time.Time, r Retention, upTo int64) error {
	old, err := p.choose(now, r, upTo)
	if err == nil {
		err = p.lose(old, r.Snapshots)
	}
	if err == nil && p.forced {
		err = p.noteCut(old)
	}
	if err != nil {
		return err
	}
	p.victims = old
	return p.remove(old)
}

// choose returns the changes to remove next.
func (p *pruner) choose(now time.Time, r Retention, upTo int64) (old []victim, err error) {
	if r.Age > 0 {
		if old, err = p.aged(now.Add(-r.Age).UnixMilli(), upTo); err != nil {
			return nil, err
		}
	}
	all, free, size, err := p.j.db.pages()
	if err != nil {
		return nil, err
	}
	p.done.Used = (all - free) * size
	if len(old) == 0 && r.Size > 0 && p.done.Used > r.limit() {
		p.forced = true
		return p.excess(upTo, r.Size)
	}
	return old, nil
}

const (
	victimRows = "SELECT " + ofVictims + " FROM changes "
	ofVictims  = "seq, object, namespace, time + lag, quiet, op"
	oldest     = victimRows + "WHERE seq <= ? ORDER BY seq LIMIT ?"
)

// aged chooses changes seen before a time. Clocks jump, so they may follow newer ones; the blocks narrow the search.
func (p *pruner) aged(cut, upTo int64) (old []victim, err error) {
	err = p.j.db.query("SELECT first, first + size FROM blocks WHERE first <= ? AND seen_oldest < ? ORDER BY first", []any{upTo, cut},
		func(s *sqlite3.Stmt) error {
			from, to := s.ColumnInt64(0), min(s.ColumnInt64(1)-1, upTo)
			err := p.find(&old, victimRows+"WHERE seq BETWEEN ? AND ? AND time + lag < ? ORDER BY seq LIMIT ?", from, to, cut, retainRows-len(old))
			if err == nil && len(old) == retainRows {
				err = errDone
			}
			return err
		})
	return old, err
}

// find appends victims.
func (p *pruner) find(to *[]victim, sql string, args ...any) error {
	return p.j.db.query(sql, args, func(s *sqlite3.Stmt) error {
		*to = append(*to, victim{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnBool(4), opOf(s.ColumnInt(5))})
		return nil
	})
}

// excess chooses changes to remove because the file is too big.
func (p *pruner) excess(upTo, limit int64) (old []victim, err error) {
	newest := p.j.tail.next() - 1
	if from, end := p.j.quietAt, min(upTo, newest); from < end {
		to := min(from+retainWindow, end)
		err := p.find(&old, victimRows+"WHERE seq > ? AND seq <= ? AND quiet ORDER BY seq LIMIT ?", from, to, retainRows)
		if p.looked = to; len(old) == retainRows {
			p.looked = old[retainRows-1].seq
		}
		return old, err
	}
	for done := false; !done; { // those that came meanwhile
		if done, err = p.j.weighSome(limit); err != nil {
			return nil, err
		}
	}
	if s := &p.j.shares; p.least > 0 && s.n*s.each <= p.least {
		return nil, nil
	}
	got, err := p.j.db.integer("SELECT ifnull(min(cursor), ?) FROM sinks", upTo) // by all sinks
	if err == nil {
		old, err = p.ofFattest(min(upTo, got))
	}
	if err == nil && len(old) == 0 {
		old, err = p.ofFattest(upTo)
	}
	return old, err
}

// lose counts the victims that sinks would have got and have not.
func (p *pruner) lose(victims []victim, snapshots []string) error {
	if len(victims) == 0 {
		return nil
	}
	err := p.j.db.query("SELECT name, cursor FROM sinks WHERE cursor < ?", []any{victims[len(victims)-1].seq}, func(s *sqlite3.Stmt) error {
		sink, cursor, n := s.ColumnText(0), s.ColumnInt64(1), int64(0)
		for _, v := range victims {
			if v.seq > cursor && !v.quiet && (v.op != event.Snapshot || slices.Contains(snapshots, sink)) {
				n++
			}
		}
		p.lost = missed(p.lost, sink, n)
		return nil
	})
	for _, m := range p.lost {
		if err == nil {
			err = p.j.db.lose(m.Sink, m.Changes)
		}
	}
	return err
}
