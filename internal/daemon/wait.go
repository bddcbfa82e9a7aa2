package daemon

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
)

// A start waits for what passes by itself: an API server that is away, a disk that is full. A daemon that exited would be
// started again ever more seldom, so that a short outage became a long gap. What waiting does not mend ends the start at once:
// wrong options, refused credentials, a journal that is damaged or that another daemon has.

// sayEvery is how often the log repeats what a start is waiting for. Another cause may be logged after sayOther.
const (
	sayEvery = 10 * time.Minute
	sayOther = time.Minute
)

// waitsFor returns what a start that failed with an error waits for; empty if waiting does not mend it.
func waitsFor(err error) string {
	switch {
	case errors.Is(err, journal.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "space on the disk"
	case capture.Transient(err):
		return "the API server"
	}
	return ""
}

// complaint limits how often the log repeats an error.
type complaint struct {
	what string
	at   time.Time
}

// due reports whether to log now that a step waits for something. The errors of one cause may differ in text, such as in a
// port or in the name of a temporary file.
func (c *complaint) due(what string) bool {
	if ago := time.Since(c.at); !c.at.IsZero() && ago < sayEvery && (what == c.what || ago < sayOther) {
		return false
	}
	c.what, c.at = what, time.Now()
	return true
}

// patiently repeats a step of the start until it succeeds, fails for good, or ctx ends. Meanwhile the status says what it
// waits for, and retention makes room on a full disk once the journal is open.
func (d *daemon) patiently(ctx context.Context, step func() error) error {
	doing := d.overall.doing()
	var said complaint
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := step()
		what := waitsFor(err)
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		if what == "" {
			d.overall.starts(doing)
			return err
		}
		d.overall.starts("waiting for " + what)
		if said.due(what) {
			d.o.Log.Error("cannot start yet: waiting for "+what, "error", d.explain(err))
		}
		if d.retainer != nil && errors.Is(err, journal.ErrFull) {
			d.retainer.shrink(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// explain completes an error of the only cluster for people.
func (d *daemon) explain(err error) error {
	if d.o.Explain == nil {
		return err
	}
	return d.o.Explain(err)
}
