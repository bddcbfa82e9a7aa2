package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Retention limits what is kept; zero fields are no limit.
type Retention struct {
	// Age is how long ago a kept change may have been seen.
	Age time.Duration
	// Size is how many bytes of the file may be in use. Quiet changes go first, then others, oldest first; changes that
	// every sink has got go before those that one still lacks. States stay, and so do the newest changes, up to a quarter
	// of Size, even if the states alone exceed it.
	Size int64
	// States is how many bytes of the file the states take, as Reader.States measured it: they are never removed, so a
	// quarter of Size is left for changes besides them. 0: unknown; then at least listed changes have this quarter.
	States int64
	// Snapshots names the sinks that receive snapshots; see Sink.Lost.
	Snapshots []string
}

// limit is how many bytes of the file may be in use.
func (r *Retention) limit() int64 { return max(r.Size, r.States+r.Size/floorShare) }

// Retained is the result of Retain.
type Retained struct {
	// Removed counts the removed changes, Quiet the quiet ones among them.
	Removed, Quiet int
	// Used is the size in bytes of the file's pages in use.
	Used int64
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
	s := shrinking{j: j, now: now, r: r, upTo: upTo}
	full, err := s.all(ctx)
	if err == nil && !full {
		s.done.Names, err = j.removeUnused(ctx, now)
	}
	if full && ctx.Err() == nil {
		err = s.heal(ctx)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return s.done, err
}

// shrinking is one call of Retain.
type shrinking struct {
	j     *Journal
	now   time.Time
	r     Retention
	upTo  int64
	floor int64 // limits of size only remove changes before it
	keep  int64 // bytes of the file that may stay unused; 0: a share
	done  Retained
}

// all takes all steps, and reports whether the disk is full.
func (s *shrinking) all(ctx context.Context) (full bool, err error) {
	used, err := s.j.used(ctx)
	if err == nil && s.r.Size > 0 && used > s.r.limit() {
		s.floor, err = s.j.floor(ctx, s.r.Size)
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

// used returns how many bytes of the file are in use.
func (j *Journal) used(ctx context.Context) (used int64, err error) {
	err = j.do(ctx, "read", func() error {
		all, free, size, err := j.db.pages()
		used = (all - free) * size
		return err
	})
	return used, err
}

// next takes a step; n is 0 if nothing was left to do.
func (s *shrinking) next() (n int, err error) {
	p := pruner{j: s.j, done: &s.done, floor: s.floor}
	if err := s.j.db.transaction(func() error { return p.step(s.now, s.r, s.upTo) }); err != nil {
		return 0, err
	}
	s.j.quietAt = max(s.j.quietAt, p.looked)
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

// giveBack shrinks the file if much of it is unused, and returns by how many pages.
func (s *shrinking) giveBack() (int, error) {
	pages, free, size, err := s.j.db.pages()
	keep := s.keep / max(size, 1)
	if keep == 0 {
		keep = pages / retainShare
	}
	if err != nil || free < max(retainPages, keep) {
		return 0, err
	}
	if err := s.j.db.exec("PRAGMA incremental_vacuum(256)"); err != nil {
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
	floor          int64 // limits of size only remove changes before it
	removed, quiet int
	looked         int64    // no quiet change is left up to here
	lost           []Missed // by sinks
	cut            bool     // purge: the next change also loses its before
}

// victim is a change to be removed.
type victim struct {
	seq, object int64
	quiet       bool
	op          event.Op
}

func (p *pruner) step(now time.Time, r Retention, upTo int64) error {
	old, err := p.choose(now, r, upTo)
	if err == nil {
		err = p.lose(old, r.Snapshots)
	}
	if err != nil {
		return err
	}
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
		return p.excess(upTo)
	}
	return old, nil
}

const (
	victimRows = "SELECT seq, object, quiet, op FROM changes "
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
		*to = append(*to, victim{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnBool(2), opOf(s.ColumnInt(3))})
		return nil
	})
}

// excess chooses changes to remove because the file is too big.
func (p *pruner) excess(upTo int64) (old []victim, err error) {
	if from, end := p.j.quietAt, min(upTo, p.j.tail.next()-1); from < end {
		to := min(from+retainWindow, end)
		err := p.find(&old, victimRows+"WHERE seq > ? AND seq <= ? AND quiet ORDER BY seq LIMIT ?", from, to, retainRows)
		if p.looked = to; len(old) == retainRows {
			p.looked = old[retainRows-1].seq
		}
		return old, err
	}
	return old, p.find(&old, oldest, min(upTo, p.floor-1), retainRows)
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
