package journal

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Other redaction rules make other bytes of the same version. The next list rewrites states without a change; what
// differs for another reason follows a gap. What older rules wrote stays in the history until tattler journal purge,
// which also erases the free space of the files. A change whose predecessor was erased says so instead of showing a
// difference.

// Uncovered is what was recorded under other redaction rules than the current ones: it may show values that are now
// hidden. Purge removes it.
type Uncovered struct {
	// Changes counts such changes. Before is when the current rules came into force.
	Changes int64
	Before  time.Time
	// Streams have last states that were not compared with the cluster since.
	Streams []Stream
	// Unfinished is an interrupted purge, if there is one: what it was to remove may still be in the file.
	Unfinished *Purge
}

// Any reports whether anything is uncovered.
func (u *Uncovered) Any() bool { return u.Changes > 0 || len(u.Streams) > 0 || u.Unfinished != nil }

// Rules notes the fingerprint of the redaction rules and their key under which changes are recorded from now on, and
// returns what they do not cover.
func (j *Journal) Rules(ctx context.Context, fingerprint string, now time.Time) (u Uncovered, err error) {
	err = j.write(ctx, "write", func() error {
		if err := j.db.note(fingerprint, j.tail.next(), now); err != nil {
			return err
		}
		u, err = j.db.uncovered()
		return err
	})
	return u, err
}

// note notes the rules in force from the sequence number next on.
func (db *db) note(fingerprint string, next int64, now time.Time) error {
	// Rules under which nothing was recorded are forgotten.
	if err := db.exec("DELETE FROM rules WHERE seq >= ?", next); err != nil {
		return err
	}
	last, _, err := db.rules()
	if err != nil || last == fingerprint {
		return err
	}
	return db.exec("INSERT INTO rules VALUES (?, ?, ?)", next, fingerprint, now)
}

// rules returns the last noted rules and when they came into force; empty if there are no rules.
func (db *db) rules() (fingerprint string, since time.Time, err error) {
	err = db.query("SELECT fingerprint, at FROM rules ORDER BY seq DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
		fingerprint, since = s.ColumnText(0), columnTime(s, 1)
		return nil
	})
	return fingerprint, since, err
}

// span is a range of sequence numbers, inclusive.
type span struct{ from, to int64 }

// otherRules returns the spans recorded under other rules than the last ones.
func (db *db) otherRules() (spans []span, err error) {
	now, _, err := db.rules()
	if err != nil || now == "" { // new: no rules were noted
		return nil, err
	}
	open := false
	err = db.query("SELECT seq, fingerprint FROM rules ORDER BY seq", nil, func(s *sqlite3.Stmt) error {
		seq := s.ColumnInt64(0)
		if open {
			spans[len(spans)-1].to = seq - 1
		}
		if open = s.ColumnText(1) != now; open {
			spans = append(spans, span{seq, math.MaxInt64})
		}
		return nil
	})
	return spans, err
}

func (db *db) uncovered() (u Uncovered, err error) {
	spans, err := db.otherRules()
	if err != nil {
		return u, err
	}
	for _, s := range spans {
		// The plus keeps SQLite from reading the table, with its contents, instead of an index.
		n, err := db.integer("SELECT count(*) FROM changes WHERE +seq BETWEEN ? AND ?", s.from, s.to)
		if err != nil {
			return u, err
		}
		u.Changes += n
	}
	var fingerprint string
	if fingerprint, u.Before, err = db.rules(); err != nil {
		return u, err
	}
	if u.Streams, err = db.otherStreams(fingerprint); err != nil {
		return u, err
	}
	u.Unfinished, err = db.unfinished()
	return u, err
}

// otherStreams returns the streams that have last states made under other rules.
func (db *db) otherStreams(fingerprint string) (all []Stream, err error) {
	if fingerprint == "" {
		return nil, nil
	}
	err = db.streams(`WHERE substr(pipeline, -length(?1)) <> ?1 AND EXISTS (SELECT 1 FROM live WHERE stream = streams.id) `+byName,
		[]any{fingerprint}, func(_ int64, sh StreamHead) { all = append(all, sh.Stream) })
	return all, err
}

// Uncovered returns what the last noted rules do not cover.
func (r *Reader) Uncovered(ctx context.Context) (u Uncovered, err error) {
	err = r.do(ctx, func() error {
		if u, err = r.db.uncovered(); err != nil {
			return fmt.Errorf("look for other rules: %w", err)
		}
		return nil
	})
	return u, err
}
