package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// MaxDeadLetters is how many dead letters are kept of a sink: what comes after pushes the oldest out, which
// are lost to the sink then.
const MaxDeadLetters = 10_000

// Cursor returns the sequence number up to which a sink has everything; false if none was set.
func (j *Journal) Cursor(ctx context.Context, sink string) (seq int64, ok bool, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.query("SELECT cursor FROM sinks WHERE name = ? AND cursor IS NOT NULL", []any{sink}, func(s *sqlite3.Stmt) error {
			seq, ok = s.ColumnInt64(0), true
			return nil
		})
	})
	return seq, ok, err
}

// SetCursor sets how far a sink is, durably. It may be set back.
func (j *Journal) SetCursor(ctx context.Context, sink string, seq int64) error {
	return j.write(ctx, "write", func() error { return j.db.setCursor(sink, seq) })
}

// Rewind sets how far a sink is back, for a replay, durably. Repeats says until where that replay goes.
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

// repeatsKey begins the key in meta of what Repeats returns for a sink.
const repeatsKey = "repeats/"

// Repeats returns the sequence number up to which a sink has got changes that it is to get again, or has been
// replayed since; 0 where nothing was ever replayed.
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

// Pause sets whether a sink is paused; a restart does not change it.
func (j *Journal) Pause(ctx context.Context, sink string, paused bool) error {
	return j.write(ctx, "write", func() error {
		return j.db.exec("INSERT INTO sinks (name, paused) VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused", sink, paused)
	})
}

// RemoveSink forgets a sink that is configured no more, with its dead letters.
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

// sinkRows is a query of all sinks.
func (db *db) sinkRows() string {
	lost := "lost"
	if db.format < 3 {
		lost = "0"
	}
	return "SELECT name, cursor, paused, (SELECT count(*) FROM dead WHERE sink = name), " + lost + " FROM sinks ORDER BY name"
}

// Sinks returns all sinks of which something is kept, sorted by name.
func (j *Journal) Sinks(ctx context.Context) (all []Sink, err error) {
	err = j.do(ctx, "read", func() error {
		all, err = j.db.sinks()
		return err
	})
	return all, err
}

func (db *db) sinks() (all []Sink, err error) {
	err = db.query(db.sinkRows(), nil, func(s *sqlite3.Stmt) error {
		all = append(all, Sink{s.ColumnText(0), s.ColumnInt64(1), s.ColumnType(1) != sqlite3.NULL, s.ColumnBool(2), s.ColumnInt(3), s.ColumnInt64(4)})
		return nil
	})
	return all, err
}

// SetAside keeps a change that a sink did not take, durably. A second one for the same change replaces
// the first. The sink's cursor is not moved. It returns how many dead letters that pushed out: see Sink.Lost.
func (j *Journal) SetAside(ctx context.Context, d DeadLetter) (pushed int64, err error) {
	return j.bury(ctx, d, nil)
}

// Skip is SetAside and SetCursor in one transaction.
func (j *Journal) Skip(ctx context.Context, d DeadLetter, cursor int64) (pushed int64, err error) {
	return j.bury(ctx, d, &cursor)
}

func (j *Journal) bury(ctx context.Context, d DeadLetter, cursor *int64) (pushed int64, err error) {
	err = j.write(ctx, "write", func() error {
		if pushed, err = j.db.bury(d); err != nil || cursor == nil {
			return err
		}
		return j.db.setCursor(d.Sink, *cursor)
	})
	if err != nil {
		return 0, err
	}
	return pushed, nil
}

func (db *db) bury(d DeadLetter) (pushed int64, err error) {
	if err := db.exec("INSERT INTO sinks (name, paused) VALUES (?, 0) ON CONFLICT DO NOTHING", d.Sink); err != nil {
		return 0, err
	}
	err = db.exec(`INSERT OR REPLACE INTO dead (sink, seq, change, reason, attempts, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		d.Sink, d.Seq, d.ID, d.Reason, d.Attempts, d.At, d.Body)
	if err != nil {
		return 0, err
	}
	kept, err := db.integer("SELECT count(*) FROM dead WHERE sink = ?", d.Sink)
	if pushed = max(0, kept-MaxDeadLetters); err != nil || pushed == 0 {
		return 0, err
	}
	err = db.exec("DELETE FROM dead WHERE id IN (SELECT id FROM dead WHERE sink = ? ORDER BY id LIMIT ?)", d.Sink, pushed)
	if err != nil {
		return 0, err
	}
	return pushed, db.lose(d.Sink, pushed)
}

// lose notes that a sink will never get some changes.
func (db *db) lose(sink string, changes int64) error {
	return db.exec("UPDATE sinks SET lost = lost + ? WHERE name = ?", changes, sink)
}

// DeadLetters returns the dead letters of a sink, in the order in which they were buried.
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

// DropDeadLetters removes dead letters: they were sent, or are given up.
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
