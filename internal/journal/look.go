package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// Streams is like Journal.Streams.
func (r *Reader) Streams(ctx context.Context) (all []StreamHead, err error) {
	err = r.do(ctx, func() error {
		return r.db.streams(byName, nil, func(_ int64, sh StreamHead) { all = append(all, sh) })
	})
	return all, err
}

// DeadLettersAfter returns at most limit dead letters of a sink, without bodies: those of the changes after a sequence
// number, in the order of the changes.
func (r *Reader) DeadLettersAfter(ctx context.Context, sink string, seq int64, limit int) (all []DeadLetter, err error) {
	err = r.do(ctx, func() error {
		const query = "SELECT seq, change, reason, attempts, at FROM dead WHERE sink = ? AND seq > ? ORDER BY seq LIMIT ?"
		return r.db.query(query, []any{sink, seq, limit}, func(s *sqlite3.Stmt) error {
			all = append(all, DeadLetter{
				Sink: sink, Seq: s.ColumnInt64(0), ID: s.ColumnText(1), Reason: s.ColumnText(2), Attempts: s.ColumnInt(3), At: columnTime(s, 4),
			})
			return nil
		})
	})
	return all, err
}
