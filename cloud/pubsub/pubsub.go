// Package pubsub is the sink that publishes each change to a topic of Google Cloud Pub/Sub.
//
// Pub/Sub accepts or refuses a whole request, and a request has one ordering key, the object's UID. So the sink
// publishes several objects concurrently, and the changes of each object in order. If a request of several messages
// is refused as an invalid argument, the sink sends them one by one to find the one to blame; that is a permanent
// error, for example a message that does not match the topic's schema. A message beyond Pub/Sub's limit is cut
// (sink.TooLargeError). All other errors are temporary: no connection, a timeout, quotas, missing rights, a missing
// topic. Pub/Sub does not drop repeats: a subscriber must remember ids.
package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/cloud/internal/binding"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Limits of Pub/Sub, in bytes and messages per request.
const (
	maxRequest  = 10_000_000
	maxMessages = 1000
	// frame bounds the fields around a message in a request.
	frame = 16
	// maxKey is the maximum length of an ordering key, in bytes.
	maxKey = 1024
)

// Sink publishes to a topic.
type Sink struct {
	agent string
	o     Options
	conn  sink.Lazy[*pubsub.TopicAdminClient]
}

// New returns a sink. It looks up credentials and connects with the first Send. The agent is the User-Agent, such as
// tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("pubsub sink: %w", err)
	}
	s := &Sink{agent: agent, o: o.withDefaults()}
	s.conn = sink.Lazy[*pubsub.TopicAdminClient]{
		Open: s.open, Free: func(_ context.Context, c *pubsub.TopicAdminClient) error { return c.Close() },
	}
	return s, nil
}

func (s *Sink) String() string { return "pubsub " + s.o.Topic }

// Close closes the connection.
func (s *Sink) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// open returns a client, which connects when it is used.
func (s *Sink) open(ctx context.Context) (*pubsub.TopicAdminClient, error) {
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	// The client outlives this call.
	c, err := pubsub.NewTopicAdminClient(context.WithoutCancel(ctx), options...)
	if err != nil {
		return nil, fmt.Errorf("find credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login, "+
			"or the machine's account): %w", err)
	}
	c.CallOptions.Publish = nil // the pump retries
	return c, nil
}

func (s *Sink) options() ([]option.ClientOption, error) {
	options := []option.ClientOption{option.WithUserAgent(s.agent), option.WithGRPCConnectionPool(1), option.WithTelemetryDisabled()}
	if s.o.Emulator != "" {
		return append(options, option.WithEndpoint(s.o.Emulator), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))), nil
	}
	if s.o.Endpoint != "" {
		options = append(options, option.WithEndpoint(s.o.Endpoint))
	}
	if s.o.CredentialsFile != "" {
		text, err := os.ReadFile(s.o.CredentialsFile)
		if err != nil {
			return nil, fmt.Errorf("credentialsFile: %w", err)
		}
		var is struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(text, &is); err != nil || is.Type == "" { // the error could quote a credential
			return nil, fmt.Errorf("credentialsFile: %s does not contain Google credentials in JSON", s.o.CredentialsFile)
		}
		options = append(options, option.WithAuthCredentialsJSON(option.CredentialsType(is.Type), text))
	}
	return options, nil
}

// Send publishes messages. Those of one object are published one request after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	client, err := s.conn.Get(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.what(), err)
	}
	put := func(ctx context.Context, ms []sink.Message) (int, error) { return s.put(ctx, client, ms) }
	if s.o.Unordered {
		acked, err = put(ctx, ms)
	} else {
		acked, err = sink.SendByKey(ctx, ms, s.o.Parallel, put)
	}
	var r *refusal
	if errors.As(err, &r) && (r.code == codes.DeadlineExceeded || r.code == codes.Unavailable) {
		s.conn.Reset(client) // do not reuse a connection that hangs
	}
	return acked, err
}

// put publishes messages in order, in as few requests as possible.
func (s *Sink) put(ctx context.Context, c *pubsub.TopicAdminClient, ms []sink.Message) (acked int, err error) {
	most := maxMessages
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("%s: %w", s.what(), err)
		}
		req, err := s.request(ms[acked:], most)
		if err != nil {
			return acked, err
		}
		err = s.publish(ctx, c, req)
		if status.Code(err) == codes.InvalidArgument && len(req.Messages) > 1 {
			most = 1 // find the one to blame
			continue
		}
		if err != nil {
			return acked, s.failed(err)
		}
		acked += len(req.Messages)
	}
	return acked, nil
}

func (s *Sink) publish(ctx context.Context, c *pubsub.TopicAdminClient, req *pubsubpb.PublishRequest) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	answer, err := c.Publish(ctx, req)
	if err == nil && len(answer.MessageIds) != len(req.Messages) {
		err = fmt.Errorf("the answer is for %d of %d messages", len(answer.MessageIds), len(req.Messages))
	}
	return err
}

// request makes a request of at most so many of the first messages.
func (s *Sink) request(ms []sink.Message, most int) (*pubsubpb.PublishRequest, error) {
	req := &pubsubpb.PublishRequest{Topic: s.o.Topic}
	size := len(s.o.Topic) + frame
	for i, m := range ms[:min(len(ms), most)] {
		pm := &pubsubpb.PubsubMessage{Data: m.Body, Attributes: binding.Attributes(m)}
		pm.Attributes["id"] = m.ID
		if !s.o.Unordered {
			pm.OrderingKey = binding.Key(m.Key, maxKey)
		}
		length := proto.Size(pm) + frame
		if i == 0 && size+length > maxRequest {
			return nil, &sink.TooLargeError{Limit: maxRequest - size - (length - len(m.Body)), Err: fmt.Errorf(
				"%s: %d bytes in a request, which exceeds the limit of %d", s.what(), size+length, maxRequest)}
		}
		if size+length > maxRequest {
			break
		}
		size += length
		req.Messages = append(req.Messages, pm)
	}
	return req, nil
}

func (s *Sink) what() string { return "publish to " + s.o.Topic }
