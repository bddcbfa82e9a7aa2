package journal

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Clock is the time by which a daemon removes changes. It is kept across restarts, as the wall clock may be wrong.
type Clock struct {
	// At is the time that the clock last showed.
	At time.Time
	// Diverged is how long the wall clock has shown another time.
	Diverged time.Duration
}

// clockKey is the key of the clock in meta: both fields in milliseconds, separated by a space.
const clockKey = "clock"

// Clock returns the clock that SetClock stored. Without one, it shows when the newest change was seen; it is zero in
// an empty journal.
func (j *Journal) Clock(ctx context.Context) (c Clock, err error) {
	err = j.do(ctx, "read", func() error {
		known := false
		err := j.db.query("SELECT value FROM meta WHERE key = ?", []any{clockKey}, func(s *sqlite3.Stmt) error {
			at, diverged, _ := strings.Cut(s.ColumnText(0), " ")
			ms, err := strconv.ParseInt(at, 10, 64)
			since, serr := strconv.ParseInt(diverged, 10, 64)
			if known = err == nil && serr == nil; known {
				c = Clock{time.UnixMilli(ms).UTC(), time.Duration(since) * time.Millisecond}
			}
			return nil
		})
		if err != nil || known {
			return err
		}
		return j.db.query("SELECT time + lag FROM changes ORDER BY seq DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
			c.At = columnTime(s, 0)
			return nil
		})
	})
	return c, err
}

// SetClock stores a clock.
func (j *Journal) SetClock(ctx context.Context, c Clock) error {
	return j.write(ctx, "write", func() error {
		return j.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", clockKey,
			strconv.FormatInt(c.At.UnixMilli(), 10)+" "+strconv.FormatInt(c.Diverged.Milliseconds(), 10))
	})
}
