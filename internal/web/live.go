package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

const (
	// pollEvery is how often the journal is read for new changes.
	pollEvery = 250 * time.Millisecond
	// pingEvery is how often an idle stream sends a comment, so that proxies keep it.
	pingEvery = 15 * time.Second
	// maxBehind is how many changes a browser may be behind; beyond that it loads the page again.
	maxBehind = 2000
	// liveStories is how many stories, those that changed last, are read again to see what became of them.
	liveStories = 100
)

// live sends new entries as server-sent events, until the browser leaves. HEAD is answered as GET would be, without the events:
// the page's script asks so why it was refused.
//
// The events are entry (the HTML of an entry, which replaces the one with its id), gone (the ids of entries that the page no longer
// has), stale (the browser must load the page again) and mark. A mark follows the others, and has an id: the number up to which all
// changes were sent, so that a browser that connects again misses none. It may get an entry twice, if the connection broke before
// the mark.
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
	s := &stream{p: p, f: f, out: out, after: after, sent: p.o.Now()}
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

// stream keeps one browser current. What the browser has is then what the page would have if it were loaded again.
type stream struct {
	p       *Page
	f       *filter
	out     sender
	after   int64 // everything up to here was sent
	stories *recent
	since   bool // an event was sent after the last mark
	sent    time.Time
	err     error
}

func (s *stream) run(ctx context.Context) error {
	if _, err := fmt.Fprintf(s.out, "retry: 3000\nid: %d\n\n", s.after); err != nil {
		return err
	}
	if !s.f.flat {
		s.stories = &recent{p: s.p, f: s.f}
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for first := true; s.err == nil; first = false {
		if s.p.check() != nil { // the page itself will say why
			return s.send("stale", nil)
		}
		last, err := s.p.past.source.Last(ctx)
		switch {
		case err != nil:
			return err
		case last-s.after > maxBehind:
			return s.send("stale", nil)
		case last > s.after || first:
			err = s.read(ctx, last)
		case s.stories != nil:
			err = s.show(s.stories.due(s.p.o.Now()))
		}
		if err != nil {
			return err
		}
		if now := s.p.o.Now(); s.since || now.Sub(s.sent).Abs() >= pingEvery {
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
	s.since, s.sent = false, now
	_, s.err = fmt.Fprintf(s.out, "event: mark\ndata: \nid: %d\n\n", s.after)
}

// read sends what is new up to a change.
func (s *stream) read(ctx context.Context, last int64) error {
	all, err := s.changes(ctx, last)
	if err != nil {
		return err
	}
	var gone []string
	if s.stories != nil {
		var stories []entry
		if stories, gone, err = s.stories.read(ctx, s.after, last); err != nil {
			return err
		}
		all = append(all, stories...)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.Order, b.Order) })
	if err := s.show(all); err != nil {
		return err
	}
	if s.after = last; len(gone) > 0 {
		return s.send("gone", []byte(strings.Join(gone, " ")))
	}
	return nil
}

// changes returns the entries of new changes.
func (s *stream) changes(ctx context.Context, last int64) (all []entry, err error) {
	q := s.f.Query
	q.Since, q.Until, q.After, q.Before, q.OldestFirst = time.Time{}, time.Time{}, s.after, last+1, true
	if !s.f.flat {
		q.Plain, q.Severities = true, nil // see matches
	}
	for e, err := range s.p.past.rows(ctx, q) {
		if err != nil {
			return nil, err
		}
		ok, err := s.p.matches(ctx, s.f, &e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		n, ok, err := s.p.read(ctx, s.f, &e)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, n)
		}
	}
	return all, nil
}

// show sends entries.
func (s *stream) show(all []entry) error {
	for i := range all {
		html, err := s.p.html("entry", &all[i])
		if err == nil {
			err = s.send("entry", html)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
