// Package servicebus is the sink that sends each change to a queue or topic of Azure Service Bus.
//
// Service Bus takes or refuses a batch as a whole. Where it refuses one of several for what is in it, they
// are sent one by one, to find the one that is to blame: that is permanent. What is too long for the entity
// is cut (sink.TooLargeError). All else passes: no connection, no acknowledgement in time, a busy server, a
// full queue, rights that are missing, an entity that is not there, or that wants sessions. The message id is
// the event's: a queue or topic with duplicate detection drops what comes again within its window. Without
// sessions the order is that of the changes, as far as consumers do not work beside each other; with them it
// is kept for each object.
package servicebus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/tattler-dev/tattler/cloud/internal/binding"
	"github.com/tattler-dev/tattler/cloud/internal/lanes"
	"github.com/tattler-dev/tattler/internal/sink"
)

// maxSession is how many characters a session id may have.
const maxSession = 128

// Sink sends to a queue or a topic.
type Sink struct {
	agent   string
	o       Options
	place   string
	blot    *sink.Blot
	options azservicebus.ClientOptions

	mu     sync.Mutex // Close may come from another goroutine than Send
	client *azservicebus.Client
	sender *azservicebus.Sender
	closed bool
}

// New makes a sink; it reads the files of TLS, and looks for credentials and connects with the first Send.
// The agent is what it calls itself, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("servicebus sink: %w", err)
	}
	s := &Sink{agent: agent, o: o.withDefaults(), place: o.host() + "/" + o.entity(), blot: &sink.Blot{}}
	c, _ := connection(o.ConnectionString) // it is valid
	s.blot.Add(sink.LeastPassword, c["sharedaccesskey"], c["sharedaccesssignature"])
	s.options = azservicebus.ClientOptions{
		ApplicationID: agent[:min(len(agent), 24)],
		RetryOptions:  azservicebus.RetryOptions{MaxRetries: -1}, // the pump tries again
	}
	if o.TLS != (sink.TLS{}) {
		var err error
		if s.options.TLSConfig, err = o.TLS.Client(); err != nil {
			return nil, fmt.Errorf("servicebus sink: tls: %w", err)
		}
	}
	return s, nil
}

func (s *Sink) String() string { return "servicebus " + s.place }

// Close ends the connection.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.drop(ctx)
}

// drop ends the connection; the next Send makes another.
func (s *Sink) drop(ctx context.Context) error {
	c := s.client
	s.client, s.sender = nil, nil
	if c == nil {
		return nil
	}
	return s.blot.Error(c.Close(ctx))
}

// connect makes the sender, which connects when it is used.
func (s *Sink) connect() (*azservicebus.Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%s: the sink is closed", s.what())
	}
	if s.sender != nil {
		return s.sender, nil
	}
	c, err := s.newClient()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.what(), s.blot.Error(err))
	}
	sender, err := c.NewSender(s.o.entity(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.what(), s.blot.Error(err))
	}
	s.client, s.sender = c, sender
	return sender, nil
}

func (s *Sink) newClient() (*azservicebus.Client, error) {
	if s.o.ConnectionString != "" {
		return azservicebus.NewClientFromConnectionString(s.o.ConnectionString, &s.options)
	}
	identity, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find credentials (AZURE_CLIENT_ID and its like, a workload identity, a managed identity or az login): %w", err)
	}
	return azservicebus.NewClient(s.o.Namespace, hasty{identity, s.o.Timeout}, &s.options)
}

// hasty is an identity that is asked for no longer than a time: Service Bus's client sets none.
type hasty struct {
	identity azcore.TokenCredential
	timeout  time.Duration
}

func (h hasty) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return h.identity.GetToken(ctx, o)
}

// Send sends messages: in batches one after the other, or, with sessions, in batches for each object, several
// objects at a time.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	sender, err := s.connect()
	if err != nil {
		return 0, err
	}
	put := func(ctx context.Context, ms []sink.Message) (int, error) { return s.put(ctx, sender, ms) }
	if s.o.Sessions {
		if err = s.link(ctx, sender); err == nil {
			acked, err = lanes.Send(ctx, ms, s.o.Parallel, put)
		}
	} else {
		acked, err = put(ctx, ms)
	}
	if lanes.Passes(err) { // whatever state the connection is in, the next is new
		s.mu.Lock()
		defer s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.drop(ctx) // it has failed already
	}
	return acked, err
}

// link has the sender's link made, if there is none, before several send by it. The SDK (v1.11.0, AMQPLinksImpl.Get)
// may make one for each of those that find none, and leaves all but the last behind, with what renews their tokens.
func (s *Sink) link(ctx context.Context, sender *azservicebus.Sender) error {
	asking, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	_, err := sender.NewMessageBatch(asking, nil) // asks the link for its limit
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && asking.Err() != nil:
		err = fmt.Errorf("no answer within %s: %w", s.o.Timeout, err)
	}
	return s.failed(err)
}

// put sends messages in order, in as few batches as may be.
func (s *Sink) put(ctx context.Context, sender *azservicebus.Sender, ms []sink.Message) (acked int, err error) {
	most := len(ms)
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("%s: %w", s.what(), err)
		}
		n, err := s.some(ctx, sender, ms[acked:min(len(ms), acked+most)])
		if err != nil && n > 1 && aboutMessages(err) {
			most = 1 // one of them is to blame
			continue
		}
		if err != nil {
			return acked, s.failed(err)
		}
		acked += n
	}
	return acked, nil
}

// some sends as many of the first messages as a batch holds, and returns how many it tried to send.
func (s *Sink) some(ctx context.Context, sender *azservicebus.Sender, ms []sink.Message) (int, error) {
	asking, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	n, err := s.batch(asking, sender, ms)
	if err != nil && ctx.Err() == nil && asking.Err() != nil {
		err = fmt.Errorf("no answer within %s: %w", s.o.Timeout, err)
	}
	return n, err
}

func (s *Sink) batch(ctx context.Context, sender *azservicebus.Sender, ms []sink.Message) (int, error) {
	if len(ms) == 1 {
		return 1, sender.SendMessage(ctx, s.message(ms[0]), nil)
	}
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, m := range ms {
		err := batch.AddMessage(s.message(m), nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break
		}
		if err != nil {
			return n, err
		}
		n++
	}
	if n == 0 { // an entity may take a longer message than a batch
		return 1, sender.SendMessage(ctx, s.message(ms[0]), nil)
	}
	return n, sender.SendMessageBatch(ctx, batch, nil)
}

func (s *Sink) message(m sink.Message) *azservicebus.Message {
	contentType := binding.ContentType
	out := &azservicebus.Message{Body: m.Body, MessageID: &m.ID, ContentType: &contentType, ApplicationProperties: map[string]any{}}
	for name, value := range binding.Attributes(m) {
		if name != "content-type" { // it has a place of its own
			out.ApplicationProperties[name] = value
		}
	}
	if s.o.Sessions {
		session := binding.Key(m.Key, maxSession)
		out.SessionID = &session
	}
	return out
}

func (s *Sink) what() string { return "send to " + s.place }
