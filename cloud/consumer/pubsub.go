package consumer

import (
	"context"
	"encoding/json"
	"sync"

	"cloud.google.com/go/pubsub/v2"

	"github.com/tattler-dev/tattler/event"
)

// FromPubSub hands each change of a subscription to handle, once, one at a time.
func FromPubSub(ctx context.Context, client *pubsub.Client, subscription string, handle func(event.Event) error) error {
	var mu sync.Mutex
	seen := map[string]bool{} // what runs for long forgets the oldest
	return client.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		var e event.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			m.Nack() // it comes again, or goes to the subscription's dead letters
			return
		}
		if !seen[e.ID] {
			if err := handle(e); err != nil {
				m.Nack()
				return
			}
			seen[e.ID] = true
		}
		m.Ack()
	})
}
