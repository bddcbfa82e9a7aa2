package wire

import (
	"bytes"
	"io"
)

// The types of a watch event.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	// Bookmark carries an object with only a resource version (and annotations).
	Bookmark = "BOOKMARK"
	// Error carries a metav1.Status.
	Error = "ERROR"
)

// Event is one frame of a watch.
type Event struct {
	Type string
	Object
}

// Watch cuts a watch stream, concatenated {"type":…,"object":…}, into events.
type Watch struct {
	s    scanner
	lost bool // the last frame was not read to its end
}

// NewWatch reads a watch stream from body, which stays the caller's to close.
func NewWatch(body io.Reader) *Watch { return &Watch{s: newScanner(body)} }

// Next returns the next event, and io.EOF where the stream ends between frames;
// io.ErrUnexpectedEOF is an end within one. After an error for which Unreadable is true, the next
// call goes on at the next frame that can be made out: API servers end each frame with a newline,
// which JSON cannot hold unescaped.
func (w *Watch) Next() (Event, error) {
	if w.lost {
		if err := w.resync(); err != nil {
			return Event{}, err
		}
	}
	c, err := w.s.token()
	if err != nil {
		return Event{}, err
	}
	w.s.keep()
	w.lost = true // until proven otherwise
	if c != '{' {
		return Event{}, w.fail(w.s.syntax("want a watch event"))
	}
	w.s.pos++
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
		return Event{}, &ObjectError{Msg: bad}
	}
	return ev, nil
}

func (w *Watch) fail(err error) error {
	w.s.hold = false
	return inside(err)
}

// frame reads the fields of one event.
func (w *Watch) frame() (ev Event, bad string, err error) {
	s := &w.s
	start, end := 0, 0
	for first := true; ; first = false {
		more, err := s.elem(first, '}')
		if err != nil {
			return ev, "", err
		}
		if !more {
			ev.Raw = s.buf[s.from+start : s.from+end]
			return ev, bad, nil
		}
		key, err := s.key()
		if err != nil {
			return ev, "", err
		}
		switch string(key) {
		case "type":
			ev.Type, _, err = s.text()
		case "object":
			if _, err := s.must(); err != nil {
				return ev, "", err
			}
			start = s.pos - s.from
			ev.Meta, bad, err = s.object()
			end = s.pos - s.from
		default:
			err = s.value()
		}
		if err != nil {
			return ev, "", err
		}
	}
}

// flaw says what an event lacks, or nothing.
func (ev *Event) flaw() string {
	switch ev.Type {
	case Added, Modified, Deleted:
		if ev.Name == "" {
			return "an event's object without metadata.name"
		}
	case Bookmark:
		if ev.ResourceVersion == "" {
			return "a bookmark without a version"
		}
	case Error:
		if len(ev.Raw) == 0 {
			return "an error event without a status"
		}
	default:
		return "unknown event type " + quote(ev.Type)
	}
	return ""
}

// resync drops the rest of the line.
func (w *Watch) resync() error {
	s := &w.s
	s.hold = false
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			s.pos += i + 1
			w.lost = false
			return nil
		}
		s.pos = len(s.buf)
		if err := s.more(); err != nil {
			return err
		}
	}
}
