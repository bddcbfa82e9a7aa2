package consumer

import (
	"context"
	"encoding/json"
	"sync"

	"cloud.google.com/go/pubsub/v2"

	"github.com/tattler-dev/tattler/event"
)

// FromPubSub passes each change of a subscription to handle, once, one at a time.
func FromPubSub(ctx context.Context, client *pubsub.Client, subscription string, handle func(event.Event) error) error {
	var mu sync.Mutex
	seen := event.NewDedup(10_000) // lost on restart: if repeats do harm, store ids with what handle writes
	return client.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		var e event.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			m.Nack() // it is delivered again, or becomes a dead letter of the subscription
			return
		}
		if !seen.Seen(e.ID) {
			if err := handle(e); err != nil {
				seen.Forget(e.ID)
				m.Nack()
				return
			}
		}
		m.Ack()
	})
}
