package journal

import (
	"context"
	"fmt"
	"iter"

	"github.com/klauspost/compress/s2"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/internal/delta"
)

const (
	// stateRows and stateBytes bound a page of states, which is read in one step.
	stateRows  = 256
	stateBytes = 512 << 10
	// statePages is how many pages are in memory: one being yielded, one ready, one being read.
	statePages = 3
)

// Objects yields the last states of the stream's live objects. An error that is not a *DamagedError ends the sequence; a
// damaged object is yielded with its name and an error, and others follow. The journal may be written meanwhile; while
// the stream itself is written, the objects need not be of one state. The next page is read and decompressed while the
// consumer works.
func (j *Journal) Objects(ctx context.Context, s Stream) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		a := ahead{j: j, stream: s, free: make(chan *statePage, statePages), full: make(chan *statePage), stop: make(chan struct{})}
		for range statePages {
			a.free <- &statePage{}
		}
		go a.read(ctx)
		defer func() {
			close(a.stop)
			for range a.full { // wait for the reader to end
			}
		}()
		for p := range a.full {
			for i := range p.states {
				if !yield(p.states[i].Object, p.states[i].err) {
					return
				}
			}
			if p.err != nil {
				yield(Object{}, p.err)
				return
			}
			a.free <- p
		}
	}
}

// ahead reads the states of a stream in advance.
type ahead struct {
	j      *Journal
	stream Stream
	free   chan *statePage
	full   chan *statePage // closed at the end
	stop   chan struct{}
}

// statePage holds some states. Its memory is reused.
type statePage struct {
	states []state
	raw    []byte // contents, as stored
	text   []byte // contents, decompressed
	err    error  // the error that ended the sequence
	last   bool
}

// state is an object of a page.
type state struct {
	Object
	id       int64
	from, to int // its content in raw
	err      error
}

func (a *ahead) read(ctx context.Context) {
	defer close(a.full)
	for after, last := int64(0), false; !last; {
		var p *statePage
		select {
		case p = <-a.free:
		case <-a.stop:
			return
		}
		p.states, p.raw, p.last = p.states[:0], p.raw[:0], false
		if p.err = a.j.do(ctx, "read", func() error { return p.fill(a.j, a.stream, after) }); p.err != nil {
			p.states = p.states[:0]
		}
		p.open(a.j, a.stream)
		if n := len(p.states); n > 0 {
			after = p.states[n-1].id
		}
		last = p.last || p.err != nil
		select {
		case a.full <- p:
		case <-a.stop:
			return
		}
	}
}

// fill reads a page of a stream's live objects, by number.
func (p *statePage) fill(j *Journal, st Stream, after int64) error {
	p.last = true
	stream, err := j.db.streamID(st)
	if err != nil || stream == 0 {
		return err
	}
	var namespaces []int64
	err = j.db.query(`SELECT o.id, o.namespace, o.name, o.uid, l.version, l.content, l.sum FROM live l JOIN objects o ON o.id = l.object
		WHERE l.stream = ? AND l.object > ? ORDER BY l.object`, []any{stream, after}, func(s *sqlite3.Stmt) error {
		if len(p.states) == stateRows || len(p.raw) > stateBytes {
			p.last = false
			return errDone
		}
		o := state{id: s.ColumnInt64(0), from: len(p.raw)}
		o.Name, o.UID, o.ResourceVersion = s.ColumnText(2), uid(s.ColumnText(3)), s.ColumnText(4)
		o.Sum = uint64(s.ColumnInt64(6)) //nolint:gosec // the same bits
		p.raw = append(p.raw, s.ColumnRawBlob(5)...)
		o.to = len(p.raw)
		p.states, namespaces = append(p.states, o), append(namespaces, s.ColumnInt64(1))
		return nil
	})
	for i := range p.states {
		if err == nil {
			p.states[i].Namespace, err = j.names.namespaces.text(j.db, namespaces[i])
		}
	}
	return err
}

// open decompresses the page's contents. It uses no codec, so that writers do not wait.
func (p *statePage) open(j *Journal, st Stream) {
	p.text = p.text[:0]
	for i := range p.states {
		o := &p.states[i]
		from := len(p.text)
		if p.text, o.err = openState(p.text, p.raw[o.from:o.to]); o.err != nil {
			o.err = &DamagedError{j.path, fmt.Sprintf("state of %s %s/%s", st.GroupResource, o.Namespace, o.Name), o.err}
			continue
		}
		o.from, o.to = from, len(p.text)
	}
	for i := range p.states { // text has stopped growing
		if o := &p.states[i]; o.err == nil {
			o.JSON = p.text[o.from:o.to:o.to]
		}
	}
}

// openState appends a state's decompressed content.
func openState(to, content []byte) ([]byte, error) {
	if len(content) < headSize {
		return to, fmt.Errorf("content of %d bytes", len(content))
	}
	from, body := len(to), content[headSize:]
	switch content[0] {
	case formPlain:
		to = append(to, body...)
	case formS2:
		n, err := s2.DecodedLen(body)
		if err != nil {
			return to, err
		}
		if n > delta.MaxSize {
			return to, s2.ErrTooLarge
		}
		to = grow(to, n)
		if _, err := s2.Decode(to[from:from+n], body); err != nil {
			return to[:from], err
		}
		to = to[:from+n]
	default:
		return to, fmt.Errorf("state of form %d", content[0])
	}
	if !matches(content, to[from:]) {
		return to[:from], errChecksum
	}
	return to, nil
}

// grow returns b with capacity for n more bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
}
