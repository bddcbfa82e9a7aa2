package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Purge selects what is removed for good. Exactly one of OtherRules and Until is set.
type Purge struct {
	// OtherRules removes the Uncovered changes and states. The before of a kept change was redacted under the rules
	// that the kept change was recorded under.
	OtherRules bool
	// Until removes changes seen before it, and the before of a later change that shows what one of them led to; see
	// ErrPurged. The last states of existing objects stay.
	Until time.Time
	// Cluster limits Until to the changes, gaps and absences of a cluster; empty: all clusters.
	Cluster string
}

// Purging describes what a purge removes.
type Purging struct {
	// Changes counts the changes to be removed, Quiet the quiet ones among them.
	Changes, Quiet int64
	// Cut counts kept changes that lose their before, because the change that led to it is removed or was removed
	// earlier.
	Cut int64
	// Streams are forgotten with their last states: the next run records existing objects again, as snapshots.
	Streams []Stream
	// Dead counts the dead letters removed with their changes.
	Dead int64
	// Missed lists sinks that have not got some of the changes; quiet ones are not counted.
	Missed []Missed
	// Unfinished is an earlier purge that was interrupted; this one finishes it as well.
	Unfinished *Purge
}

// Missed counts the changes that a sink will not get.
type Missed struct {
	Sink    string
	Changes int64
}

// None reports whether there is nothing to purge.
func (p *Purging) None() bool {
	return p.Changes == 0 && p.Cut == 0 && p.Dead == 0 && len(p.Streams) == 0 && p.Unfinished == nil
}

const (
	// purging is the key in meta of a purge in progress; its value is the time in milliseconds, or empty for other
	// rules.
	purging = "purging"
	// purgeRows is how many changes are removed per transaction.
	purgeRows = 2000
	// cutLetters empties dead letters of changes that lost their before, with the reason, as a receiver's answer may
	// repeat what it was sent.
	cutLetters = `UPDATE dead SET reason = 'purged', body = NULL
		WHERE EXISTS (SELECT 1 FROM contents c WHERE c.seq = dead.seq AND substr(c.before, 1, 1) = ?)`
	// orphaned are dead letters whose change is gone.
	orphaned = "NOT EXISTS (SELECT 1 FROM changes c WHERE c.seq = dead.seq)"
)

// Their last argument is the number of a cluster, or nil for all.
var (
	// purgedRows are the changes of a span seen before a time.
	purgedRows = " FROM changes WHERE seq BETWEEN ?1 AND ?2 AND time + lag < ?3 AND " + ofKinds(4) + " "
	// toCut are changes seen from a time on whose predecessor was not.
	toCut = ` FROM changes c JOIN contents t ON t.seq = c.seq WHERE t.before IS NOT NULL AND c.time + c.lag >= ?1 AND substr(t.before, 1, 1) <> ?2 AND ` + ofKinds(3) + `
		AND ifnull((SELECT p.time + p.lag >= ?1 FROM changes p WHERE p.object = c.object AND p.seq < c.seq ORDER BY p.seq DESC LIMIT 1), 0) = 0`
)

// ofKinds is a condition on the kind of a change: it belongs to the cluster that is the numbered argument, if that is not nil.
func ofKinds(argument int) string {
	return fmt.Sprintf("(?%[1]d IS NULL OR kind IN (SELECT k.id FROM kinds k JOIN resources r ON r.id = k.resource WHERE r.cluster = ?%[1]d))", argument)
}

// UnknownClusterError says that the journal has nothing of a cluster.
type UnknownClusterError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownClusterError) Error() string {
	return fmt.Sprintf("the journal has no cluster %q: it has %s", e.Name, strings.Join(e.Known, ", "))
}

// CheckClusters returns an *UnknownClusterError for the first of some names that is not one of a journal's clusters.
func CheckClusters(names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &UnknownClusterError{Name: name, Known: known}
		}
	}
	return nil
}

// clusterOf returns the argument that selects the cluster of a purge; nil if it has none.
func (j *Journal) clusterOf(p Purge) (id any, err error) {
	if p.Cluster == "" {
		return nil, nil
	}
	known, err := j.db.clusters()
	if err != nil {
		return nil, err
	}
	if err := CheckClusters([]string{p.Cluster}, known); err != nil {
		return nil, err
	}
	return j.db.clusterID(p.Cluster)
}

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
		cluster, err := j.clusterOf(p)
		if err != nil {
			return err
		}
		if plan.Dead, err = j.db.integer("SELECT count(*) FROM dead WHERE " + orphaned); err != nil {
			return err
		}
		for _, s := range spans {
			if err := j.planSpan(s, p.before(), cluster, &plan); err != nil {
				return err
			}
		}
		if !p.Until.IsZero() {
			if plan.Cut, err = j.db.integer("SELECT count(*)"+toCut, p.before(), purgedForm, cluster); err != nil {
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
func (j *Journal) planSpan(s span, before int64, cluster any, plan *Purging) error {
	known, err := j.db.sinks()
	if err != nil {
		return err
	}
	behind := make([]int64, len(known))
	args := []any{s.from, s.to, before, cluster}
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

// missed adds n to the changes that a sink misses.
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

// purged returns the spans in which changes are removed.
func (db *db) purged(p Purge) ([]span, error) {
	switch {
	case p.OtherRules && p.Until.IsZero() && p.Cluster == "":
		return db.otherRules()
	case !p.OtherRules && !p.Until.IsZero():
		return []span{{0, math.MaxInt64}}, nil
	default:
		return nil, errors.New("a purge needs either other rules or a time, and a cluster only with a time")
	}
}

// UnfinishedPurgeError says that an interrupted purge must be finished before this one.
type UnfinishedPurgeError struct{ Purge }

func (e *UnfinishedPurgeError) Error() string {
	return "an earlier purge was interrupted: finish it first, with tattler journal purge " + e.String()
}

// String returns the purge as command-line flags.
func (p *Purge) String() string {
	if p.Until.IsZero() {
		return "--older-rules"
	}
	text := "--until " + p.Until.UTC().Format(time.RFC3339Nano)
	if p.Cluster != "" {
		text += fmt.Sprintf(" --cluster %q", p.Cluster)
	}
	return text
}

// note is the value in meta of a purge in progress.
func (p *Purge) note() string {
	if p.Until.IsZero() {
		return ""
	}
	return strings.TrimSuffix(strconv.FormatInt(p.before(), 10)+" "+p.Cluster, " ")
}

// unfinished returns the interrupted purge; nil without one.
func (db *db) unfinished() (p *Purge, err error) {
	err = db.query("SELECT value FROM meta WHERE key = ?", []any{purging}, func(s *sqlite3.Stmt) error {
		p = &Purge{OtherRules: true}
		at, cluster, _ := strings.Cut(s.ColumnText(0), " ")
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			p = &Purge{Until: time.UnixMilli(ms), Cluster: cluster}
		}
		return nil
	})
	return p, err
}

// finishes returns an error if a purge would not also finish the interrupted one.
func (db *db) finishes(p Purge) error {
	u, err := db.unfinished()
	if err != nil || u == nil || u.OtherRules == p.OtherRules && u.before() <= p.before() && (p.Cluster == "" || u.Cluster == p.Cluster) {
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
