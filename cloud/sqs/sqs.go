// Package sqs is the sink that sends each change to a queue of Amazon SQS.
//
// SQS acknowledges each message of a request; the sink acknowledges the first ones that SQS accepted. A message that
// is too long for the queue is cut (sink.TooLargeError), and InvalidMessageContents is a permanent error. All other
// errors are temporary: no connection, a timeout, throttling, missing rights, expired credentials, a missing queue,
// a KMS key that the sink may not use.
//
// A FIFO queue keeps the order of each object (the message group is the object's UID), and drops repeats within five
// minutes (the deduplication id is the event's). A standard queue promises neither: consumers must cope with changes
// of an object that are reordered or repeated.
package sqs

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
)

// Sink sends to a queue: the bus sends, and calls put.
type Sink struct {
	*amazon.Bus
	queue  string
	client *sqs.Client
}

// New returns a sink. It reads AWS's configuration and the TLS files, and connects with the first Send. The agent is
// part of the User-Agent, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sqs sink: %w", err)
	}
	o = o.withDefaults()
	u, err := parse(o.Queue)
	if err != nil {
		return nil, fmt.Errorf("sqs sink: queue: %w", err)
	}
	region, endpoint := where(u)
	if o.AWS.Endpoint != "" {
		endpoint = o.AWS.Endpoint
	}
	c, err := amazon.NewClient(agent, o.AWS, region, o.TLS, o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("sqs sink: %w", err)
	}
	s := &Sink{queue: o.Queue}
	s.client = sqs.NewFromConfig(c.Config, func(so *sqs.Options) {
		if endpoint != "" {
			so.BaseEndpoint = &endpoint
		}
	})
	s.Bus = &amazon.Bus{
		Kind: "sqs", Client: c, Place: u.Host + u.Path, Right: "sqs:SendMessage", FIFO: strings.HasSuffix(u.Path, ".fifo"),
		Limit: int(o.Limit), Timeout: o.Timeout, Put: s.put,
	}
	return s, nil
}

// put sends one request.
func (s *Sink) put(ctx context.Context, entries []amazon.Entry) (taken []string, failed []amazon.Failed, err error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &s.queue}
	for i := range entries {
		in.Entries = append(in.Entries, request(&entries[i]))
	}
	out, err := s.client.SendMessageBatch(ctx, in)
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

func request(e *amazon.Entry) types.SendMessageBatchRequestEntry {
	r := types.SendMessageBatchRequestEntry{Id: &e.ID, MessageBody: &e.Body, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range e.Attributes {
		r.MessageAttributes[name] = types.MessageAttributeValue{DataType: amazon.AttributeType(), StringValue: &value}
	}
	if e.Group != "" {
		r.MessageGroupId, r.MessageDeduplicationId = &e.Group, &e.Dedup
	}
	return r
}
