// Package sns is the sink that publishes each change to a topic of Amazon SNS.
//
// SNS acknowledges each message of a request; the sink acknowledges the first ones that SNS accepted. A message that
// is too long for the topic is cut (sink.TooLargeError), and a message with invalid content is a permanent error.
// All other errors are temporary: no connection, a timeout, throttling, missing rights, expired credentials, a
// missing topic, a KMS key that the sink may not use.
//
// A FIFO topic keeps the order of each object (the message group is the object's UID), and drops repeats within five
// minutes (the deduplication id is the event's). A standard topic promises neither: subscribers must cope with
// changes of an object that are reordered or repeated.
package sns

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
)

// Sink publishes to a topic: the bus sends, and calls put.
type Sink struct {
	*amazon.Bus
	client *sns.Client
}

// New returns a sink. It reads AWS's configuration and the TLS files, and connects with the first Send. The agent is
// part of the User-Agent, such as tattler/v1.2.3.
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
	s.Bus = &amazon.Bus{
		Kind: "sns", Client: c, Place: o.Topic, Right: "sns:Publish", FIFO: strings.HasSuffix(o.Topic, ".fifo"),
		Limit: int(o.Limit), Timeout: o.Timeout, Put: s.put,
	}
	return s, nil
}

// put sends one request.
func (s *Sink) put(ctx context.Context, entries []amazon.Entry) (taken []string, failed []amazon.Failed, err error) {
	in := &sns.PublishBatchInput{TopicArn: &s.Place}
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
