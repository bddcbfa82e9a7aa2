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

// TestLogged: a sink that refuses some changes for good logs each dead letter, and no recovery, for it never was away.
// One that was away and takes a change again does.
func TestLogged(t *testing.T) {
	gone := errors.New("503")
	for _, tc := range []struct {
		why   string
		retry deliver.Retry
		send  func(m sink.Message, at time.Duration) error
		want  map[string]int
	}{
		{"two that are refused at once", deliver.Retry{Attempts: 1}, refuses(id(1), id(3)), map[string]int{"became a dead letter": 2, "works again": 0, "delivery failed": 0}},
		{"two that are refused thrice", deliver.Retry{Attempts: 3}, refuses(id(1), id(3)), map[string]int{"became a dead letter": 2, "works again": 0, "delivery failed": 0, "a change was refused and is tried again": 2}},
		{"an outage", deliver.Retry{}, func(_ sink.Message, at time.Duration) error {
			if at < time.Minute {
				return gone
			}
			return nil
		}, map[string]int{"became a dead letter": 0, "works again": 1, "delivery failed": 1}},
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

// refuses returns a sink's answer that refuses messages for good.
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
