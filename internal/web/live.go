package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

const (
	// pollEvery is how often the journal is read for new changes.
	pollEvery = 250 * time.Millisecond
	// pingEvery is how often an idle stream sends a comment, so that proxies keep it.
	pingEvery = 15 * time.Second
	// maxBehind is how many changes a browser may be behind; beyond that it loads the page again.
	maxBehind = 2000
	// maxHeld is how many changes are read again, at most, for a browser that connects again, because some of them waited for
	// their line. It must be less than maxBehind.
	maxHeld = 1000
)

// live sends new entries as server-sent events, until the browser leaves. HEAD is answered as GET would be, without the events:
// the page's script asks so why it was refused.
//
// The events are entry (the HTML of an entry), stale (the browser must load the page again) and mark. A mark follows the
// others, and has an id: the number up to which all changes were sent, so that a browser that connects again misses none. It
// may get an entry twice, if the connection broke before the mark.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		p.refused(r, auth.RefusedStreams)
		refuse(w, http.StatusServiceUnavailable, "too many pages are live: try again later")
		return
	}
	f, _, err := p.request(r.Context(), r.URL.Query())
	if err != nil {
		if r.Context().Err() == nil {
			code, text := p.failure(r, cmp.Or(p.check(), err))
			refuse(w, code, text)
		}
		return
	}
	if !f.Query.Until.IsZero() {
		refuse(w, http.StatusBadRequest, "until: a live page has no end")
		return
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if id, e := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); e == nil {
		after, err = id, nil
	}
	if err != nil || after < 0 {
		refuse(w, http.StatusBadRequest, "after: want the number of a change")
		return
	}
	out, err := newSender(w, r)
	switch {
	case errors.Is(err, auth.ErrStreams):
		p.refused(r, auth.RefusedViewerStreams)
		refuse(w, http.StatusTooManyRequests, err.Error())
		return
	case err != nil:
		p.o.Log.Error("cannot begin a live page", "error", err)
		refuse(w, http.StatusInternalServerError, "the page cannot be live")
		return
	}
	defer out.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead { // its client has all of the answer, and would not notice a stream that goes on
		return
	}
	s := &stream{p: p, f: f, out: out, after: after, start: after, sent: p.o.Now()}
	s.player = newPlayer(f, s.line)
	ctx := out.Context()
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("a live page ended", "error", err)
		if damage := (*journal.DamagedError)(nil); errors.As(err, &damage) {
			_ = s.send("stale", nil) // connecting again would not help, and the page says why
		}
	}
}

// refused counts a live page that is refused because of a limit. The question why (HEAD) does not count again.
func (p *Page) refused(r *http.Request, reason string) {
	if r.Method != http.MethodHead {
		p.o.Refused(reason)
	}
}

// refuse answers with an error. A browser's EventSource sees none of it, and does not connect again by itself: the page's
// script does, after the same time at first.
func refuse(w http.ResponseWriter, code int, text string) {
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	http.Error(w, text, code)
}

// stream keeps one browser current.
type stream struct {
	p      *Page
	f      *filter
	out    sender
	player *player
	after  int64 // everything up to here was read
	warm   bool  // lines are sent
	start  int64 // the page shows everything up to here
	id     int64 // the last id that was sent
	since  bool  // an entry was sent after it
	sent   time.Time
	err    error
}

func (s *stream) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for s.err == nil {
		if s.p.check() != nil { // the page itself will say why
			return s.send("stale", nil)
		}
		last, err := s.p.past.source.Last(ctx)
		switch {
		case err != nil:
			return err
		case last-s.after > maxBehind:
			return s.send("stale", nil)
		case last > s.after:
			if err := s.read(ctx, last); err != nil {
				return err
			}
		}
		now := s.p.o.Now()
		if err := s.player.Until(now); err != nil {
			return err
		}
		if s.since || now.Sub(s.sent).Abs() >= pingEvery {
			s.mark(now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return s.err
}

// mark sends the id, which also keeps an idle stream open. It is an event, because the page's script learns ids from events
// only.
func (s *stream) mark(now time.Time) {
	if s.err != nil {
		return
	}
	s.id = max(s.id, s.shown())
	s.since, s.sent = false, now
	_, s.err = fmt.Fprintf(s.out, "event: mark\ndata: \nid: %d\n\n", s.id)
}

// shown returns the number up to which no change waits for its line. A line that repeats an earlier one can wait for an hour;
// it does not count for so long.
func (s *stream) shown() int64 {
	if held := s.player.Held(); held > 0 {
		return max(held-1, s.after-maxHeld)
	}
	return s.after
}

// begin plays the changes before the first new one, so that a rollout that has begun is one entry.
func (s *stream) begin(ctx context.Context) error {
	s.id = s.after
	if _, s.err = fmt.Fprintf(s.out, "retry: 3000\nid: %d\n\n", s.id); s.err != nil {
		return s.err
	}
	if !s.f.flat {
		q := s.f.Query
		q.Before, q.Limit = s.after+1, contextChanges
		var first int64
		for e, err := range s.p.past.rows(ctx, q) {
			if err != nil {
				return err
			}
			first = e.Seq
		}
		if first > 0 {
			if err := s.between(ctx, first-1, s.after); err != nil {
				return err
			}
		}
	}
	s.warm = true
	return nil
}

func (s *stream) read(ctx context.Context, last int64) error {
	from := s.after
	s.after = last
	return s.between(ctx, from, last)
}

// between plays the matching changes of an interval.
func (s *stream) between(ctx context.Context, from, to int64) error {
	q := s.f.Query
	q.Since, q.Until, q.After, q.Before, q.OldestFirst = time.Time{}, time.Time{}, from, to+1, true
	var seqs []int64
	for e, err := range s.p.past.rows(ctx, q) {
		if err != nil {
			return err
		}
		ok, err := s.p.matches(ctx, s.f, &e)
		if err != nil {
			return err
		}
		if ok {
			seqs = append(seqs, e.Seq)
		}
	}
	return s.p.each(ctx, seqs, func(e *journal.Entry, c change.Change, known error) error {
		if known != nil {
			s.player.damaged(e, known)
			return s.err
		}
		if err := s.player.Change(c); err != nil {
			return err
		}
		return s.err
	})
}

// line sends a line.
func (s *stream) line(l render.Line) {
	if !s.warm || s.err != nil {
		return
	}
	e := s.p.entry(s.f, l)
	if e.Newest() <= s.start {
		return
	}
	html, err := s.p.html("entry", &e)
	if err == nil {
		err = s.send("entry", html)
	}
	s.err = err
}

// send sends an event.
func (s *stream) send(name string, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", name)
	for line := range bytes.Lines(data) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	if len(data) == 0 {
		b.WriteString("data: \n")
	}
	b.WriteByte('\n')
	s.since = true
	_, err := s.out.Write(b.Bytes())
	return err
}
