package daemon

import (
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/journal"
)

// sameCluster is for a journal that was made under another name of the cluster, which may be a new name, or
// a slip. It is an error where it records another cluster: every object of that would be told as deleted.
// A cluster that was made anew under the same name is no slip.
func (d *daemon) sameCluster(ctx context.Context) error {
	streams, err := d.journal.Streams(ctx)
	if err != nil {
		return fmt.Errorf("read streams of the journal: %w", err)
	}
	var newest journal.Head
	for _, s := range streams {
		if s.Head.Identity != "" && s.Head.At.After(newest.At) {
			newest = s.Head
		}
	}
	if newest.Identity == "" {
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
	if now != "" && now != newest.Identity {
		return fmt.Errorf("the journal %s records another cluster, %q: all that it has would be told as deleted; choose another file for %q",
			d.journal.Path(), d.journal.Cluster(), d.o.Cluster)
	}
	return nil
}
