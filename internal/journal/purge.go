package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Purge selects what is removed for good: one of its fields is set.
type Purge struct {
	// OtherRules are the changes and states that are Uncovered.
	OtherRules bool
	// Until removes changes that were seen before it.
	Until time.Time
}

// Purging is what a purge removes.
type Purging struct {
	// Changes are to be removed; Quiet are among them.
	Changes, Quiet int64
	// Streams are forgotten with their last states: the next run records what exists anew, as snapshots.
	Streams []Stream
	// Dead is how many dead letters go with their changes.
	Dead int64
	// Missed are sinks that have not got some of the changes, quiet ones not counted.
	Missed []Missed
	// Unfinished says that an earlier purge has yet to erase what it removed.
	Unfinished bool
}

// Missed is how many changes a sink will not get.
type Missed struct {
	Sink    string
	Changes int64
}

// None tells whether there is nothing to do.
func (p *Purging) None() bool {
	return p.Changes == 0 && p.Dead == 0 && len(p.Streams) == 0 && !p.Unfinished
}

const (
	// purging is the key in meta of a purge that has begun.
	purging = "purging"
	// purgeRows is how many changes are removed in a transaction.
	purgeRows = 2000
	// purgedRows are the changes of a span that were seen before a time.
	purgedRows = " FROM changes WHERE seq BETWEEN ? AND ? AND time + lag < ? "
	// orphaned are dead letters of changes that are gone.
	orphaned = "NOT EXISTS (SELECT 1 FROM changes c WHERE c.seq = dead.seq)"
)

// PlanPurge returns what a purge would remove.
func (j *Journal) PlanPurge(ctx context.Context, p Purge) (plan Purging, err error) {
	err = j.do(ctx, "read", func() error {
		spans, err := j.db.purged(p)
		if err != nil {
			return err
		}
		if plan.Dead, err = j.db.integer("SELECT count(*) FROM dead WHERE " + orphaned); err != nil {
			return err
		}
		for _, s := range spans {
			if err := j.planSpan(s, p.before(), &plan); err != nil {
				return err
			}
		}
		u, err := j.db.uncovered()
		plan.Unfinished = u.Unfinished
		if p.OtherRules {
			plan.Streams = u.Streams
		}
		return err
	})
	return plan, err
}

// planSpan adds what a purge removes from a span.
func (j *Journal) planSpan(s span, before int64, plan *Purging) error {
	known, err := j.db.sinks()
	if err != nil {
		return err
	}
	missed := make([]int64, len(known))
	args := []any{s.from, s.to, before}
	err = j.db.query("SELECT seq, quiet"+purgedRows, args, func(st *sqlite3.Stmt) error {
		plan.Changes++
		if st.ColumnBool(1) {
			plan.Quiet++
			return nil
		}
		for i := range known {
			if known[i].HasCursor && known[i].Cursor < st.ColumnInt64(0) {
				missed[i]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range missed {
		plan.miss(known[i].Name, n)
	}
	dead, err := j.db.integer("SELECT count(*) FROM dead WHERE seq IN (SELECT seq"+purgedRows+")", args...)
	plan.Dead += dead
	return err
}

func (p *Purging) miss(sink string, n int64) {
	i := slices.IndexFunc(p.Missed, func(m Missed) bool { return m.Sink == sink })
	switch {
	case n == 0:
	case i >= 0:
		p.Missed[i].Changes += n
	default:
		p.Missed = append(p.Missed, Missed{sink, n})
	}
}

// purged returns where the changes are that are to be removed.
func (db *db) purged(p Purge) ([]span, error) {
	switch {
	case p.OtherRules && p.Until.IsZero():
		return db.otherRules()
	case !p.OtherRules && !p.Until.IsZero():
		return []span{{0, math.MaxInt64}}, nil
	default:
		return nil, errors.New("a purge is of other rules, or until a time")
	}
}

// before is the time in milliseconds before which changes are removed.
func (p *Purge) before() int64 {
	if p.Until.IsZero() {
		return math.MaxInt64
	}
	return p.Until.UnixMilli()
}

// Purge removes what PlanPurge says, and erases it: not even free pages of the file or its log hold
// any of it then. What the disk keeps of files that were written over, and copies, are out of reach.
//
// It rewrites the file, for which there must be place for two more of what is left. After an error, or
// a crash, some of it may be done; to finish, it is called again. Progress, if not nil, hears how many
// changes are removed so far.
func (j *Journal) Purge(ctx context.Context, p Purge, progress func(removed int64)) error {
	var spans []span
	err := j.write(ctx, "write", func() (err error) {
		if spans, err = j.db.purged(p); err != nil {
			return err
		}
		return j.db.exec("INSERT OR REPLACE INTO meta VALUES (?, '')", purging)
	})
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, s := range spans {
		for done := false; !done; {
			err := j.write(ctx, "write", func() error {
				n, err := j.purgeSome(&s, p.before())
				removed, done = removed+n, n < purgeRows
				return err
			})
			if err != nil {
				return err
			}
			if progress != nil {
				progress(removed)
			}
		}
	}
	err = j.write(ctx, "write", func() error {
		if p.OtherRules {
			if err := j.forgetOthers(); err != nil {
				return err
			}
		}
		return j.db.exec("DELETE FROM dead WHERE " + orphaned) // a receiver's answer may repeat what it was sent
	})
	if err != nil {
		return err
	}
	return j.erase(ctx)
}

// purgeSome removes some changes of a span and moves its start behind them.
func (j *Journal) purgeSome(s *span, before int64) (int64, error) {
	p := pruner{j: j, done: &Retained{}}
	var victims []victim
	err := p.find(&victims, "SELECT seq, object, quiet, time + lag"+purgedRows+"ORDER BY seq LIMIT ?", s.from, s.to, before, purgeRows)
	if err != nil || len(victims) == 0 {
		return 0, err
	}
	s.from = victims[len(victims)-1].seq + 1
	return int64(len(victims)), p.remove(victims)
}

// forgetOthers forgets the streams whose states other rules made.
func (j *Journal) forgetOthers() error {
	u, err := j.db.uncovered()
	for _, st := range u.Streams {
		err = errors.Join(err, j.db.forget(st))
	}
	return err
}

// erase rewrites the file, so that it holds nothing beside what is in the tables, and empties the log.
func (j *Journal) erase(ctx context.Context) error {
	return j.do(ctx, "write", func() error {
		// A vacuum is made beside the file; in memory it could be too much.
		if err := j.db.script("PRAGMA temp_store = FILE; PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		old := j.db.c.SetInterrupt(ctx) // it can take minutes
		err := j.db.script("VACUUM")
		j.db.c.SetInterrupt(old)
		if err != nil {
			return orElse(ctx.Err(), err)
		}
		if err := j.db.truncateLog(); err != nil {
			return err
		}
		if err := j.db.exec("DELETE FROM meta WHERE key = ?", purging); err != nil {
			return err
		}
		return j.db.script("PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY")
	})
}

// truncateLog brings the log into the file and empties it, for which nobody may be reading.
func (db *db) truncateLog() error {
	busy, err := db.integer("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = fmt.Errorf("empty the log: another process reads the journal: %w", sqlite3.BUSY)
	}
	return err
}
