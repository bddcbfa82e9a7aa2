package otlp_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume passes each change in logs to handle, once. It can run in a processor or an exporter of the Collector.
func consume(_ context.Context, logs plog.Logs, seen *event.Dedup, handle func(event.Event) error) error {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				body, err := json.Marshal(record.Body().AsRaw()) // body: event
				if err != nil {
					return err
				}
				var e event.Event
				if err := json.Unmarshal(body, &e); err != nil {
					return err
				}
				if seen.Seen(e.ID) { // a repeat
					continue
				}
				if err := handle(e); err != nil {
					seen.Forget(e.ID)
					return err
				}
			}
		}
	}
	return nil
}

func TestConsumer(t *testing.T) {
	c := newCollector(t, otlp.Options{}, nil, "")
	c.start()
	ms := sinktest.Messages(0, 6)
	for _, part := range [][2]int{{0, 4}, {2, 6}} { // two are repeated
		if _, err := send(t, c.o, ms[part[0]:part[1]]); err != nil {
			t.Fatal(err)
		}
	}
	var got, want []string
	for _, m := range ms {
		want = append(want, m.ID)
	}
	seen := event.NewDedup(1000)
	for _, logs := range c.logs {
		if err := consume(t.Context(), logs, seen, func(e event.Event) error {
			got = append(got, e.ID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) || len(c.ids) != 8 {
		t.Errorf("got %v of %d, want %v", got, len(c.ids), want)
	}
}

// TestDocs checks that the page shows the code that the tests run.
func TestDocs(t *testing.T) {
	rig.SameAsPage(t, "otlp.md", "consumer_test.go")
}
