package consumer

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/tattler-dev/tattler/event"
)

// FromServiceBus passes each change that a receiver gets to handle, once.
func FromServiceBus(ctx context.Context, receiver *azservicebus.Receiver, handle func(event.Event) error) error {
	seen := event.NewDedup(10_000) // lost on restart: if repeats do harm, store ids with what handle writes
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
			if !seen.Seen(e.ID) {
				if err := handle(e); err != nil {
					seen.Forget(e.ID)
					return err // it is delivered again
				}
			}
			if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
				return err
			}
		}
	}
}
