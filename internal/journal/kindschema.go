package journal

import (
	"bytes"
	"context"
	"math"

	"github.com/ncruces/go-sqlite3"
)

// KindSchema is the merge-key schema of a kind for a range of changes, which are compared by it: so a change reads as it was
// delivered.
type KindSchema struct {
	JSON []byte // nil: the kind had no schema
	// From and UpTo are the sequence numbers of the first and the last of these changes. UpTo of the newest schema is the
	// newest change of the journal.
	From, UpTo int64
}

// setSchema stores the schema of a kind for the changes from next on, and removes those that no change needs any longer.
func (w *writer) setSchema(kind int64, schema []byte, next int64) error {
	last, err := w.db.schemaOf(kind, math.MaxInt64)
	if err != nil {
		return err
	}
	if last.content != nil {
		if known, err := w.codec.open(last.content, nil); err == nil && bytes.Equal(known, schema) {
			return nil
		}
	}
	if err := w.db.exec("INSERT OR REPLACE INTO schemas VALUES (?, ?, ?)", kind, next, w.codec.whole(schema)); err != nil {
		return err
	}
	return w.db.exec(`DELETE FROM schemas WHERE kind = ?1 AND first <
		(SELECT max(first) FROM schemas WHERE kind = ?1 AND first <= (SELECT coalesce(min(seq), ?2) FROM changes))`, kind, next)
}

// storedSchema is a row of schemas.
type storedSchema struct {
	first   int64
	content []byte // nil: there is none
}

// schemaOf returns the schema by which a change of a kind is compared.
func (db *db) schemaOf(kind, seq int64) (found storedSchema, err error) {
	err = db.query("SELECT first, content FROM schemas WHERE kind = ? AND first <= ? ORDER BY first DESC LIMIT 1", []any{kind, seq},
		func(s *sqlite3.Stmt) error {
			found = storedSchema{s.ColumnInt64(0), blob(s, 1)}
			return nil
		})
	return found, err
}

// Schema returns the schema by which a change of a kind is compared; 0 stands for the newest change.
func (r *Reader) Schema(ctx context.Context, k Kind, seq int64) (schema KindSchema, err error) {
	if seq == 0 {
		seq = math.MaxInt64
	}
	err = r.do(ctx, func() error {
		resource, err := r.db.resourceID(k.Cluster, k.GroupResource())
		if err != nil {
			return err
		}
		kind, err := r.db.kindID(resource, k)
		if err != nil {
			return err
		}
		found, err := r.db.schemaOf(kind, seq)
		if err != nil {
			return err
		}
		schema.From = found.first
		schema.UpTo, err = r.db.integer(`SELECT coalesce((SELECT min(first) - 1 FROM schemas WHERE kind = ? AND first > ?), (SELECT max(seq) FROM changes))`, kind, seq)
		if err != nil || found.content == nil {
			return err
		}
		if schema.JSON, err = r.codec.open(found.content, nil); err != nil {
			return &DamagedError{r.path, "schema of " + k.GroupResource(), err}
		}
		return nil
	})
	return schema, err
}
