package daemon

import (
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/informer"
)

// A journal of another cluster is refused if both its name and its identity differ: that is a mistake, and would
// record every object as deleted. With the same name and another identity, the cluster was created again. With the
// same identity and another name, it was renamed.

// sameCluster is for a journal that was made under another name of the cluster, which may be a new name, or
// a slip. It is an error where it records another cluster: every object of that would be told as deleted.
// A cluster that was made anew under the same name is no slip.
func (d *daemon) sameCluster(ctx context.Context) error {
	was, err := d.journal.Identity(ctx)
	if err != nil {
		return fmt.Errorf("ask the journal which cluster it records: %w", err)
	}
	if was == "" {
		return nil // not known
	}
	cluster, err := informer.NewCluster(d.o.Config, informer.Options{})
	if err != nil {
		return fmt.Errorf("ask which cluster it is: %w", err)
	}
	now, err := cluster.Identity(ctx)
	if err != nil {
		return fmt.Errorf("ask which cluster it is: %w", err)
	}
	if now != "" && now != was {
		return fmt.Errorf("the journal %s records another cluster, %q: all that it has would be told as deleted; choose another file for %q, or, if this is that cluster, made anew, set cluster.name: %s",
			d.journal.Path(), d.journal.Cluster(), d.o.Cluster, d.journal.Cluster())
	}
	return nil
}
