package journal

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// The journal stores an update as the difference from the new version back to the old one. So a write reads nothing,
// the newest history is the cheapest to read, and the oldest can be dropped. The last state of each live object is
// complete. A row whose event id exists already is not written again.

// wholeEvery bounds how many later changes are needed to read one.
const wholeEvery = 64

// The chain of an object: "before" of a change is a delta from its "after", and "after" is the "before" of the next
// change, or the object's state after the newest. So the newest history is the cheapest to read, the oldest can be
// removed, and a change is written without reading another. Some contents are whole, which bounds the chain: "before"
// of a deletion, "after" of every 64th change, and "after" of a change whose successor's "before" was purged.

// link is a change in its object's chain.
type link struct {
	seq           int64
	op            event.Op
	before, after []byte // contents; nil if not stored here
}

// selectLinks is the query of an object's links.
const selectLinks = "SELECT c.seq, c.op, t.before, t.after FROM changes c LEFT JOIN contents t ON t.seq = c.seq WHERE c.object = ? "

func columnLink(s *sqlite3.Stmt) link {
	return link{s.ColumnInt64(0), opOf(s.ColumnInt(1)), blob(s, 2), blob(s, 3)}
}

// setAfter stores the content after a change.
func (db *db) setAfter(seq int64, content []byte) error {
	return db.exec("INSERT INTO contents (seq, after) VALUES (?, ?) ON CONFLICT DO UPDATE SET after = excluded.after", seq, content)
}

// leaves reports whether the object exists after the operation.
func leaves(op event.Op) bool { return op != event.Deleted && op != event.Left && op.HasObject() }

// chain returns the changes of an object from seq on, up to the first whose after needs no later change, and the
// object's state if it is needed.
func (db *db) chain(object, seq int64) (links []link, state []byte, err error) {
	done := false
	err = db.query(selectLinks+"AND c.seq >= ? ORDER BY c.seq", []any{object, seq}, func(s *sqlite3.Stmt) error {
		l := columnLink(s)
		links = append(links, l)
		if !leaves(l.op) || isWhole(l.after) {
			done = true
			return errDone
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(links) == 0 || links[0].seq != seq {
		return nil, nil, ErrNotFound
	}
	if !done {
		state, err = db.state(object)
		if err == nil && state == nil {
			err = damaged(db.path, fmt.Sprintf("change %d", seq), "its object has no state")
		}
	}
	return links, state, err
}

func (db *db) state(object int64) (content []byte, err error) {
	err = db.query("SELECT content FROM live WHERE object = ?", []any{object}, func(s *sqlite3.Stmt) error {
		content = blob(s, 0)
		return nil
	})
	return content, err
}

// unwind calls each with the contents before and after each link, newest first. next is the content after the newest
// link that stores none.
func (c *codec) unwind(path string, links []link, next []byte, each func(l *link, before, after []byte) error) error {
	for i := len(links) - 1; i >= 0; i-- {
		l := &links[i]
		var before, after []byte
		var err error
		if leaves(l.op) {
			if after = next; l.after != nil {
				after, err = c.open(l.after, next)
			} else if after == nil {
				err = errors.New("no later change holds it")
			}
			if err != nil {
				return &DamagedError{path, fmt.Sprintf("change %d, after", l.seq), err}
			}
		}
		if l.before != nil && !isPurged(l.before) {
			if before, err = c.open(l.before, after); err != nil {
				return &DamagedError{path, fmt.Sprintf("change %d, before", l.seq), err}
			}
		}
		if err := each(l, before, after); err != nil {
			return err
		}
		next = before
	}
	return nil
}

// contents returns the object before and after a change; nil if it did not exist. purged reports that before was
// purged.
func (db *db) contents(c *codec, object, seq int64) (before, after []byte, purged bool, err error) {
	var v version
	err = db.walk(c, object, seq, func(_ int, w version) { v = w })
	return v.before, v.after, v.purged, err
}

// walk calls each with the changes needed to read one, newest first and the wanted one last, and with how many come
// before each.
func (db *db) walk(c *codec, object, seq int64, each func(before int, v version)) error {
	links, state, err := db.chain(object, seq)
	if err != nil {
		return err
	}
	var next []byte
	if state != nil {
		if next, err = c.open(state, nil); err != nil {
			return &DamagedError{db.path, fmt.Sprintf("state after change %d", links[len(links)-1].seq), err}
		}
	}
	left := len(links)
	return c.unwind(db.path, links, next, func(l *link, before, after []byte) error {
		left--
		each(left, version{l.seq, before, after, isPurged(l.before)})
		return nil
	})
}
