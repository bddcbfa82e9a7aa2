package consumer

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tattler-dev/tattler/event"
)

// FromSQS passes each change in a queue to handle, once.
func FromSQS(ctx context.Context, client *sqs.Client, queue string, handle func(event.Event) error) error {
	seen := event.NewDedup(10_000) // lost on restart: if repeats do harm, store ids with what handle writes
	for {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			var e event.Event
			if err := json.Unmarshal([]byte(*m.Body), &e); err != nil {
				return err
			}
			if !seen.Seen(e.ID) {
				if err := handle(e); err != nil {
					seen.Forget(e.ID)
					return err // it is delivered again
				}
			}
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return err
			}
		}
	}
}
