// Package servicebus is the sink that sends each change to a queue or topic of Azure Service Bus.
//
// Service Bus accepts or refuses a whole batch. If it refuses one of several messages because of the content of one,
// the sink sends them one by one to find the one to blame; that is a permanent error. A message that is too long for
// the entity is cut (sink.TooLargeError). All other errors are temporary: no connection, a timeout, a busy server, a
// full queue, missing rights, an entity that does not exist or requires sessions. The message id is the event's: an
// entity with duplicate detection drops repeats within its window. Without sessions, the order is that of the
// changes as long as one consumer takes them one at a time; with sessions, the order of each object is kept.
package servicebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/tattler-dev/tattler/cloud/internal/binding"
	"github.com/tattler-dev/tattler/internal/sink"
)

// maxSession is the maximum length of a session id.
const maxSession = 128

// Sink sends to a queue or a topic.
type Sink struct {
	agent   string
	o       Options
	place   string
	mask    *sink.Mask
	options azservicebus.ClientOptions

	conn sink.Lazy[*senderLink]
}

// senderLink is a client with its sender.
type senderLink struct {
	client *azservicebus.Client
	*azservicebus.Sender
}

// New returns a sink. It reads the TLS files; it looks up credentials and connects with the first Send. The agent is
// the application id, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("servicebus sink: %w", err)
	}
	s := &Sink{agent: agent, o: o.withDefaults(), place: o.host() + "/" + o.entity(), mask: &sink.Mask{}}
	c, _ := connection(o.ConnectionString) // it is valid
	s.mask.Add(sink.MinSecret, c["sharedaccesskey"], c["sharedaccesssignature"])
	s.options = azservicebus.ClientOptions{
		ApplicationID: agent[:min(len(agent), 24)],
		RetryOptions:  azservicebus.RetryOptions{MaxRetries: -1}, // the pump retries
	}
	if o.TLS != (sink.TLS{}) {
		var err error
		if s.options.TLSConfig, err = o.TLS.Client(); err != nil {
			return nil, fmt.Errorf("servicebus sink: tls: %w", err)
		}
	}
	s.conn = sink.Lazy[*senderLink]{Open: s.open, Free: func(ctx context.Context, l *senderLink) error {
		if ctx.Err() != nil { // Close must still end the goroutines
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
		}
		return l.client.Close(ctx)
	}}
	return s, nil
}

func (s *Sink) String() string { return "servicebus " + s.place }

// Close closes the connection.
func (s *Sink) Close(ctx context.Context) error { return s.mask.Error(s.conn.Close(ctx)) }

// open returns a sender, which connects when it is used.
func (s *Sink) open(context.Context) (*senderLink, error) {
	c, err := s.newClient()
	if err != nil {
		return nil, err
	}
	sender, err := c.NewSender(s.o.entity(), nil)
	return &senderLink{c, sender}, err
}

func (s *Sink) newClient() (*azservicebus.Client, error) {
	if s.o.ConnectionString != "" {
		return azservicebus.NewClientFromConnectionString(s.o.ConnectionString, &s.options)
	}
	identity, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find credentials (AZURE_CLIENT_ID and related variables, a workload identity, a managed identity or az login): %w", err)
	}
	return azservicebus.NewClient(s.o.Namespace, timedCredential{identity, s.o.Timeout}, &s.options)
}

// timedCredential bounds requests for a token: Service Bus's client does not.
type timedCredential struct {
	identity azcore.TokenCredential
	timeout  time.Duration
}

func (h timedCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return h.identity.GetToken(ctx, o)
}

// Send sends messages in batches. With sessions, it sends the batches of several objects concurrently, and those of
// one object one after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	l, err := s.conn.Get(ctx)
	if err != nil {
		return 0, s.mask.Wrap(s.what(), err)
	}
	put := func(ctx context.Context, ms []sink.Message) (int, error) { return s.put(ctx, l.Sender, ms) }
	if s.o.Sessions {
		if err = s.attach(ctx, l.Sender); err == nil {
			acked, err = sink.SendByKey(ctx, ms, s.o.Parallel, put)
		}
	} else {
		acked, err = put(ctx, ms)
	}
	if err != nil && !sink.BlamesMessage(err) { // the state of the connection is unknown: open a new one
		s.conn.Reset(l)
	}
	return acked, err
}

// attach opens the sender's AMQP link before several goroutines use it. The SDK (v1.11.0, AMQPLinksImpl.Get) may open a link
// for each goroutine that finds none; it then leaks all but the last one, together with their token renewal.
func (s *Sink) attach(ctx context.Context, sender *azservicebus.Sender) error {
	timed, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	_, err := sender.NewMessageBatch(timed, nil) // asks the link for its limit
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && timed.Err() != nil:
		err = fmt.Errorf("no answer within %s: %w", s.o.Timeout, err)
	}
	return s.failed(err)
}

// put sends messages in order, in as few batches as possible.
func (s *Sink) put(ctx context.Context, sender *azservicebus.Sender, ms []sink.Message) (acked int, err error) {
	most := len(ms)
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("%s: %w", s.what(), err)
		}
		n, err := s.sendBatch(ctx, sender, ms[acked:min(len(ms), acked+most)])
		if err != nil && n > 1 && aboutMessages(err) {
			most = 1 // find the one to blame
			continue
		}
		if err != nil {
			return acked, s.failed(err)
		}
		acked += n
	}
	return acked, nil
}

// sendBatch sends as many of the first messages as a batch holds, and returns how many it tried to send.
func (s *Sink) sendBatch(ctx context.Context, sender *azservicebus.Sender, ms []sink.Message) (int, error) {
	timed, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	n, err := s.batch(timed, sender, ms)
	if err != nil && ctx.Err() == nil && timed.Err() != nil {
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
	if n == 0 { // a single message may be longer than a batch
		return 1, sender.SendMessage(ctx, s.message(ms[0]), nil)
	}
	return n, sender.SendMessageBatch(ctx, batch, nil)
}

func (s *Sink) message(m sink.Message) *azservicebus.Message {
	contentType := binding.ContentType
	out := &azservicebus.Message{Body: m.Body, MessageID: &m.ID, ContentType: &contentType, ApplicationProperties: map[string]any{}}
	for name, value := range binding.Attributes(m) {
		if name != "content-type" { // it is a property of AMQP
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
