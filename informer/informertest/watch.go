package informertest

import (
	"cmp"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// bookmarkEvery is the bookmark interval of an API server's watch cache.
	bookmarkEvery = time.Minute
	// watchFor is the duration of a watch without timeoutSeconds.
	watchFor = 30 * time.Minute
	// atOnce bounds the events that are sent between two checks of the server's state.
	atOnce = 500
)

// watcher is one open watch.
type watcher struct {
	*call
	initial []*object // the rest of the initial state
	place   int       // position in the history of the next change to send
	from    uint64    // the version up to which events were sent
	endAt   uint64    // the version at which the initial events end; 0: not marked

	closed, marks uint64 // values at the last look
	raw           int
	announce      bool // a bookmark is due
	refused       error

	object, frame []byte // scratch
}

// event is a watch event. encode appends its object; raw is sent unchanged.
type event struct {
	name   string
	encode func(dst []byte) []byte
	raw    string
	about  *object // the current or deleted object; nil: none
	rv     uint64
}

// watch answers with a watch stream.
func (c *call) watch() {
	o := c.newWatcher()
	contentType := c.media.contentType()
	if c.media.protobuf {
		contentType += ";stream=watch"
	}
	b := c.body(contentType, never)
	if b.push() != nil {
		return
	}
	minute := time.NewTicker(bookmarkEvery)
	defer minute.Stop()
	lasts := watchFor
	if c.opts.TimeoutSeconds != nil && *c.opts.TimeoutSeconds > 0 {
		lasts = time.Duration(*c.opts.TimeoutSeconds) * time.Second
	}
	end := time.NewTimer(lasts)
	defer end.Stop()
	last := false
	for {
		events, next, over := o.look(last)
		for i := range events {
			o.send(b, &events[i])
		}
		if err := b.push(); err != nil || over || last {
			return
		}
		select {
		case <-c.r.Context().Done():
			return
		case <-next:
		case <-minute.C:
			o.announce = true
		case <-end.C:
			o.announce, last = true, true
		}
	}
}

// send writes an event, subject to faults. A write error surfaces at the next push.
func (o *watcher) send(b *body, e *event) {
	if e.encode == nil {
		_, _ = b.WriteString(e.raw)
		return
	}
	o.object = e.encode(o.object[:0])
	o.frame = o.media.frame(o.frame[:0], e.name, o.object)
	head := 0
	if o.media.protobuf {
		head = frameHead
	}
	fault := o.frameFault(e)
	if fault == GarbleObject {
		o.frame = o.media.frame(o.frame[:0], e.name, o.garbled(e))
	}
	_, _ = b.Write(o.spoil(fault, o.frame, head))
	if fault == CutFrame {
		b.abort()
	}
}

// newWatcher decides where a watch begins: with the initial state, if requested, and at its position in the
// history.
func (c *call) newWatcher() *watcher {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	res := s.resource(c.at.gvr)
	asked, _ := c.version() // checked before
	o := &watcher{call: c, from: asked, place: res.after(asked), closed: s.closed, marks: s.marks, raw: len(s.raw)}
	initial := c.opts.SendInitialEvents
	if c.streams() && s.fault(c, IgnoreStreaming) != nil {
		initial = nil
	}
	switch without := initial != nil && !*initial; {
	case asked > 0 && (without || initial == nil): // resumes
		if asked < max(s.oldest, res.oldest) {
			o.refused = expired(asked)
		}
	case without:
		o.from, o.place = s.rv, res.end()
	case asked > s.rv:
		o.refused = tooLarge(asked, s.rv)
	default:
		o.begin(res, initial != nil)
	}
	return o
}

// begin makes the watch send the state first; s.mu is held.
func (o *watcher) begin(res *resource, streaming bool) {
	s := o.s
	o.from, o.place = s.rv, res.end()
	if streaming {
		if o.opts.AllowWatchBookmarks && s.fault(o.call, NoEndBookmark) == nil {
			o.endAt = s.rv
		}
		if f := s.fault(o.call, ChangesBeforeEnd); f != nil {
			o.place = res.first
			if f.Changes > 0 {
				o.place = max(res.first, res.end()-f.Changes)
			}
			if since := res.changes(o.place); len(since) > 0 {
				o.from = since[0].rv - 1
			}
		}
	}
	o.initial = shuffled(o.selected(res.before(o.place)))
}

// shuffled returns the objects in a deterministic order that reveals neither version nor key.
func shuffled(all []*object) []*object {
	n, step := len(all), 7919 // a prime reaches everything
	if n%step == 0 {
		step = 7907
	}
	mixed := make([]*object, n)
	for i, o := range all {
		mixed[(i*step+n/2)%n] = o
	}
	return mixed
}

var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// look returns the events to send now, the channel to wait for, and whether the watch is over.
func (o *watcher) look(last bool) (events []event, next <-chan struct{}, over bool) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	res := s.resource(o.at.gvr)
	switch {
	case o.broken():
		panic(http.ErrAbortHandler)
	case s.closed != o.closed:
		return nil, s.changed, true
	case s.mute:
		return nil, s.changed, last
	case o.refused != nil:
		return o.fail(o.refused), nil, true
	}
	if f := s.fault(o.call, ErrorEvent); f != nil {
		return o.fail(o.failure(cmp.Or(f.Code, http.StatusGone), f.seconds())), nil, true
	}
	if o.behind(res) {
		return o.fail(expired(o.from)), nil, true
	}
	events = o.pending(res)
	if len(o.initial) > 0 || o.place < res.end() || o.endAt > 0 {
		return events, always, false
	}
	o.from = max(o.from, s.written)
	for ; o.raw < len(s.raw); o.raw++ {
		if s.raw[o.raw].gvr == o.at.gvr {
			events = append(events, event{raw: s.raw[o.raw].data})
		}
	}
	if o.opts.AllowWatchBookmarks && (o.announce || s.marks != o.marks) && o.from <= s.rv {
		o.announce, o.marks, o.from = false, s.marks, s.rv
		events = append(events, o.bookmark(false))
	}
	return events, s.changed, false
}

// behind reports whether the watch is at a forgotten version. If none of its events was forgotten, it is not
// behind, whether it has run since or not. s.mu is held.
func (o *watcher) behind(res *resource) bool {
	from := o.from
	if o.place >= res.first {
		from = max(from, o.s.lastForgotten)
	}
	return from < max(o.s.oldest, res.oldest)
}

func expired(version uint64) error {
	return apierrors.NewResourceExpired("too old resource version: " + formatVersion(version))
}

// pending returns a batch of events from the initial state and the history; s.mu is held.
func (o *watcher) pending(res *resource) (events []event) {
	n := min(atOnce, len(o.initial))
	for _, object := range res.formedAll(o.initial[:n]) {
		events = append(events, o.event("ADDED", object))
	}
	o.initial = o.initial[n:]
	if len(o.initial) > 0 {
		return events
	}
	o.place = max(o.place, res.first) // forgotten changes are skipped
	for _, c := range res.changes(o.place) {
		if o.endAt > 0 && c.rv > o.endAt || len(events) >= atOnce {
			break
		}
		o.place++
		if c.rv <= o.from {
			continue
		}
		o.from = c.rv
		events = o.change(events, c)
	}
	if o.endAt > 0 && len(events) < atOnce {
		o.from, o.endAt = o.endAt, 0
		events = append(events, o.bookmark(true))
	}
	return events
}

// change appends the event of a change for this watch, if any.
func (o *watcher) change(events []event, c change) []event {
	was, is := o.selects(c.old), o.selects(c.new)
	switch {
	case is && was:
		return append(events, o.event("MODIFIED", c.new))
	case is:
		return append(events, o.event("ADDED", c.new))
	case was: // the previous object, with the version of the event
		return append(events, event{name: "DELETED", about: c.old, rv: c.rv, encode: func(dst []byte) []byte {
			return o.media.object(dst, o.kind, c.old.at(o.kind, c.rv))
		}})
	}
	return events
}

func (o *watcher) event(name string, object *object) event {
	return event{name: name, about: object, rv: object.rv, encode: func(dst []byte) []byte { return o.media.object(dst, o.kind, object) }}
}

func (o *watcher) bookmark(initialEnd bool) event {
	e := o.event("BOOKMARK", bookmark(o.kind, o.from, initialEnd))
	e.about = nil
	return e
}

func (o *watcher) fail(err error) []event {
	return []event{{name: "ERROR", encode: func(dst []byte) []byte { return o.media.status(dst, statusOf(err)) }}}
}
