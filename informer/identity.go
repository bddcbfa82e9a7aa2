package informer

import (
	"context"
	"fmt"
	"sync"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// identity caches Cluster.Identity.
type identity struct {
	mu    sync.Mutex
	known bool
	uid   string // empty: access is forbidden
}

// Identity returns the UID of the namespace kube-system, which distinguishes clusters; it is requested once. It is empty
// if access is forbidden. A restored etcd backup keeps it, so equal identities prove nothing.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	c.identity.mu.Lock()
	defer c.identity.mu.Unlock()
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
