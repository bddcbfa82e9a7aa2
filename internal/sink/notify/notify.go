// Package notify is the sink that notifies people of changes: in a chat, by mail, or through any other service that
// shoutrrr supports.
//
// A message may combine several changes: those of a window, a day's digest, or those of quiet hours. For that, the
// sink is a sink.Holder. A 2xx response acknowledges. A message that the service cannot process (413, 422, and 400
// if its text says so) is a permanent error. Errors of the receiver or the network are temporary, and so are errors
// that every message would get: 401, 403, 404, 410, a missing chat, an archived channel, a sender that may not send.
// If a mail has several recipients and the server does not know one of them, the sink leaves it out, and the mail
// says so. The sink honours the waits that a service asks for (Retry-After, Telegram's retry_after). Chat services
// do not drop repeats: a message that is sent again after a crash appears twice. A mail then has the same
// Message-ID.
//
// Names and values have no effect as markup, and mention no one. No error shows a credential.
package notify

import (
	"cmp"
	"context"
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
	mask     *sink.Mask
	template *template.Template
	schedule schedule
	client   *http.Client
	mailer   *mailer
	shout    *shout

	owners owners
	known  stories
	held   summary
	due    time.Time

	mu     sync.Mutex // Close may run concurrently with Send
	closed bool
}

// FromURL returns the options of an address for --to.
func FromURL(address string) (*Options, error) {
	if _, err := parseTarget(address, ""); err != nil {
		return nil, err
	}
	return &Options{URL: address, Window: DefaultWindow}, nil
}

// New returns a sink. It reads the TLS files, and connects with the first message. The agent is the User-Agent, such
// as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("notify sink: %w", err)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	s := &Sink{o: o, agent: agent, mask: newMask(o), owners: owners{}, known: stories{}}
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
		s.client = sink.HTTPClient(c, 0)
	}
	return s, nil
}

func (s *Sink) String() string { return "notify " + s.target.place }

// Close closes idle connections and discards what is held. It does not wait for a call of shoutrrr that hangs.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

// ready returns an error if the sink is closed or ctx has ended.
func (s *Sink) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("send to %s: %w", s.target.place, sink.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to %s: %w", s.target.place, err)
	}
	return nil
}

// Send holds messages, or sends each one if it is not to wait.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	for i, m := range ms {
		if err := s.ready(ctx); err != nil {
			return i, err
		}
		now := time.Now()
		if s.held.total > 0 || s.schedule.holds(now) {
			s.hold(&m, now)
			continue
		}
		var one summary
		one.add(&m, s.owners, s.known)
		if err := s.send(ctx, &one); err != nil {
			return i, err
		}
	}
	return len(ms), s.readyFor(ctx, ms)
}

// readyFor makes Send fail on a closed sink even without messages.
func (s *Sink) readyFor(ctx context.Context, ms []sink.Message) error {
	if len(ms) > 0 {
		return nil
	}
	return s.ready(ctx)
}

// hold adds a message to the summary.
func (s *Sink) hold(m *sink.Message, now time.Time) {
	first := s.held.total == 0
	s.held.add(m, s.owners, s.known)
	if first {
		seen := m.Event.Data.Observed.At
		if seen.IsZero() {
			seen = now
		}
		s.due = s.schedule.due(now, seen)
	}
}

// Due implements sink.Holder. It returns the end of the window, the end of the quiet hours in which the window ends,
// or the time of the digest.
func (s *Sink) Due() time.Time {
	if s.held.total == 0 {
		return time.Time{}
	}
	if now := time.Now(); !now.Before(s.due) { // sending failed at that time
		if end, quiet := s.schedule.quietUntil(now); quiet {
			return end
		}
	}
	return s.due
}

// UsesStory implements sink.StorySink.
func (s *Sink) UsesStory() bool { return true }

// MinSendTimeout implements sink.SlowSink.
func (s *Sink) MinSendTimeout() time.Duration { return s.o.Timeout }

// Flush implements sink.Holder.
func (s *Sink) Flush(ctx context.Context) error {
	if s.held.total == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.send(ctx, &s.held); err != nil {
		return err
	}
	s.Drop()
	return nil
}

// Drop implements sink.Holder.
func (s *Sink) Drop() { s.held, s.due = summary{}, time.Time{} }

// send sends a summary as one message.
func (s *Sink) send(ctx context.Context, what *summary) error {
	m := what.message(s.owners, s.o.link)
	body, err := fit(s.template, m, s.target.markup())
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("render the text: %w", err)}
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

// failed adds the destination to an error and masks credentials. The typed errors of package sink stay outermost.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("send to "+s.target.place, err)
}

var (
	_ sink.Holder    = (*Sink)(nil)
	_ sink.SlowSink  = (*Sink)(nil)
	_ sink.StorySink = (*Sink)(nil)
)
