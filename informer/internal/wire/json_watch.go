package wire

import (
	"bytes"
	"io"
)

// jsonWatch cuts a watch stream, concatenated {"type":…,"object":…}, into events.
//
// API servers end each frame with a newline, which JSON cannot contain unescaped: after a broken frame, reading
// continues there.
type jsonWatch struct {
	s         scanner
	lost      bool   // the last frame was not read to its end
	namespace string // of the last object
}

func newJSONWatch(body io.Reader) *jsonWatch { return &jsonWatch{s: newScanner(body, watchWindow)} }

// Next implements Watch.
func (w *jsonWatch) Next() (Event, error) {
	if w.lost {
		if err := w.resync(); err != nil {
			return Event{}, err
		}
	}
	w.s.shrink()
	c, err := w.s.token()
	if err != nil {
		return Event{}, err
	}
	w.s.keep()
	w.lost = true // until proven otherwise
	if c != '{' {
		return Event{}, w.fail(w.s.syntax("want a watch event"))
	}
	ev, bad, err := w.frame()
	if err != nil {
		return Event{}, w.fail(err)
	}
	w.lost = false
	w.s.release()
	if bad == "" {
		bad = ev.flaw()
	}
	if bad != "" {
		return ev.known(), &ObjectError{Msg: bad}
	}
	w.namespace = ev.Namespace
	ev.Format = JSON
	if ev.Type == Bookmark {
		ev.InitialEnd = jsonInitialEnd(ev.Raw)
	}
	return ev, nil
}

func (w *jsonWatch) fail(err error) error {
	w.s.hold = false
	return inside(err)
}

// frame reads the fields of one event.
func (w *jsonWatch) frame() (ev Event, bad string, err error) {
	s := &w.s
	start, end := 0, 0 // of the object, relative to the held part of the window
	err = s.members(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			var b []byte
			b, _, err = s.textBytes()
			ev.Type = eventTypeOf(b)
		case "object":
			if _, err := s.must(); err != nil {
				return err
			}
			start = s.pos - s.from
			ev.Meta, bad, err = s.object(w.namespace)
			end = s.pos - s.from
		default:
			err = s.value()
		}
		return err
	})
	if err == nil {
		ev.Raw = s.buf[s.from+start : s.from+end : s.from+end]
	}
	return ev, bad, err
}

// resync drops the rest of the line.
func (w *jsonWatch) resync() error {
	s := &w.s
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			s.pos += i + 1
			w.lost = false
			return nil
		}
		s.pos = len(s.buf)
		if err := s.more(); err != nil {
			return inside(err)
		}
	}
}
