package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Purge selects what is removed for good: one of its fields is set.
type Purge struct {
	// OtherRules are the changes and states that are Uncovered. What was before a change that stays was
	// hidden by the rules that this one was recorded under.
	OtherRules bool
	// Until removes changes that were seen before it, and what they led to also where a later change tells
	// that it was so before: see ErrPurged. The last states of what exists stay.
	Until time.Time
}

// Purging is what a purge removes.
type Purging struct {
	// Changes are to be removed; Quiet are among them.
	Changes, Quiet int64
	// Cut are changes that stay, without what was before them: that goes, or was told by a change that has
	// gone already.
	Cut int64
	// Streams are forgotten with their last states: the next run records what exists anew, as snapshots.
	Streams []Stream
	// Dead is how many dead letters go with their changes.
	Dead int64
	// Missed are sinks that have not got some of the changes, quiet ones not counted.
	Missed []Missed
	// Unfinished is an earlier purge that has yet to come to its end, as this one will, too.
	Unfinished *Purge
}

// Missed is how many changes a sink will not get.
type Missed struct {
	Sink    string
	Changes int64
}

// None tells whether there is nothing to do.
func (p *Purging) None() bool {
	return p.Changes == 0 && p.Cut == 0 && p.Dead == 0 && len(p.Streams) == 0 && p.Unfinished == nil
}

const (
	// purging is the key in meta of a purge that has begun, with its time in milliseconds, or nothing for other
	// rules.
	purging = "purging"
	// purgeRows is how many changes are removed in a transaction.
	purgeRows = 2000
	// purgedRows are the changes of a span that were seen before a time.
	purgedRows = " FROM changes WHERE seq BETWEEN ? AND ? AND time + lag < ? "
	// toCut are the changes seen from a time on that do not follow another one of these.
	toCut = ` FROM changes c WHERE c.before IS NOT NULL AND c.time + c.lag >= ?1 AND substr(c.before, 1, 1) <> ?2
		AND ifnull((SELECT p.time + p.lag >= ?1 FROM changes p WHERE p.object = c.object AND p.seq < c.seq ORDER BY p.seq DESC LIMIT 1), 0) = 0`
	// cutLetters takes from dead letters of changes without a before why the receiver did not take them: its
	// answer may repeat what it was sent.
	cutLetters = `UPDATE dead SET reason = 'purged', body = NULL
		WHERE EXISTS (SELECT 1 FROM changes c WHERE c.seq = dead.seq AND substr(c.before, 1, 1) = ?)`
	// orphaned are dead letters of changes that are gone.
	orphaned = "NOT EXISTS (SELECT 1 FROM changes c WHERE c.seq = dead.seq)"
)

// PlanPurge returns what a purge would remove.
func (j *Journal) PlanPurge(ctx context.Context, p Purge) (plan Purging, err error) {
	err = j.do(ctx, "read", func() error {
		spans, err := j.db.purged(p)
		if err == nil {
			err = j.db.finishes(p)
		}
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
		if !p.Until.IsZero() {
			if plan.Cut, err = j.db.integer("SELECT count(*)"+toCut, p.before(), purgedForm); err != nil {
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
	behind := make([]int64, len(known))
	args := []any{s.from, s.to, before}
	err = j.db.query("SELECT seq, quiet"+purgedRows, args, func(st *sqlite3.Stmt) error {
		plan.Changes++
		if st.ColumnBool(1) {
			plan.Quiet++
			return nil
		}
		for i := range known {
			if known[i].HasCursor && known[i].Cursor < st.ColumnInt64(0) {
				behind[i]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range behind {
		plan.Missed = missed(plan.Missed, known[i].Name, n)
	}
	dead, err := j.db.integer("SELECT count(*) FROM dead WHERE EXISTS (SELECT 1"+purgedRows+"AND changes.seq = dead.seq)", args...)
	plan.Dead += dead
	return err
}

// missed adds what a sink misses.
func missed(all []Missed, sink string, n int64) []Missed {
	i := slices.IndexFunc(all, func(m Missed) bool { return m.Sink == sink })
	switch {
	case n == 0:
	case i >= 0:
		all[i].Changes += n
	default:
		all = append(all, Missed{sink, n})
	}
	return all
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

// UnfinishedPurgeError says that an earlier purge has to come to its end before this one.
type UnfinishedPurgeError struct{ Purge }

func (e *UnfinishedPurgeError) Error() string {
	return "an earlier purge has not come to its end: finish it first, with tattler journal purge " + e.String()
}

// String is how a user says it.
func (p *Purge) String() string {
	if p.Until.IsZero() {
		return "--older-rules"
	}
	return "--until " + p.Until.UTC().Format(time.RFC3339Nano)
}

// note is what says in meta that a purge has begun.
func (p *Purge) note() string {
	if p.Until.IsZero() {
		return ""
	}
	return strconv.FormatInt(p.before(), 10)
}

// unfinished returns the purge that has begun and has not come to its end; nil if there is none.
func (db *db) unfinished() (p *Purge, err error) {
	err = db.query("SELECT value FROM meta WHERE key = ?", []any{purging}, func(s *sqlite3.Stmt) error {
		p = &Purge{OtherRules: true}
		if ms, err := strconv.ParseInt(s.ColumnText(0), 10, 64); err == nil {
			p = &Purge{Until: time.UnixMilli(ms)}
		}
		return nil
	})
	return p, err
}

// finishes is an error if a purge leaves undone what an earlier one was to do.
func (db *db) finishes(p Purge) error {
	u, err := db.unfinished()
	if err != nil || u == nil || u.OtherRules == p.OtherRules && u.before() <= p.before() {
		return err
	}
	return &UnfinishedPurgeError{*u}
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
// It rewrites the file, for which there must be place for two more of what is left; on a full disk that is what
// it has removed, and the reserve, which it lets go of. After an error, or a crash, some of it may be done; to
// finish, it is called again. Progress, if not nil, hears how many changes are removed so far.
func (j *Journal) Purge(ctx context.Context, p Purge, progress func(removed int64)) error {
	var spans []span
	err := j.do(ctx, "write", func() error { return errors.Join(removeReserve(reservePath(j.path)), j.db.copyLog()) })
	if err != nil {
		return err
	}
	err = j.write(ctx, "write", func() (err error) {
		if spans, err = j.db.purged(p); err == nil {
			err = j.db.finishes(p)
		}
		if err != nil {
			return err
		}
		return j.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", purging, p.note())
	})
	if err == nil {
		err = j.settle(ctx)
	}
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, s := range spans {
		for done := false; !done; {
			var n, last int64
			err := j.tight(ctx, func() (err error) {
				n, last, err = j.purgeSome(s, &p)
				return err
			})
			if err != nil {
				return err
			}
			removed, done, s.from = removed+n, n < purgeRows, last+1
			if progress != nil {
				progress(removed)
			}
		}
	}
	if p.OtherRules {
		err = j.forgetOthers(ctx)
	} else {
		err = j.cutFirst(ctx)
	}
	if err != nil {
		return err
	}
	err = j.tight(ctx, func() error {
		if err := j.db.exec("DELETE FROM dead WHERE " + orphaned); err != nil || p.OtherRules {
			return err
		}
		return j.db.exec(cutLetters, purgedForm)
	})
	if err != nil {
		return err
	}
	return j.erase(ctx)
}

// purgeSome removes the first changes of a span, and returns how many, and the last of them.
func (j *Journal) purgeSome(s span, what *Purge) (n, last int64, err error) {
	p := pruner{j: j, done: &Retained{}, cut: !what.Until.IsZero()}
	var victims []victim
	err = p.find(&victims, "SELECT seq, object, quiet, op"+purgedRows+"ORDER BY seq LIMIT ?", s.from, s.to, what.before(), purgeRows)
	if err != nil || len(victims) == 0 {
		return 0, s.to, err
	}
	return int64(len(victims)), victims[len(victims)-1].seq, p.remove(victims)
}

// cutFirst takes from the oldest change of each object what was before it: what told that has gone, now or
// earlier.
func (j *Journal) cutFirst(ctx context.Context) error {
	last := int64(0)
	for from := int64(0); from <= last; from += purgeRows {
		err := j.tight(ctx, func() (err error) {
			if last, err = j.db.integer("SELECT max(id) FROM objects"); err != nil {
				return err
			}
			return j.db.exec(`UPDATE changes SET before = ?1 WHERE before IS NOT NULL AND substr(before, 1, 1) <> ?2
				AND seq IN (SELECT min(seq) FROM changes WHERE object >= ?3 AND object < ?4 GROUP BY object)`, purged(), purgedForm, from, from+purgeRows)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetOthers forgets the streams whose states other rules made.
func (j *Journal) forgetOthers(ctx context.Context) error {
	var u Uncovered
	err := j.do(ctx, "read", func() (err error) {
		u, err = j.db.uncovered()
		return err
	})
	for _, st := range u.Streams {
		if err == nil {
			err = j.Forget(ctx, st)
		}
	}
	return err
}

// erase rewrites the file, so that it holds nothing beside what is in the tables, and empties the log. What is
// unused goes first: the disk may have no room for the vacuum otherwise.
func (j *Journal) erase(ctx context.Context) error {
	for free := int64(1); free > 0; {
		err := j.tight(ctx, func() (err error) {
			if _, free, _, err = j.db.pages(); err != nil || free == 0 {
				return err
			}
			return j.db.exec("PRAGMA incremental_vacuum(2048)")
		})
		if err != nil {
			return err
		}
	}
	if err := j.do(ctx, "write", j.db.copyLog); err != nil {
		return err
	}
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
	if err := db.refresh(); err != nil {
		return err
	}
	busy, err := db.integer("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = fmt.Errorf("empty the log: another process reads the journal: %w", sqlite3.BUSY)
	}
	return err
}
