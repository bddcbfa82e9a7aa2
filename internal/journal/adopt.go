package journal

import (
	"context"
	"errors"
	"time"
)

// Adopt gives a stream that is not live the live objects of others of its kind that it holds as well, so
// that another configuration goes on with what is known. It returns false where there are none.
//
// A namespace of what was watched in all namespaces goes on where that stood. Else the stream must be
// listed, and as for the first time: what others did not hold is not new.
func (j *Journal) Adopt(ctx context.Context, s Stream) (adopted bool, err error) {
	err = j.write(ctx, "write", func() error {
		adopted, err = j.db.adopt(s)
		return err
	})
	return adopted, err
}

// held is a stream with objects that another one is to have.
type held struct {
	id   int64
	head Head
	all  bool // and not just those of a namespace
}

func (db *db) adopt(s Stream) (bool, error) {
	var from []held
	var own *Head
	err := db.streams("WHERE resource = ?", []any{s.GroupResource}, func(id int64, o StreamHead) {
		switch {
		case o.Stream == s:
			own = &o.Head
		case s.Selection != "": // what a selection leaves out was not deleted
		case s.Namespace == "" || s.Namespace == o.Stream.Namespace:
			from = append(from, held{id, o.Head, true})
		case o.Stream.Namespace == "" && o.Stream.Selection == "":
			from = append(from, held{id, o.Head, false})
		}
	})
	if err != nil || own != nil && own.Live {
		return false, err
	}
	if from = alike(from); len(from) == 0 || own != nil && !own.alike(from[0].head) {
		return false, nil
	}
	h := from[0].head
	if len(from) > 1 || from[0].all || own != nil || h.Version == "" {
		h.Version, h.EverLive = "", false
	}
	h.Live = h.Version != ""
	for _, f := range from {
		h.At = earlier(h.At, f.head.At)
	}
	if own != nil {
		h.At = earlier(h.At, own.At)
	}
	to, err := db.setHead(s, h)
	if err != nil {
		return false, err
	}
	for _, f := range from {
		if err := db.hand(f, to, s.Namespace); err != nil {
			return false, err
		}
	}
	return true, nil
}

// alike are the newest stream, first, and those whose objects can be mixed with its own.
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

// alike tells that objects of two streams can be mixed.
func (h Head) alike(o Head) bool {
	return h.Epoch == o.Epoch && h.Pipeline == o.Pipeline && h.Identity == o.Identity
}

// hand moves objects. A stream that has lost some must be listed; its version stays for others that
// are to have the rest.
func (db *db) hand(from held, to int64, namespace string) error {
	if from.all {
		return errors.Join(
			db.exec("UPDATE objects SET stream = ? WHERE stream = ?", to, from.id),
			db.exec("DELETE FROM streams WHERE id = ?", from.id))
	}
	return errors.Join(
		db.exec("UPDATE objects SET stream = ? WHERE stream = ? AND namespace = (SELECT id FROM strings WHERE s = ?)", to, from.id, namespace),
		db.exec("UPDATE streams SET live = 0, ever = 0 WHERE id = ?", from.id))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
