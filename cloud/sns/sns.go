// Package sns is the sink that publishes each change to a topic of Amazon SNS.
//
// SNS acknowledges each message of a request on its own; the first ones that it took are acknowledged here.
// What is too long for the topic is cut (sink.TooLargeError), and a message whose content it calls invalid
// is permanent. All else passes: no connection, no answer in time, throttling, rights that are missing,
// credentials that have expired, a topic that is not there, a key of KMS that may not be used.
//
// A FIFO topic keeps the order of each object (the message group is the object's UID), and drops what comes
// again within five minutes (the deduplication id is the event's). A standard topic promises neither: a
// subscriber must bear changes of an object that overtake each other, and those that come twice.
package sns

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to a topic.
type Sink struct {
	bus    *amazon.Bus
	client *sns.Client
}

// New makes a sink. It reads AWS's configuration and the files of TLS, and connects with the first Send.
// The agent is what it calls itself, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sns sink: %w", err)
	}
	o = o.withDefaults()
	home, err := region(o.Topic)
	if err != nil {
		return nil, fmt.Errorf("sns sink: topic: %w", err)
	}
	c, err := amazon.NewClient(agent, o.AWS, home, o.TLS, o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("sns sink: %w", err)
	}
	s := &Sink{}
	s.client = sns.NewFromConfig(c.Config, func(so *sns.Options) {
		if o.AWS.Endpoint != "" {
			so.BaseEndpoint = &o.AWS.Endpoint
		}
	})
	s.bus = &amazon.Bus{
		Client: c, Place: o.Topic, Right: "sns:Publish", FIFO: strings.HasSuffix(o.Topic, ".fifo"),
		Limit: int(o.Limit), Timeout: o.Timeout, Put: s.put,
	}
	return s, nil
}

func (s *Sink) String() string { return "sns " + s.bus.Place }

// Send sends messages, up to ten with a request, one request after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	return s.bus.Send(ctx, ms)
}

// Close closes idle connections; no other is there after Send.
func (s *Sink) Close(context.Context) error {
	s.bus.Close()
	return nil
}

// put sends one request.
func (s *Sink) put(ctx context.Context, entries []amazon.Entry) (taken []string, failed []amazon.Failed, err error) {
	in := &sns.PublishBatchInput{TopicArn: &s.bus.Place}
	for i := range entries {
		in.PublishBatchRequestEntries = append(in.PublishBatchRequestEntries, request(&entries[i]))
	}
	out, err := s.client.PublishBatch(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range out.Successful {
		taken = append(taken, aws.ToString(e.Id))
	}
	for _, e := range out.Failed {
		failed = append(failed, amazon.Failed{ID: aws.ToString(e.Id), Code: aws.ToString(e.Code), Text: aws.ToString(e.Message), Sender: e.SenderFault})
	}
	return taken, failed, nil
}

func request(e *amazon.Entry) types.PublishBatchRequestEntry {
	r := types.PublishBatchRequestEntry{Id: &e.ID, Message: &e.Body, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range e.Attributes {
		r.MessageAttributes[name] = types.MessageAttributeValue{DataType: amazon.AttributeType(), StringValue: &value}
	}
	if e.Group != "" {
		r.MessageGroupId, r.MessageDeduplicationId = &e.Group, &e.Dedup
	}
	return r
}
