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

// forgotten is the pipeline of a stream without objects. Only its At, Epoch and Identity remain.
const forgotten = "none"

// streams calls each with the streams that were not forgotten.
func (db *db) streams(where string, args []any, each func(id int64, sh StreamHead)) error {
	return db.watched(where, args, func(id int64, sh StreamHead) {
		if sh.Head.Pipeline != forgotten {
			each(id, sh)
		}
	})
}

// watched calls each with all streams, forgotten ones too.
func (db *db) watched(where string, args []any, each func(id int64, sh StreamHead)) error {
	const columns = "SELECT id, resource, namespace, selection, version, epoch, live, ever_live, pipeline, identity, at, served FROM streams "
	return db.query(columns+where, args, func(s *sqlite3.Stmt) error {
		resource, cluster := unqualify(s.ColumnText(1))
		each(s.ColumnInt64(0), StreamHead{
			Stream{GroupResource: resource, Namespace: s.ColumnText(2), Selection: s.ColumnText(3), Cluster: cluster},
			Head{
				Version: s.ColumnText(4), Epoch: s.ColumnInt64(5), Live: s.ColumnBool(6), EverLive: s.ColumnBool(7),
				Pipeline: s.ColumnText(8), Identity: s.ColumnText(9), At: columnTime(s, 10),
				Served: uint64(s.ColumnInt64(11)), //nolint:gosec // the same bits
			},
		})
		return nil
	})
}

// setHead sets a stream's head and returns the stream's number.
func (db *db) setHead(st Stream, h Head) (int64, error) {
	if err := db.several(st.Cluster); err != nil {
		return 0, err
	}
	return db.integer(`INSERT INTO streams (resource, namespace, selection, version, epoch, live, ever_live, pipeline, identity, at, served)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET version = excluded.version, epoch = excluded.epoch, live = excluded.live,
		ever_live = excluded.ever_live, pipeline = excluded.pipeline, identity = excluded.identity, at = excluded.at, served = excluded.served
		RETURNING id`,
		st.resource(), st.Namespace, st.Selection, h.Version, h.Epoch, h.Live, h.EverLive, h.Pipeline, h.Identity, h.At, int64(h.Served)) //nolint:gosec // the same bits
}

// object is a row of objects, with its row of live.
type object struct {
	id         int64
	owner      string
	last       int64  // its newest change; 0 if retention has removed all
	maxVersion string // the highest version of its changes, or one that is not a number
	stream     int64  // 0: not live
	chain      int    // changes since the last one that needs no later one to be read
	head       []byte // head of its state; nil if it is not live
}
