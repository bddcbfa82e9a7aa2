package notify

import (
	"context"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Probe implements sink.Prober. It connects to the chat service or to the mail server, and does not log in.
func (s *Sink) Probe(ctx context.Context) error {
	switch {
	case s.mailer != nil && s.mailer.mailTarget.tls == "implicit":
		return s.failed(sink.ProbeTCP(ctx, s.mailer.address, s.mailer.config()))
	case s.mailer != nil:
		return s.failed(sink.ProbeTCP(ctx, s.mailer.address, nil))
	case s.client != nil:
		return s.failed(sink.ProbeURL(ctx, s.client, s.target.post.String()))
	}
	return sink.ErrNotProbed
}
