package redis_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/redis"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume passes each change of a stream to handle, once, and returns the position to resume from.
func consume(ctx context.Context, rdb *client.Client, stream, after string, seen *event.Dedup, handle func(event.Event) error) (string, error) {
	for {
		read, err := rdb.XRange(ctx, stream, "("+after, "+").Result() // XRead with Block waits for more
		if err != nil || len(read) == 0 {
			return after, err
		}
		for _, entry := range read {
			var e event.Event
			if err := json.Unmarshal([]byte(entry.Values["data"].(string)), &e); err != nil {
				return after, err
			}
			if !seen.Seen(e.ID) { // otherwise it is a repeat
				if err := handle(e); err != nil {
					seen.Forget(e.ID)
					return after, err
				}
			}
			after = entry.ID
		}
	}
}

func TestConsumer(t *testing.T) {
	s := newServer(t)
	ms := sinktest.Messages(0, 6)
	for _, part := range [][2]int{{0, 4}, {2, 6}} { // two are repeated
		if _, err := send(t, redis.Options{URL: "redis://" + s.addr()}, ms[part[0]:part[1]]); err != nil {
			t.Fatal(err)
		}
	}
	var got, want []string
	for _, m := range ms {
		want = append(want, m.ID)
	}
	place, err := consume(t.Context(), s.admin, "tattler", "0-0", event.NewDedup(1000), func(e event.Event) error {
		got = append(got, e.ID)
		return nil
	})
	if err != nil || !slices.Equal(got, want) || place != s.entries("tattler")[7].ID {
		t.Errorf("%v, at %s, got %v, want %v", err, place, got, want)
	}
}

// TestDocs checks that the page shows the code that the tests run.
func TestDocs(t *testing.T) {
	rig.SameAsPage(t, "redis.md", "consumer_test.go")
}
