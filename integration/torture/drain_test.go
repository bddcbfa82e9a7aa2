package torture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// drain ends all faults and waits until everything written has been received by every sink.
func (to *torture) drain(ctx context.Context) {
	to.Helper()
	to.hands.stop()
	to.all.calmDown()
	to.some.calmDown()
	if all, slow := len(to.all.receipts()), len(to.slow.receipts()); slow > all/2 {
		to.Errorf("the slow sink has %d messages and the others %d: it is not behind", slow, all)
	}
	to.slow.calmDown()
	to.daemon.ready(ctx)
	// The last objects written: a sink receives them after everything else of their streams.
	a, err := newAPI()
	if err != nil {
		to.Fatal(err)
	}
	h := &hand{api: a, watcher: to.watcher, rng: to.rng}
	var last []string
	for _, ns := range to.namespaces {
		for _, r := range kinds {
			name := "last-" + r.plural
			if err := within(ctx, 2*time.Minute, func() error { return h.create(ctx, r, ns, name) }); err != nil {
				to.Fatal(err)
			}
			last = append(last, fmt.Sprintf("/%s/%s/%s\"", ns, r.plural, name))
		}
	}
	sinks := map[string]func() []receipt{
		"file": func() []receipt { return fileLines(to.T, to.changes()) }, "all": to.all.receipts, "some": to.some.receipts, "slow": to.slow.receipts, "stdout": to.daemon.printed,
	}
	for name, got := range sinks {
		if err := to.arrived(ctx, got, last); err != nil {
			to.Fatalf("%s: %v", name, err)
		}
	}
	to.daemon.end()
}

// arrived waits until a sink has received the last objects, as long as it receives anything.
func (to *torture) arrived(ctx context.Context, got func() []receipt, last []string) error {
	const patience = 5 * time.Minute
	for most, since := 0, time.Now(); ; {
		if !to.daemon.alive() {
			to.daemon.start()
		}
		began := time.Now()
		found := got()
		if len(found) > most {
			most, since = len(found), began
		}
		found = found[max(0, len(found)-5000):]
		i := slices.IndexFunc(last, func(subject string) bool {
			return !slices.ContainsFunc(found, func(r receipt) bool { return strings.Contains(string(r.body), subject) })
		})
		switch {
		case i < 0:
			return nil
		case ctx.Err() != nil, time.Since(since) > patience:
			return fmt.Errorf("%s is missing, and the last of %d messages arrived %v ago", last[i], most, time.Since(since).Round(time.Second))
		}
		pause(ctx, max(100*time.Millisecond, 5*time.Since(began))) // checking many messages takes long
	}
}
