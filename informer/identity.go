package informer

import (
	"context"
	"fmt"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A checkpoint proves nothing by itself. Before a loaded state is resumed, three conditions must hold: the cluster's
// identity is the same; a list of one object is not behind the state; and the newest object exists at its version or
// later, or the watch delivers its deletion before it reaches the version that the server had after the request. If
// any of them fails, the server's history was replaced, and a new epoch begins with a list. If one cannot be checked, the
// stream lists in the same epoch. Both lists compare contents.
//
// Until then the state can be read (Loaded), as of the checkpoint. Subscriptions wait until it is synced unless they
// set FromCheckpoint; feeds begin at once. A bookmark 2 s before the end of a short watch shows that the state is
// current. A loaded server may leave that bookmark out, so there are two short watches, of 3 and 8 s, before the
// state counts as unverified.

// identity caches Cluster.Identity. The holder of lock's only element may use the other fields; waiting for it ends with
// the waiting call's context, as a request for the identity may take long.
type identity struct {
	lock  chan struct{}
	known bool
	uid   string // empty: access is forbidden
}

// Identity returns the UID of the namespace kube-system, which distinguishes clusters; it is requested once. It is empty
// if access is forbidden. A restored etcd backup keeps it, so equal identities prove nothing.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	select {
	case c.identity.lock <- struct{}{}:
		defer func() { <-c.identity.lock }()
	case <-ctx.Done():
		return "", fmt.Errorf("identify cluster: wait for another request: %w", context.Cause(ctx))
	}
	if c.identity.known {
		return c.identity.uid, nil
	}
	raw, err := c.Get(ctx, "/api/v1/namespaces/kube-system", nil)
	switch {
	case err == nil:
		m, err := wire.ReadMeta(wire.JSON, raw)
		if err != nil {
			return "", fmt.Errorf("identify cluster: %w", err)
		}
		c.identity.uid = m.UID
	case !reflector.IsRefusal(err):
		return "", fmt.Errorf("identify cluster: %w", err)
	}
	c.identity.known = true
	return c.identity.uid, nil
}
