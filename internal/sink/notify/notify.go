// Package notify is the sink that tells people of changes: in a chat, by mail, or by any other service that
// shoutrrr speaks to.
//
// Several changes are one message: those of a window, a day's digest, or what happened in quiet hours; then it
// is a sink.Holder. A service's answer of 2xx acknowledges. A message that the service cannot read (413, 422,
// and where its text says so, 400) is permanent; that the receiver or the way to it is wrong passes, and so does what would be wrong with
// every message: 401, 403, 404, 410, a chat that is not there, an archived channel, a sender that may not send. A
// recipient of a mail to several whom the server does not know is left out, and the mail says so. Waits that a
// service asks for (Retry-After, Telegram's retry_after) are kept. Chat services know no ids: what is
// sent again after a crash is there twice. A mail has the same Message-ID then.
//
// Names and values mean nothing in the markup of a message, and mention nobody. No error shows a credential.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink sends messages for people.
type Sink struct {
	o        Options
	target   target
	agent    string
	blot     *sink.Blot
	template *template.Template
	schedule schedule
	client   *http.Client
	mailer   *mailer
	shout    *shout

	kin   kin
	known stories
	held  summary
	due   time.Time

	mu     sync.Mutex // Close may come from another goroutine than Send
	closed bool
}

// FromURL makes options of an address of --to.
func FromURL(address string) (*Options, error) {
	if _, err := parseTarget(address, ""); err != nil {
		return nil, err
	}
	return &Options{URL: address, Window: DefaultWindow}, nil
}

// New makes a sink; it reads the files of TLS, and connects with the first message. The agent is the
// User-Agent, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("notify sink: %w", err)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	s := &Sink{o: o, agent: agent, blot: blotter(o), kin: kin{}, known: stories{}}
	s.target, _ = parseTarget(o.URL, o.Service)
	s.template, _ = parseTemplate(o.Template, markups[s.target.service])
	zone, _ := o.location()
	s.schedule = schedule{window: o.Window, digest: o.Digest, quiet: o.QuietHours, zone: zone}
	c, err := o.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("notify sink: tls: %w", err)
	}
	switch s.target.service {
	case email:
		s.mailer = &mailer{mailTarget: s.target.mail, tls: c, insecure: o.Insecure || s.target.insecure}
	case others:
		s.shout = newShout(s.target)
	default:
		s.client = newClient(c)
	}
	return s, nil
}

func (s *Sink) String() string { return "notify " + s.target.place }

// Close closes idle connections, and forgets what is held. It waits for nothing: a call of shoutrrr's that
// hangs is left to its own end.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

// ready is why nothing can be sent.
func (s *Sink) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("send to %s: the sink is closed", s.target.place)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to %s: %w", s.target.place, err)
	}
	return nil
}

// Send takes messages in, or, where nothing is to be waited for, sends each by itself.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	for i, m := range ms {
		if err := s.ready(ctx); err != nil {
			return i, err
		}
		now := time.Now()
		if s.held.total > 0 || s.schedule.holds(now) {
			s.take(&m, now)
			continue
		}
		var one summary
		one.add(&m, s.kin, s.known)
		if err := s.tell(ctx, &one); err != nil {
			return i, err
		}
	}
	return len(ms), s.readyFor(ctx, ms)
}

// readyFor has a closed sink fail with nothing to send as well.
func (s *Sink) readyFor(ctx context.Context, ms []sink.Message) error {
	if len(ms) > 0 {
		return nil
	}
	return s.ready(ctx)
}

func (s *Sink) take(m *sink.Message, now time.Time) {
	first := s.held.total == 0
	s.held.add(m, s.kin, s.known)
	if first {
		seen := m.Event.Data.Observed.At
		if seen.IsZero() {
			seen = now
		}
		s.due = s.schedule.due(now, seen)
	}
}

// Due implements sink.Holder: it is the end of the window, or that of the quiet hours which it ends in, or
// the time of the digest.
func (s *Sink) Due() time.Time {
	if s.held.total == 0 {
		return time.Time{}
	}
	if now := time.Now(); !now.Before(s.due) { // it could not be sent then
		if end, quiet := s.schedule.quietUntil(now); quiet {
			return end
		}
	}
	return s.due
}

// Narrates implements sink.Narrator.
func (s *Sink) Narrates() bool { return true }

// Patience implements sink.Patient.
func (s *Sink) Patience() time.Duration { return s.o.Timeout }

// Flush implements sink.Holder.
func (s *Sink) Flush(ctx context.Context) error {
	if s.held.total == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.tell(ctx, &s.held); err != nil {
		return err
	}
	s.Drop()
	return nil
}

// Drop implements sink.Holder.
func (s *Sink) Drop() { s.held, s.due = summary{}, time.Time{} }

// tell sends one message.
func (s *Sink) tell(ctx context.Context, what *summary) error {
	m := what.message(s.kin, s.o.link)
	body, err := fit(s.template, m, s.target.markup())
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("make the text: %w", err)}
	}
	sending, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	switch s.target.service {
	case email:
		err = s.mailer.send(sending, m, body, s.agent)
	case others:
		if m.Link != "" {
			body = strings.TrimSpace(body + "\n" + m.Link)
		}
		err = s.shout.send(sending, quiet.Replace(cut(m.Title, maxTitle)), body)
	default:
		err = s.post(sending, m, body)
	}
	if err == nil {
		s.known.keep(what)
	}
	return s.failed(err)
}

// failed names the place in an error, and blots it. What it says the pump is to do stays.
func (s *Sink) failed(err error) error {
	if err == nil {
		return nil
	}
	text := fmt.Errorf("send to %s: %w", s.target.place, s.blot.Error(err))
	var permanent *sink.PermanentError
	var wish *sink.RetryAfterError
	switch {
	case errors.As(err, &permanent):
		return &sink.PermanentError{Err: text}
	case errors.As(err, &wish):
		return &sink.RetryAfterError{After: wish.After, Err: text}
	}
	return text
}

var (
	_ sink.Holder   = (*Sink)(nil)
	_ sink.Patient  = (*Sink)(nil)
	_ sink.Narrator = (*Sink)(nil)
)
