package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// MaxDeadLetters is how many dead letters are kept per sink. Beyond that, the newest displaces the oldest, which is then
// lost to the sink.
const MaxDeadLetters = 10_000

// Cursor returns the sequence number up to which a sink is done; false if none was set.
func (j *Journal) Cursor(ctx context.Context, sink string) (seq int64, ok bool, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.query("SELECT cursor FROM sinks WHERE name = ? AND cursor IS NOT NULL", []any{sink}, func(s *sqlite3.Stmt) error {
			seq, ok = s.ColumnInt64(0), true
			return nil
		})
	})
	return seq, ok, err
}

// SetCursor sets a sink's cursor, durably. It may move back.
func (j *Journal) SetCursor(ctx context.Context, sink string, seq int64) error {
	return j.write(ctx, "write", func() error { return j.db.setCursor(sink, seq) })
}

// Rewind moves a sink's cursor back for a replay, durably. Repeats returns where that replay ends.
func (j *Journal) Rewind(ctx context.Context, sink string, seq int64) error {
	return j.write(ctx, "write", func() error {
		err := j.db.exec(`INSERT INTO meta SELECT ?, cursor FROM sinks WHERE name = ? AND cursor IS NOT NULL
			ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`, repeatsKey+sink, sink)
		if err != nil {
			return err
		}
		return j.db.setCursor(sink, seq)
	})
}

// repeatsKey is the prefix of the keys in meta of what Repeats returns.
const repeatsKey = "repeats/"

// Repeats returns the highest sequence number that a sink had got when it was rewound: up to there it gets changes again.
// It is 0 if the sink was never rewound.
func (j *Journal) Repeats(ctx context.Context, sink string) (upTo int64, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.query("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", []any{repeatsKey + sink}, func(s *sqlite3.Stmt) error {
			upTo = s.ColumnInt64(0)
			return nil
		})
	})
	return upTo, err
}

func (db *db) setCursor(sink string, seq int64) error {
	return db.exec("INSERT INTO sinks (name, cursor, paused) VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET cursor = excluded.cursor", sink, seq)
}

// Pause sets whether a sink is paused; the setting survives a restart.
func (j *Journal) Pause(ctx context.Context, sink string, paused bool) error {
	return j.write(ctx, "write", func() error {
		return j.db.exec("INSERT INTO sinks (name, paused) VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused", sink, paused)
	})
}

// RemoveSink forgets a sink that is no longer configured, with its dead letters.
func (j *Journal) RemoveSink(ctx context.Context, sink string) error {
	return j.write(ctx, "write", func() error {
		if err := j.db.exec("DELETE FROM dead WHERE sink = ?", sink); err != nil {
			return err
		}
		if err := j.db.exec("DELETE FROM meta WHERE key = ?", repeatsKey+sink); err != nil {
			return err
		}
		return j.db.exec("DELETE FROM sinks WHERE name = ?", sink)
	})
}

// sinkRows is the query of all sinks.
const sinkRows = "SELECT name, cursor, paused, (SELECT count(*) FROM dead WHERE sink = name), lost FROM sinks ORDER BY name"

// Sinks returns all sinks that the journal knows, sorted by name.
func (j *Journal) Sinks(ctx context.Context) (all []Sink, err error) {
	err = j.do(ctx, "read", func() error {
		all, err = j.db.sinks()
		return err
	})
	return all, err
}

func (db *db) sinks() (all []Sink, err error) {
	err = db.query(sinkRows, nil, func(s *sqlite3.Stmt) error {
		all = append(all, Sink{s.ColumnText(0), s.ColumnInt64(1), s.ColumnType(1) != sqlite3.NULL, s.ColumnBool(2), s.ColumnInt(3), s.ColumnInt64(4)})
		return nil
	})
	return all, err
}

// SetAside stores a dead letter, durably, and replaces an earlier one of the same change. The sink's cursor does not move.
// It returns how many dead letters were displaced; see Sink.Lost.
func (j *Journal) SetAside(ctx context.Context, d DeadLetter) (displaced int64, err error) {
	return j.setAside(ctx, d, nil)
}

// Skip is SetAside and SetCursor in one transaction.
func (j *Journal) Skip(ctx context.Context, d DeadLetter, cursor int64) (displaced int64, err error) {
	return j.setAside(ctx, d, &cursor)
}

func (j *Journal) setAside(ctx context.Context, d DeadLetter, cursor *int64) (displaced int64, err error) {
	err = j.write(ctx, "write", func() error {
		if displaced, err = j.db.setAside(d); err != nil || cursor == nil {
			return err
		}
		return j.db.setCursor(d.Sink, *cursor)
	})
	if err != nil {
		return 0, err
	}
	return displaced, nil
}

func (db *db) setAside(d DeadLetter) (displaced int64, err error) {
	if err := db.exec("INSERT INTO sinks (name, paused) VALUES (?, 0) ON CONFLICT DO NOTHING", d.Sink); err != nil {
		return 0, err
	}
	err = db.exec(`INSERT OR REPLACE INTO dead (sink, seq, change, reason, attempts, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		d.Sink, d.Seq, d.ID, d.Reason, d.Attempts, d.At, d.Body)
	if err != nil {
		return 0, err
	}
	kept, err := db.integer("SELECT count(*) FROM dead WHERE sink = ?", d.Sink)
	if displaced = max(0, kept-MaxDeadLetters); err != nil || displaced == 0 {
		return 0, err
	}
	err = db.exec("DELETE FROM dead WHERE id IN (SELECT id FROM dead WHERE sink = ? ORDER BY id LIMIT ?)", d.Sink, displaced)
	if err != nil {
		return 0, err
	}
	return displaced, db.lose(d.Sink, displaced)
}

// lose counts changes that a sink will never get.
func (db *db) lose(sink string, changes int64) error {
	return db.exec("UPDATE sinks SET lost = lost + ? WHERE name = ?", changes, sink)
}

// DeadLetters returns a sink's dead letters in the order in which they were set aside.
func (j *Journal) DeadLetters(ctx context.Context, sink string) (all []DeadLetter, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.query("SELECT seq, change, reason, attempts, at, body FROM dead WHERE sink = ? ORDER BY id", []any{sink}, func(s *sqlite3.Stmt) error {
			all = append(all, DeadLetter{
				Sink: sink, Seq: s.ColumnInt64(0), ID: s.ColumnText(1), Reason: s.ColumnText(2),
				Attempts: s.ColumnInt(3), At: columnTime(s, 4), Body: blob(s, 5),
			})
			return nil
		})
	})
	return all, err
}

// DropDeadLetters removes dead letters that were sent, or that the user removed.
func (j *Journal) DropDeadLetters(ctx context.Context, sink string, seqs ...int64) error {
	return j.write(ctx, "write", func() error {
		for _, seq := range seqs {
			if err := j.db.exec("DELETE FROM dead WHERE sink = ? AND seq = ?", sink, seq); err != nil {
				return err
			}
		}
		return nil
	})
}
