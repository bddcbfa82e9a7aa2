package daemon

import (
	"context"
	"fmt"
	"time"
)

// noteRules notes under which redaction rules is recorded from now on, and says what the journal keeps
// that others made: it may show what is hidden now.
func (d *daemon) noteRules(ctx context.Context) error {
	u, err := d.journal.Rules(ctx, d.redactor.Fingerprint(), time.Now())
	if err == nil {
		err = d.journal.Sums(ctx, d.redactor.SumKeyID())
	}
	if err != nil {
		return fmt.Errorf("note the redaction rules in the journal: %w", err)
	}
	if u.Unfinished != nil {
		d.o.Log.Warn("a purge of the journal has not come to its end: what it was to remove may still be in the file",
			"finish", fmt.Sprintf("end this, then: tattler journal purge %s --journal %q", u.Unfinished, d.journal.Path()))
	}
	if u.Changes > 0 {
		d.o.Log.Warn("changes in the journal were recorded under other redaction rules: they may show what is hidden now",
			"changes", u.Changes, "before", u.Before,
			"remove", fmt.Sprintf("end this, then: tattler journal purge --older-rules --journal %q", d.journal.Path()))
	}
	return nil
}
