package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// TestLogged: a sink that refuses some changes permanently logs each dead letter, but no recovery, because it
// was never away. A sink that was away logs its recovery.
func TestLogged(t *testing.T) {
	gone := errors.New("503")
	for _, tc := range []struct {
		why   string
		retry deliver.Retry
		send  func(m sink.Message, at time.Duration) error
		want  map[string]int
	}{
		{"two that are refused at once", deliver.Retry{Attempts: 1}, refuses(id(1), id(3)), map[string]int{"set aside as a dead letter": 2, "works again": 0, "delivery failed": 0}},
		{"two that are refused thrice", deliver.Retry{Attempts: 3}, refuses(id(1), id(3)), map[string]int{"set aside as a dead letter": 2, "works again": 0, "delivery failed": 0, "change refused; retrying": 2}},
		{"an outage", deliver.Retry{}, func(_ sink.Message, at time.Duration) error {
			if at < time.Minute {
				return gone
			}
			return nil
		}, map[string]int{"set aside as a dead letter": 0, "works again": 1, "delivery failed": 1}},
		{"an outage that outlasts a change", deliver.Retry{GiveUp: time.Minute}, func(m sink.Message, at time.Duration) error {
			if at < 3*time.Minute {
				return gone
			}
			return nil
		}, map[string]int{"works again": 1}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				start := time.Now()
				r := newRig(t, 5, deliver.Options{Retry: tc.retry, Log: slog.New(slog.NewTextHandler(&log, nil))})
				r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
					for i, m := range ms {
						if err := tc.send(m, time.Since(start)); err != nil {
							return i, err
						}
					}
					return len(ms), nil
				}
				r.start()
				<-time.After(10 * time.Minute)
				synctest.Wait()
				r.stop()
				for text, n := range tc.want {
					if got := strings.Count(log.String(), text); got != n {
						t.Errorf("%d times %q, want %d, in\n%s", got, text, n, log.String())
					}
				}
			})
		})
	}
}

// refuses returns an answer that refuses messages permanently.
func refuses(ids ...string) func(sink.Message, time.Duration) error {
	return func(m sink.Message, _ time.Duration) error {
		for _, id := range ids {
			if m.ID == id {
				return &sink.PermanentError{Err: fmt.Errorf("400 for %s", id)}
			}
		}
		return nil
	}
}
