package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

const (
	// weighRows is how many objects are weighed per transaction, which bounds how long other readers wait.
	weighRows = 2000
	// stateSize is what a state takes in the file besides its content and unused space: its row, the object's row and
	// index entries, about.
	stateSize = 200
	// usable, most and least are how SQLite divides a row: the bytes of a page (without its checksum), the size up to which
	// a row stays in one page, and how much of a longer one stays in it at least.
	usable = 4096 - 8
	most   = usable - 35
	least  = (usable-12)*32/255 - 23
)

// States returns about how many bytes of the file the last states take. It reads every state, some milliseconds at a
// time.
func (r *Reader) States(ctx context.Context) (size int64, err error) {
	for last, from := int64(1), int64(0); from < last; from += weighRows {
		err := r.do(ctx, func() (err error) {
			if last, err = r.db.integer("SELECT max(object) FROM live"); err != nil {
				return err
			}
			return r.db.query("SELECT length(content) FROM live WHERE object > ? AND object <= ?", []any{from, from + weighRows}, func(s *sqlite3.Stmt) error {
				size += stateSize + inPages(s.ColumnInt64(0))
				return nil
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// inPages returns how many bytes of pages a row takes. More than half a page leaves no room for another such row.
func inPages(row int64) int64 {
	long := int64(0)
	if row > most {
		local := least + (row-least)%(usable-4)
		if local > most {
			local = least
		}
		long, row = (row-local+usable-5)/(usable-4)*4096, local
	}
	if row > usable/2 {
		row = 4096
	}
	return long + row
}
