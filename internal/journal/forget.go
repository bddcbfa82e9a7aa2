package journal

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// forgetRows is how many objects are detached per transaction, which bounds how long an append waits.
const forgetRows = 100

// Forget detaches the objects of a stream that is no longer watched, in small steps, and drops their last states. Their
// history and the stream's At remain; see Resume. A stream that was forgotten in part must be relisted.
func (j *Journal) Forget(ctx context.Context, s Stream) error {
	for done := false; !done; {
		err := j.write(ctx, "write", func() (err error) {
			done, err = j.forgetSome(s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) forgetSome(s Stream) (done bool, err error) {
	id, err := j.db.streamID(s)
	if err != nil || id == 0 {
		return true, err
	}
	some, err := j.detach("stream = ?", id)
	switch {
	case err != nil:
		return false, err
	case len(some) == forgetRows:
		return false, j.db.exec("UPDATE streams SET version = '', live = 0, ever_live = 0 WHERE id = ?", id)
	default:
		return true, j.db.exec("UPDATE streams SET version = '', live = 0, ever_live = 0, pipeline = ? WHERE id = ?", forgotten, id)
	}
}

// detach takes objects out of their streams and drops their states, up to forgetRows, by number. The newest change of each
// then gets its own after.
func (j *Journal) detach(which string, args ...any) (some []object, err error) {
	err = j.db.query("SELECT object, last FROM live WHERE "+which+" ORDER BY object LIMIT ?", append(args, forgetRows),
		func(s *sqlite3.Stmt) error {
			some = append(some, object{id: s.ColumnInt64(0), last: s.ColumnInt64(1)})
			return nil
		})
	w := writer{db: j.db, codec: j.codec}
	for i := range some {
		if err == nil {
			err = w.detach(&some[i])
		}
	}
	return some, err
}

func (w *writer) detach(o *object) error {
	if o.last == 0 { // no history
		return errors.Join(w.db.exec("DELETE FROM live WHERE object = ?", o.id), w.db.exec("DELETE FROM objects WHERE id = ?", o.id))
	}
	var after []byte
	err := w.db.query("SELECT after FROM contents WHERE seq = ?", []any{o.last}, func(s *sqlite3.Stmt) error {
		after = blob(s, 0)
		return nil
	})
	if err == nil && !isWhole(after) {
		err = w.pin(o, nil)
	}
	if err != nil {
		return err
	}
	return w.db.exec("DELETE FROM live WHERE object = ?", o.id)
}
