package journal

import (
	"context"
	"errors"
	"time"
)

// Streams outlive the configuration. A stream that is no longer configured is forgotten, but not before its successor
// has delivered its whole state, which begins with the old stream's state. So a changed configuration continues with
// what is known, without repeating it. That holds between all namespaces and some. Where labels, fields or globs of
// namespaces select, the new stream begins from nothing, and so does one that was left out for a while. What happened
// in between is unknown: a gap names its start, for which the journal keeps the time until which forgotten streams
// were watched.

// Origin says where a stream's resume state came from.
type Origin uint8

const (
	// OriginNone says that nothing that the stream selects was ever watched.
	OriginNone Origin = iota
	// OriginOwn says that the stream has its own state.
	OriginOwn
	// OriginOthers says that the stream took over objects of other streams of its kind.
	OriginOthers
	// OriginLost says that no state is left, but something that the stream selects was watched, up to the head's At.
	OriginLost
)

// Resume returns the state from which a stream resumes. Without objects, the head is empty, except that for OriginLost
// it has At: until when all that the stream selects was watched or, failing that, the part that was watched least recently.
//
// A stream that is not live takes over live objects that it selects from other streams of its kind, so that a changed
// configuration keeps what is known. If all namespaces were watched, one namespace resumes from that version. Otherwise
// the stream must be listed, as for the first time: an object that the others did not hold is not new. With a selection by
// labels, fields or globs, the journal cannot know which objects of others match, and takes over none.
func (j *Journal) Resume(ctx context.Context, s Stream) (from Origin, h Head, err error) {
	err = j.write(ctx, "write", func() error {
		if from, h, err = j.db.resume(s); err == nil && from == OriginOthers {
			err = j.dropNamesakes(s)
		}
		return err
	})
	return from, h, err
}

// kin is what the streams of a kind mean for one of them.
type kin struct {
	resource int64 // their number

	own   *Head     // its own head, unless it was forgotten
	gone  time.Time // if it was forgotten: until when it was watched
	from  []held    // other streams with objects to take over
	until time.Time // until when it was watched, see Resume; zero: never
}

// held is a stream with objects that another one takes over.
type held struct {
	id   int64
	head Head
	all  bool // not only those of one namespace
}

func (db *db) kin(s Stream) (k kin, err error) {
	var part time.Time
	if k.resource, err = db.resourceID(s.Cluster, s.GroupResource); err != nil {
		return k, err
	}
	err = db.watched(ofResource, []any{k.resource}, func(id int64, o StreamHead) {
		reaches := o.Stream.Namespace == "" || o.Stream.Namespace == s.Namespace // covers all of s
		switch at := o.Head.At; {
		case o.Stream == s || reaches && o.Stream.Selection == "":
			if at.After(k.until) {
				k.until = at
			}
		case !reaches && s.Namespace != "":
			return
		case part.IsZero() || at.Before(part):
			part = at
		}
		switch {
		case o.Head.Pipeline == forgotten && o.Stream == s:
			k.gone = o.Head.At
		case o.Head.Pipeline == forgotten:
		case o.Stream == s:
			k.own = &o.Head
		case s.Selection != "": // an object outside the selection was not deleted
		case s.Namespace == "" || s.Namespace == o.Stream.Namespace:
			k.from = append(k.from, held{id, o.Head, true})
		case o.Stream.Selection == "":
			k.from = append(k.from, held{id, o.Head, false})
		}
	})
	if k.until.IsZero() {
		k.until = part
	}
	return k, err
}

func (db *db) resume(s Stream) (Origin, Head, error) {
	k, err := db.kin(s)
	switch {
	case err != nil:
		return OriginNone, Head{}, err
	case k.own != nil && k.own.Live:
		return OriginOwn, *k.own, nil
	}
	from := alike(k.from)
	switch {
	case len(from) > 0 && (k.own == nil || k.own.alike(from[0].head)):
		h, err := db.adopt(s, k, from)
		return OriginOthers, h, err
	case k.own != nil:
		return OriginOwn, *k.own, nil
	}
	if k.until.IsZero() {
		return OriginNone, Head{}, nil
	}
	return OriginLost, Head{At: k.until}, nil
}

// adopt gives a stream objects of others.
func (db *db) adopt(s Stream, k kin, from []held) (Head, error) {
	h := from[0].head
	// Objects that s itself held and lost may have been a part of what the other held.
	kept := h.Version != "" && len(from) == 1 && !from[0].all && k.own == nil && (k.gone.IsZero() || k.gone.Before(h.At))
	if !kept {
		h.Version, h.At = "", k.until
	}
	h.Live, h.EverLive = kept, kept // the other may have been live until it lost some
	to, err := db.setHead(k.resource, s, h)
	if err != nil {
		return h, err
	}
	for _, f := range from {
		if err := db.hand(f, to, s); err != nil {
			return h, err
		}
	}
	return h, nil
}

// alike returns the newest stream, first, and the streams whose objects can be mixed with its objects.
func alike(all []held) (some []held) {
	newest := -1
	for i := range all {
		if newest < 0 || all[i].head.At.After(all[newest].head.At) {
			newest = i
		}
	}
	for i, f := range all {
		switch {
		case !f.head.alike(all[newest].head):
		case i == newest:
			some = append([]held{f}, some...)
		default:
			some = append(some, f)
		}
	}
	return some
}

// alike reports whether objects of two streams can be mixed.
func (h Head) alike(o Head) bool {
	return h.Epoch == o.Epoch && h.Pipeline == o.Pipeline && h.Identity == o.Identity
}

// hand moves objects. A stream that lost some must be relisted; it keeps its version for other streams that take over
// the rest.
func (db *db) hand(from held, to int64, s Stream) error {
	if from.all {
		return errors.Join(
			db.exec("UPDATE live SET stream = ? WHERE stream = ?", to, from.id),
			db.exec("DELETE FROM streams WHERE id = ?", from.id))
	}
	cluster, err := db.clusterID(s.Cluster)
	if err != nil {
		return err
	}
	return errors.Join(
		db.exec(`UPDATE live SET stream = ? WHERE stream = ? AND (SELECT namespace FROM objects WHERE id = live.object) =
			(SELECT id FROM namespaces WHERE name = ? AND cluster = ?)`, to, from.id, s.Namespace, cluster),
		db.exec("UPDATE streams SET live = 0, ever_live = 0 WHERE id = ?", from.id))
}

// dropNamesakes detaches all but the newest of objects with one name, which two streams may each have held: the newest
// one proves that the others are gone.
func (j *Journal) dropNamesakes(s Stream) error {
	const older = `object IN (SELECT id FROM
		(SELECT o.id, row_number() OVER (PARTITION BY o.namespace, o.name ORDER BY l.last DESC, o.id DESC) AS n
			FROM live l JOIN objects o ON o.id = l.object WHERE l.stream = ?)
		WHERE n > 1)`
	stream, err := j.db.streamID(s)
	for more := true; more && err == nil; {
		var some []object
		some, err = j.detach(older, stream)
		more = len(some) == forgetRows
	}
	return err
}
