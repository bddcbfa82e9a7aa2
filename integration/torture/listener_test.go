package torture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listener reads a response of the server, with apimachinery's types rather than the engine.
type listener struct {
	*observer
	request  *request
	protobuf bool
	encoding string
	text     []byte // not parsed yet
	bad      bool   // the response is unreadable
}

// watchFrame is the content of a watch frame.
type watchFrame struct {
	kind    string // such as ADDED
	version string
	end     bool // of the list with which the watch began
	code    int32
}

// frames reads the frames of a watch.
func (l *listener) frames(p []byte) {
	if l.bad {
		return
	}
	l.text = append(l.text, p...)
	for {
		frame, n := l.cut()
		if n == 0 {
			return
		}
		h, err := l.frame(frame)
		l.text = l.text[n:]
		if l.encoding != "" {
			err = fmt.Errorf("a watch is encoded as %s", l.encoding)
		}
		if err != nil {
			l.bad = true
			l.fail(fmt.Errorf("read a frame of %v: %w", l.request, err))
			return
		}
		l.note(func() { l.request.noteFrame(h) })
	}
}

// cut returns the next frame, and its length including the delimiter.
func (l *listener) cut() (frame []byte, n int) {
	if !l.protobuf { // API servers end each frame with a newline
		n = bytes.IndexByte(l.text, '\n') + 1
		return l.text[:n], n
	}
	if len(l.text) < 4 {
		return nil, 0
	}
	n = 4 + int(binary.BigEndian.Uint32(l.text))
	if len(l.text) < n {
		return nil, 0
	}
	return l.text[4:n], n
}

// initialEnd marks the bookmark that ends a list.
const initialEnd = "k8s.io/initial-events-end"

func (l *listener) frame(b []byte) (watchFrame, error) {
	if l.protobuf {
		return protobufFrame(b)
	}
	var e struct {
		Type   string
		Object struct {
			Code     int32
			Metadata struct {
				ResourceVersion string
				Annotations     map[string]string
			}
		}
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return watchFrame{}, err
	}
	m := e.Object.Metadata
	return watchFrame{e.Type, m.ResourceVersion, m.Annotations[initialEnd] == "true", e.Object.Code}, nil
}

func protobufFrame(b []byte) (watchFrame, error) {
	var e metav1.WatchEvent
	if err := e.Unmarshal(b); err != nil {
		return watchFrame{}, err
	}
	raw, err := bare(e.Object.Raw)
	if err != nil {
		return watchFrame{}, err
	}
	if e.Type == "ERROR" {
		var s metav1.Status
		err := s.Unmarshal(raw)
		return watchFrame{kind: e.Type, code: s.Code}, err
	}
	var o metav1.PartialObjectMetadata // in every kind, the first field is the metadata
	err = o.Unmarshal(raw)
	return watchFrame{e.Type, o.ResourceVersion, o.Annotations[initialEnd] == "true", 0}, err
}

// bare returns a protobuf message without its envelope.
func bare(b []byte) ([]byte, error) {
	b, ok := bytes.CutPrefix(b, []byte("k8s\x00"))
	if !ok {
		return nil, fmt.Errorf("not an object: %.50q", b)
	}
	var u runtime.Unknown
	err := u.Unmarshal(b)
	return u.Raw, err
}

// noteFrame notes a frame.
func (a *request) noteFrame(h watchFrame) {
	switch {
	case h.kind == "ERROR":
		a.code, a.until = int(h.code), time.Now()
		if h.code == http.StatusGone && (a.what == watches || a.whole) {
			a.at410 = later(a.from, later(a.list, a.to))
		}
	case h.end:
		a.whole, a.list = true, h.version
	case a.what == watches || a.whole:
		a.to = later(a.to, h.version)
	}
}

func later(a, b string) string {
	if compare(a, b) < 0 {
		return b
	}
	return a
}

// keep collects a page until it is complete.
func (l *listener) keep(p []byte) { l.text = append(l.text, p...) }

// page reads a page of a list.
func (l *listener) page() {
	version, more, err := l.pageMeta()
	if err != nil {
		l.fail(fmt.Errorf("read the response to %v: %w", l.request, err))
		return
	}
	if !more {
		l.note(func() { l.request.whole, l.request.list = true, version })
	}
}

func (l *listener) pageMeta() (version string, more bool, err error) {
	text := l.text
	if l.encoding == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return "", false, err
		}
		if text, err = io.ReadAll(z); err != nil {
			return "", false, err
		}
	}
	if !l.protobuf {
		var p page
		err := json.Unmarshal(text, &p)
		return p.Metadata.ResourceVersion, p.Metadata.Continue != "", err
	}
	raw, err := bare(text)
	if err != nil {
		return "", false, err
	}
	var p metav1.PartialObjectMetadataList
	err = p.Unmarshal(raw)
	return p.ResourceVersion, p.Continue != "", err
}
