package journal

import (
	"context"
	"errors"
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
