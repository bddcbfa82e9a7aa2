package journal

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// A change is compared by the schema of its time, so that it reads as it was delivered. kinds has the newest schema of each
// kind. A schema that it replaced is in meta under pastSchemas, the kind's number, and the last change that it is for: empty if
// that change was recorded before the kind had a schema.
const pastSchemas = "schema/%d/%019d"

// KindSchema is the merge-key schema of a kind for a range of changes.
type KindSchema struct {
	JSON []byte // nil: the kind had no schema
	// From and UpTo are the sequence numbers of the first and the last of these changes. UpTo of the newest schema is the
	// newest change of the journal.
	From, UpTo int64
}

// setSchema stores the schema of a kind for the changes from next on.
func (w *writer) setSchema(kind int64, schema []byte, next int64) error {
	old, err := w.db.schemaOf(kind)
	if err != nil {
		return err
	}
	if old != nil {
		if known, err := w.codec.open(old, nil); err == nil && bytes.Equal(known, schema) {
			return nil
		}
	}
	if old == nil {
		old = []byte{}
	}
	oldest, err := w.db.integer("SELECT coalesce(min(seq), ?) FROM changes", next)
	if err != nil {
		return err
	}
	return orElse(w.db.exec("DELETE FROM meta WHERE key >= ? AND key < ?", fmt.Sprintf(pastSchemas, kind, 0), fmt.Sprintf(pastSchemas, kind, oldest)), orElse(
		w.db.exec("INSERT OR IGNORE INTO meta VALUES (?, ?)", fmt.Sprintf(pastSchemas, kind, next-1), old),
		w.db.exec("UPDATE kinds SET schema = ? WHERE id = ?", w.codec.whole(schema), kind)))
}

// schemaOf returns the newest schema of a kind as stored; nil if it has none.
func (db *db) schemaOf(kind int64) (content []byte, err error) {
	err = db.query("SELECT schema FROM kinds WHERE id = ?", []any{kind}, func(s *sqlite3.Stmt) error {
		content = blob(s, 0)
		return nil
	})
	return content, err
}

// Schema returns the schema by which a change of a kind is compared; 0 stands for the newest change.
func (r *Reader) Schema(ctx context.Context, k Kind, seq int64) (schema KindSchema, err error) {
	if seq == 0 {
		seq = math.MaxInt64
	}
	err = r.do(ctx, func() error {
		if schema.UpTo, err = r.db.integer("SELECT max(seq) FROM changes"); err != nil {
			return err
		}
		kind, err := r.db.integer(`SELECT id FROM kinds WHERE "group" = ? AND plural = ? AND version = ? AND kind = ? AND namespaced = ?`,
			k.Group, qualify(k.Resource, k.Cluster), k.Version, k.Kind, k.Namespaced)
		if err != nil {
			return err
		}
		content, err := r.db.schemaOf(kind)
		if err != nil {
			return err
		}
		if content, err = r.db.pastSchema(kind, seq, content, &schema); err != nil || len(content) == 0 {
			return err
		}
		if schema.JSON, err = r.codec.open(content, nil); err != nil {
			return &DamagedError{r.path, "schema of " + k.GroupResource(), err}
		}
		return nil
	})
	return schema, err
}

// pastSchema returns the stored schema for a change, which may be the newest one, and sets its range.
func (db *db) pastSchema(kind, seq int64, newest []byte, of *KindSchema) (content []byte, err error) {
	content = newest
	low, high := fmt.Sprintf(pastSchemas, kind, 0), fmt.Sprintf(pastSchemas, kind, int64(math.MaxInt64))
	err = db.query("SELECT key, value FROM meta WHERE key >= ? AND key < ? ORDER BY key DESC", []any{low, high}, func(s *sqlite3.Stmt) error {
		key := s.ColumnText(0)
		upTo, err := strconv.ParseInt(key[strings.LastIndexByte(key, '/')+1:], 10, 64)
		switch {
		case err != nil:
			return err
		case upTo < seq:
			of.From = upTo + 1
			return errDone
		}
		content, of.UpTo = blob(s, 1), upTo
		return nil
	})
	return content, err
}
