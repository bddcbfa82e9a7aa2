package report

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// TestTraces: the status has a section about traces if they are exported, with the error of a receiver that is away.
func TestTraces(t *testing.T) {
	now := time.Unix(1000, 0)
	show := func(traces *control.Traces) string {
		var b strings.Builder
		if err := Status(&b, &control.Status{Settled: true, Traces: traces}, now, 0); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text := show(nil); strings.Contains(text, "Traces") {
		t.Errorf("without traces:\n%s", text)
	}
	text := show(&control.Traces{To: "http://h:4318", Exported: 4, Dropped: 1, Queued: 3, Error: "away\x1b[31m", ErrorAt: now.Add(-time.Minute)})
	for _, want := range []string{"\nTraces    http://h:4318\n          4 spans exported, 1 dropped, 3 waiting\n", "away", "(60s ago)"} {
		if !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
