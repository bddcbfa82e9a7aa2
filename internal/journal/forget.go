package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// forgetRows is how many objects are taken out of their stream at a time: who appends waits no longer than
// for that.
const forgetRows = 100

// Forget removes a stream that is no longer watched, in small steps: its objects are not live any more, and
// their last states are not kept beside what happened to them, which stays, as does until when it was watched,
// for Resume. A stream of which a part is forgotten must be listed again.
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
	id, err := j.db.integer("SELECT id FROM streams WHERE resource = ? AND namespace = ? AND selection = ?", s.GroupResource, s.Namespace, s.Selection)
	if err != nil || id == 0 {
		return true, err
	}
	some, err := j.detach(0, "stream = ?", id)
	switch {
	case err != nil:
		return false, err
	case len(some) == forgetRows:
		return false, j.db.exec("UPDATE streams SET version = '', live = 0, ever = 0 WHERE id = ?", id)
	default:
		return true, j.db.exec("UPDATE streams SET version = '', live = 0, ever = 0, pipeline = ? WHERE id = ?", forgotten, id)
	}
}

// settle drops states of objects that are not live, which older programs kept, in small steps: they may be
// what other redaction rules made of a change that stays.
func (j *Journal) settle(ctx context.Context) error {
	for after, n := int64(0), forgetRows; n == forgetRows; {
		err := j.write(ctx, "write", func() error {
			some, err := j.detach(after, "stream IS NULL AND content IS NOT NULL")
			if n = len(some); n > 0 {
				after = some[n-1].id
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// detach takes some objects out of their streams, in the order of their numbers, from after one on. The
// newest change of each then tells by itself what it led to, for which the state goes.
func (j *Journal) detach(after int64, which string, args ...any) (some []object, err error) {
	err = j.db.query("SELECT id, last FROM objects WHERE id > ? AND "+which+" ORDER BY id LIMIT ?", append(append([]any{after}, args...), forgetRows),
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
	if o.last == 0 { // without a change there is no history that a state ends
		return w.db.exec("DELETE FROM objects WHERE id = ?", o.id)
	}
	var after []byte
	err := w.db.query("SELECT after FROM changes WHERE seq = ?", []any{o.last}, func(s *sqlite3.Stmt) error {
		after = blob(s, 0)
		return nil
	})
	if err == nil && !isWhole(after) {
		err = w.pin(o, nil)
	}
	if err != nil {
		return err
	}
	return w.db.exec("UPDATE objects SET stream = NULL, content = NULL, sum = NULL, walk = 0 WHERE id = ?", o.id)
}
