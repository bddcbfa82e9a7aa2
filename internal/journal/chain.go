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

// The chain of an object: what was before a change is the difference from what was after it; what was
// after it is what was before the next, or the state. So the newest history is the cheapest, the oldest
// can be removed, and a change is written without reading another. Some contents are whole: what was
// before a deletion, and what was after every 64th change, so that a walk is short. Where what was before a
// change was purged, what was after the one before it is whole.

// link is a change in its object's chain.
type link struct {
	seq           int64
	op            event.Op
	before, after []byte // contents; nil where there is none of its own
}

// leaves tells whether there is an object after the operation.
func leaves(op event.Op) bool { return op != event.Deleted && op != event.Left && op.HasObject() }

// chain returns the changes of an object from one on, up to one whose after needs no later one, and
// the state if that is needed.
func (db *db) chain(object, seq int64) (links []link, state []byte, err error) {
	done := false
	err = db.query("SELECT seq, op, before, after FROM changes WHERE object = ? AND seq >= ? ORDER BY seq", []any{object, seq},
		func(s *sqlite3.Stmt) error {
			l := link{s.ColumnInt64(0), opOf(s.ColumnInt(1)), blob(s, 2), blob(s, 3)}
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
	err = db.query("SELECT content FROM objects WHERE id = ?", []any{object}, func(s *sqlite3.Stmt) error {
		content = blob(s, 0)
		return nil
	})
	return content, err
}

// unwind calls each with what was before and after each link, the newest first. What was after the
// newest is next, where that has none of its own.
func (c *codec) unwind(path string, links []link, next []byte, each func(l *link, before, after []byte) error) error {
	for i := len(links) - 1; i >= 0; i-- {
		l := &links[i]
		var before, after []byte
		var err error
		if leaves(l.op) {
			if after = next; l.after != nil {
				after, err = c.open(l.after, next)
			} else if after == nil {
				err = errors.New("its next change does not tell")
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

// contents returns what was before and after a change; nil where there was nothing, and where what was
// before was purged.
func (db *db) contents(c *codec, object, seq int64) (before, after []byte, purged bool, err error) {
	var v version
	err = db.walk(c, object, seq, func(_ int, w version) { v = w })
	return v.before, v.after, v.purged, err
}

// walk calls each with the changes of an object that are needed to read one, the newest first and that one last, and
// with how many come before each.
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
