package journal

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

func damaged(path, what, format string, args ...any) error {
	return &DamagedError{path, what, fmt.Errorf(format, args...)}
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
	const columns = `SELECT streams.id, r.plural, r."group", ` + clusterKey + `, namespace, selection,
		version, epoch, live, ever_live, pipeline, identity, at, served FROM streams` + ofResources
	return db.query(columns+where, args, func(s *sqlite3.Stmt) error {
		of := Kind{Resource: s.ColumnText(1), Group: s.ColumnText(2)}
		each(s.ColumnInt64(0), StreamHead{
			Stream{GroupResource: of.GroupResource(), Cluster: s.ColumnText(3), Namespace: s.ColumnText(4), Selection: s.ColumnText(5)},
			Head{
				Version: s.ColumnText(6), Epoch: s.ColumnInt64(7), Live: s.ColumnBool(8), EverLive: s.ColumnBool(9),
				Pipeline: s.ColumnText(10), Identity: s.ColumnText(11), At: columnTime(s, 12),
				Served: uint64(s.ColumnInt64(13)), //nolint:gosec // the same bits
			},
		})
		return nil
	})
}

// The conditions and orders of streams and watched.
const (
	ofResource = "WHERE resource = ? "
	thisStream = ofResource + "AND namespace = ? AND selection = ? "
	byName     = `ORDER BY r.plural, r."group", c.id, namespace, selection`
)

// thisStream returns the arguments of the condition.
func (db *db) thisStream(s Stream) ([]any, error) {
	resource, err := db.resourceID(s.Cluster, s.GroupResource)
	return []any{resource, s.Namespace, s.Selection}, err
}

// streamID returns the number of a stream; 0 if the journal does not have it.
func (db *db) streamID(s Stream) (int64, error) {
	args, err := db.thisStream(s)
	if err != nil {
		return 0, err
	}
	return db.integer("SELECT id FROM streams "+thisStream, args...)
}

// setHead sets the head of a stream of a resource and returns the stream's number.
func (db *db) setHead(resource int64, st Stream, h Head) (int64, error) {
	return db.integer(`INSERT INTO streams (resource, namespace, selection, version, epoch, live, ever_live, pipeline, identity, at, served)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET version = excluded.version, epoch = excluded.epoch, live = excluded.live,
		ever_live = excluded.ever_live, pipeline = excluded.pipeline, identity = excluded.identity, at = excluded.at, served = excluded.served
		RETURNING id`,
		resource, st.Namespace, st.Selection, h.Version, h.Epoch, h.Live, h.EverLive, h.Pipeline, h.Identity, h.At, int64(h.Served)) //nolint:gosec // the same bits
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
