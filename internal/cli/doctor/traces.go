package doctor

import (
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// traces reaches the receiver of traces, and says what the daemon could not export.
func (x *examination) traces(ctx context.Context) {
	e, err := x.setup.MakeTraces(nil)
	if err != nil {
		x.add(Sinks, "traces", Error, err.Error(), "tattler run does not start.", "Correct the options of traces.")
		return
	}
	if e == nil {
		return
	}
	defer e.Close()
	ctx, cancel := x.host.within(ctx, checkSink, "", sinkTimeout)
	defer cancel()
	if err := e.Probe(ctx); err != nil {
		x.add(Sinks, "traces", Warning, fmt.Sprintf("traces: %s cannot be reached: %s", e, x.setup.Traces.Hide(err.Error())),
			"Changes are recorded and delivered. Their traces are lost while it cannot be reached.", "Check the receiver, endpoint, and headers under traces.")
	} else {
		x.add(Sinks, "traces", OK, fmt.Sprintf("traces: %s can be reached", e), "", "")
	}
	if x.status != nil && x.status.Traces != nil && x.status.Traces.Dropped > 0 {
		t := x.status.Traces
		x.add(Sinks, "spans", Warning, fmt.Sprintf("traces: the daemon has dropped %s and exported %d", terminal.Count(int(t.Dropped), "span"), t.Exported),
			"Some changes have no trace, or an incomplete one.", "See the daemon's log. For fewer spans, lower traces.sample.")
	}
}
