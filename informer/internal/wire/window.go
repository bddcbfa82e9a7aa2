package wire

import (
	"errors"
	"io"
)

const (
	// MaxObject bounds one object, in bytes. etcd bounds writes at 1.5 MiB by default, but aggregated API
	// servers have other stores.
	MaxObject = 64 << 20

	watchWindow = 4 << 10  // the cost of an idle watch
	listWindow  = 64 << 10 // lists are short-lived and read in larger chunks
	maxIdle     = 64 << 10 // a window enlarged beyond this by one object is released
)

// window is a section of a reader's input.
//
// A read may drop everything before pos unless hold is set: then the window keeps everything from buf[from] on.
// Positions that must survive a read are therefore relative to from.
type window struct {
	r     io.Reader // nil: buf is the whole input
	buf   []byte
	pos   int
	from  int
	hold  bool
	base  int64 // the offset of buf[0] in the input
	limit int   // maximal number of bytes held
	err   error // the reader's last error
}

func newWindow(r io.Reader, size int) window {
	return window{r: r, buf: make([]byte, 0, size), limit: MaxObject}
}

// heldWindow is a window on bytes in memory.
func heldWindow(b []byte) window { return window{buf: b, hold: true, limit: MaxObject} }

// offset returns the position of pos in the input.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// keep holds the input from pos on.
func (w *window) keep() { w.from, w.hold = w.pos, true }

// release returns the held bytes; they are valid until the next read.
func (w *window) release() []byte {
	w.hold = false
	return w.buf[w.from:w.pos:w.pos]
}

// shrink releases a large window that holds little.
func (w *window) shrink() {
	if cap(w.buf) <= maxIdle || len(w.buf)-w.pos > watchWindow {
		return
	}
	w.buf = append(make([]byte, 0, watchWindow), w.buf[w.pos:]...)
	w.base += int64(w.pos)
	w.pos = 0
}

// more reads at least one byte into the window.
func (w *window) more() error {
	if w.r == nil {
		return io.EOF
	}
	if w.err != nil {
		return w.err
	}
	w.slide()
	if w.hold && len(w.buf) >= w.limit {
		return &TooLargeError{Limit: w.limit}
	}
	if len(w.buf) == cap(w.buf) {
		w.buf = append(make([]byte, 0, 2*cap(w.buf)), w.buf...)
	}
	for range 100 {
		n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		w.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// slide moves the needed bytes to the start of the window.
func (w *window) slide() {
	start := w.pos
	if w.hold {
		start = w.from
	}
	if start == 0 {
		return
	}
	n := copy(w.buf, w.buf[start:])
	w.buf = w.buf[:n]
	w.base += int64(start)
	w.pos -= start
	w.from = 0
}

// need reads until n bytes are available. The window grows with the bytes that arrive, so a false length costs
// no memory.
func (w *window) need(n int) error {
	for len(w.buf)-w.pos < n {
		if err := w.more(); err != nil {
			return inside(err)
		}
	}
	return nil
}

// take returns the next n bytes; they are valid until the next read.
func (w *window) take(n int64) ([]byte, error) {
	if n > int64(w.limit) {
		return nil, &TooLargeError{Limit: w.limit}
	}
	if err := w.need(int(n)); err != nil {
		return nil, err
	}
	end := w.pos + int(n)
	b := w.buf[w.pos:end:end]
	w.pos = end
	return b, nil
}

// skip drops the next n bytes without holding them.
func (w *window) skip(n int64) error {
	for {
		step := min(n, int64(len(w.buf)-w.pos))
		w.pos += int(step)
		if n -= step; n == 0 {
			return nil
		}
		if err := w.more(); err != nil {
			return inside(err)
		}
	}
}

// peek returns the next byte without consuming it.
func (w *window) peek() (byte, error) {
	if w.pos == len(w.buf) {
		if err := w.more(); err != nil {
			return 0, err
		}
	}
	return w.buf[w.pos], nil
}

// inside turns the end of the input into the error for an end within a value.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
