package daemon

import (
	"context"
	"fmt"
	"time"
)

// noteRules records the current redaction rules in the journal, and warns about changes recorded under other
// rules: they may show values that are now redacted.
func (d *daemon) noteRules(ctx context.Context) error {
	u, err := d.journal.Rules(ctx, d.redactor.Fingerprint(), time.Now())
	if err == nil {
		err = d.journal.Sums(ctx, d.redactor.SumKeyID())
	}
	if err != nil {
		return fmt.Errorf("store the redaction rules in the journal: %w", err)
	}
	if u.Unfinished != nil {
		d.o.Log.Warn("a purge of the journal is unfinished: the data to remove may still be in the file",
			"finish", fmt.Sprintf("stop the daemon, then: tattler journal purge %s --journal %q", u.Unfinished, d.journal.Path()))
	}
	if u.Changes > 0 {
		d.o.Log.Warn("changes in the journal were recorded under other redaction rules: they may show values that are now redacted",
			"changes", u.Changes, "before", u.Before,
			"remove", fmt.Sprintf("stop the daemon, then: tattler journal purge --older-rules --journal %q", d.journal.Path()))
	}
	return nil
}
