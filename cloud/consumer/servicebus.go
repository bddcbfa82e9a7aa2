package consumer

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/tattler-dev/tattler/event"
)

// FromServiceBus hands each change that a receiver gets to handle, once.
func FromServiceBus(ctx context.Context, receiver *azservicebus.Receiver, handle func(event.Event) error) error {
	seen := map[string]bool{} // what runs for long forgets the oldest
	for {
		ms, err := receiver.ReceiveMessages(ctx, 100, nil)
		if err != nil {
			return err
		}
		for _, m := range ms {
			var e event.Event
			if err := json.Unmarshal(m.Body, &e); err != nil {
				return err
			}
			if !seen[e.ID] {
				if err := handle(e); err != nil {
					return err // it comes again
				}
				seen[e.ID] = true
			}
			if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
				return err
			}
		}
	}
}
