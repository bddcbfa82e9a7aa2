package wire

import (
	"encoding/binary"
	"io"
)

// frameHeader is the size of a frame's length, big-endian, in bytes.
const frameHeader = 4

// protoWatch cuts a protobuf watch stream into events. A frame is a length and a bare WatchEvent.
type protoWatch struct {
	w         window
	drop      int64 // bytes of a dropped frame still to be skipped
	lost      bool  // the stream does not consist of frames
	namespace string
}

func newProtoWatch(body io.Reader) *protoWatch {
	return &protoWatch{w: newWindow(body, watchWindow)}
}

// Next implements Watch. It skips an object above the limit. After an implausible length, no frame can be
// found, so io.ErrUnexpectedEOF follows.
func (w *protoWatch) Next() (Event, error) {
	if w.lost {
		return Event{}, io.ErrUnexpectedEOF
	}
	if err := w.w.skip(w.drop); err != nil {
		return Event{}, err
	}
	w.drop = 0
	w.w.shrink()
	if _, err := w.w.peek(); err != nil {
		return Event{}, err
	}
	header, err := w.w.take(frameHeader)
	if err != nil {
		return Event{}, err
	}
	size, limit := int64(binary.BigEndian.Uint32(header)), int64(w.w.limit)
	switch {
	case size > 4*limit:
		w.lost = true
		return Event{}, w.syntax("not a watch frame")
	case size > limit:
		w.drop = size
	}
	frame, err := w.w.take(size)
	if err != nil {
		return Event{}, err
	}
	return w.event(frame)
}

// event reads one frame.
func (w *protoWatch) event(frame []byte) (ev Event, err error) {
	var object []byte
	m := message{rest: frame}
	for m.next() {
		switch m.num {
		case eventType:
			if m.bytes() {
				ev.Type = eventTypeOf(m.val)
			}
		case eventObject:
			if m.bytes() {
				object, m.bad = extension(m.val, object)
			}
		}
	}
	var e envelope
	if m.bad == "" && len(object) > 0 {
		m.bad = e.open(object)
	}
	if m.bad != "" {
		return Event{}, w.syntax(m.bad)
	}
	return w.object(ev, &e)
}

// object reads an event's object.
func (w *protoWatch) object(ev Event, e *envelope) (Event, error) {
	ev.Format, ev.Raw = Protobuf, e.raw
	if ev.Type == Error { // a Status has other metadata
		if string(e.kind) != "Status" {
			return Event{}, &ObjectError{Msg: "an error event without a status"}
		}
		ev.Typed = true
		return ev, nil
	}
	m, err := protoMeta(e.raw, w.namespace)
	ev.Meta = m
	ev.Typed = e.typed()
	if err != nil {
		return ev.known(), &ObjectError{Msg: err.Error()}
	}
	if flaw := ev.flaw(); flaw != "" {
		return Event{}, &ObjectError{Msg: flaw}
	}
	w.namespace = m.Namespace
	if ev.Type == Bookmark {
		ev.InitialEnd = protoInitialEnd(e.raw)
	}
	return ev, nil
}

func (w *protoWatch) syntax(msg string) error {
	return &SyntaxError{Format: Protobuf, Offset: w.w.offset(), Msg: msg} // the frame's end
}

// extension reads the bytes in a RawExtension.
func extension(b, before []byte) (raw []byte, bad string) {
	raw = before
	m := message{rest: b}
	for m.next() {
		if m.num == extensionRaw && m.bytes() {
			raw = m.val
		}
	}
	return raw, m.bad
}
