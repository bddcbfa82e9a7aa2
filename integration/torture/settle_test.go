package torture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// settle ends the trouble and waits until everything that was written has arrived everywhere.
func (to *torture) settle(ctx context.Context) {
	to.Helper()
	to.hands.stop()
	to.all.soothe()
	to.some.soothe()
	if all, slow := len(to.all.receipts()), len(to.slow.receipts()); slow > all/2 {
		to.Errorf("the slow sink has got %d messages and the others %d: it is not behind", slow, all)
	}
	to.slow.soothe()
	to.daemon.ready(ctx)
	// Objects that are written last of all: what a sink gets of them comes after all else of their streams.
	a, err := newAPI()
	if err != nil {
		to.Fatal(err)
	}
	h := &hand{api: a, witness: to.witness, rng: to.rng}
	var last []string
	for _, ns := range to.namespaces {
		for _, r := range kinds {
			name := "last-" + r.plural
			if err := within(ctx, 30*time.Second, func() error { return h.create(ctx, r, ns, name) }); err != nil {
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

// arrived waits until a sink has got the objects that were written last, as long as it gets anything.
func (to *torture) arrived(ctx context.Context, got func() []receipt, last []string) error {
	const patience = 2 * time.Minute
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
			return fmt.Errorf("it has not got %s, and of %d messages the last one %v ago", last[i], most, time.Since(since).Round(time.Second))
		}
		rest(ctx, max(100*time.Millisecond, 5*time.Since(began))) // to look at much takes long
	}
}
