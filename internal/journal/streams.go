package journal

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

func damaged(path, what, format string, args ...any) error {
	return &DamagedError{path, what, fmt.Errorf(format, args...)}
}

func (db *db) cluster() (name string, err error) {
	err = db.query("SELECT value FROM meta WHERE key = 'cluster'", nil, func(s *sqlite3.Stmt) error {
		name = s.ColumnText(0)
		return nil
	})
	return name, err
}

// forgotten is the pipeline of a stream that has no objects: of it is only left until when it was watched, and
// in which history of the server.
const forgotten = "none"

// streams calls each with streams that were not forgotten.
func (db *db) streams(where string, args []any, each func(id int64, sh StreamHead)) error {
	return db.watched(where, args, func(id int64, sh StreamHead) {
		if sh.Head.Pipeline != forgotten {
			each(id, sh)
		}
	})
}

// watched calls each with all streams that ever were.
func (db *db) watched(where string, args []any, each func(id int64, sh StreamHead)) error {
	served := "served"
	if db.format < 4 {
		served = "0"
	}
	sql := "SELECT id, resource, namespace, selection, version, epoch, live, ever, pipeline, identity, at, " + served + " FROM streams "
	return db.query(sql+where, args, func(s *sqlite3.Stmt) error {
		each(s.ColumnInt64(0), StreamHead{
			Stream{s.ColumnText(1), s.ColumnText(2), s.ColumnText(3)},
			Head{
				Version: s.ColumnText(4), Epoch: s.ColumnInt64(5), Live: s.ColumnBool(6), EverLive: s.ColumnBool(7),
				Pipeline: s.ColumnText(8), Identity: s.ColumnText(9), At: columnTime(s, 10),
				Served: uint64(s.ColumnInt64(11)), //nolint:gosec // the same bits
			},
		})
		return nil
	})
}

// setHead moves a stream and returns its number.
func (db *db) setHead(st Stream, h Head) (int64, error) {
	return db.integer(`INSERT INTO streams (resource, namespace, selection, version, epoch, live, ever, pipeline, identity, at, served)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET version = excluded.version, epoch = excluded.epoch, live = excluded.live,
		ever = excluded.ever, pipeline = excluded.pipeline, identity = excluded.identity, at = excluded.at, served = excluded.served
		RETURNING id`,
		st.GroupResource, st.Namespace, st.Selection, h.Version, h.Epoch, h.Live, h.EverLive, h.Pipeline, h.Identity, h.At, int64(h.Served)) //nolint:gosec // the same bits
}

// object is an object as it is in the file.
type object struct {
	object Object // without JSON
	id     int64
	stream int64 // 0: not live
	top    string
	owner  string
	last   int64  // its newest change; 0 if retention has removed all
	walk   int    // changes since one that can be read without later ones
	head   []byte // of the content that its newest change led to; nil if that was its end
}
