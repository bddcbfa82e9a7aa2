package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// sumsKey is the key in meta of the id of the sums' key.
const sumsKey = "sums"

// Sums notes the id of the key with which rows' sums are made from now on. Sums of another key cannot be compared and
// are dropped.
func (j *Journal) Sums(ctx context.Context, key string) error {
	return j.write(ctx, "write", func() error {
		was := ""
		err := j.db.query("SELECT value FROM meta WHERE key = ?", []any{sumsKey}, func(s *sqlite3.Stmt) error {
			was = s.ColumnText(0)
			return nil
		})
		if err != nil || was == key {
			return err
		}
		if err := j.db.exec("UPDATE live SET sum = NULL WHERE sum IS NOT NULL"); err != nil {
			return err
		}
		return j.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", sumsKey, key)
	})
}
