package daemon

import (
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/informer"
)

// A journal of another cluster is refused if both its name and its identity differ: that is a mistake, and would
// record every object as deleted. With the same name and another identity, the cluster was created again. With the
// same identity and another name, it was renamed.

// sameCluster checks a journal made under another cluster name, which may be a new name or a mistake. It fails
// if the journal records another cluster, because all its objects would be reported as deleted. A cluster that
// was recreated under the same name is accepted.
func (d *daemon) sameCluster(ctx context.Context) error {
	was, err := d.journal.Identity(ctx, "")
	if err != nil {
		return fmt.Errorf("read the journal's cluster: %w", err)
	}
	if was == "" {
		return nil // unknown
	}
	cluster, err := informer.NewCluster(d.o.Config, informer.Options{})
	if err != nil {
		return fmt.Errorf("identify the cluster: %w", err)
	}
	now, err := cluster.Identity(ctx)
	if err != nil {
		return fmt.Errorf("identify the cluster: %w", err)
	}
	if now != "" && now != was {
		return fmt.Errorf("the journal %s records another cluster, %q: all its objects would be reported as deleted; choose another file for %q or, if this is the same cluster, recreated, set cluster.name: %s",
			d.journal.Path(), d.journal.Cluster(), d.o.Cluster, d.journal.Cluster())
	}
	return nil
}
