package informer

import (
	"context"
	"fmt"
	"sync"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A checkpoint proves nothing by itself. Before a loaded state is resumed, three conditions must hold: the cluster's
// identity is the same; a list of one object is not behind the state; and the newest object exists at its version or
// later, or the watch delivers its deletion before it reaches the version that the server had after the request. If
// any of them fails or cannot be checked, a new epoch begins with a list that is compared by content.
//
// Until then the state can be read (Loaded), as of the checkpoint. Subscriptions wait until it is synced unless they
// set FromCheckpoint; feeds begin at once. A bookmark 2 s before the end of a short watch shows that the state is
// current. A loaded server may leave that bookmark out, so there are two short watches, of 3 and 8 s, before the
// state counts as unverified.

// identity is what tells one cluster from another: the UID of its namespace kube-system. An etcd
// backup has the same one, so that it proves nothing where it is equal.
type identity struct {
	mu    sync.Mutex
	known bool
	uid   string // empty: we may not know
}

// Identity asks what tells this cluster from another, once: the UID of its namespace kube-system. It
// is empty where we may not know. A restored etcd backup has the same.
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

// verify implements reflector.Reflector.Verify: it looks for a sign that the loaded state belongs to
// another history. What the server must say is that the newest object exists, at our version or
// later; where it does not, its deletion must arrive before the state counts as current.
func (s *stream) verify(ctx context.Context) (doubt bool, err error) {
	id, err := s.source.cluster.Identity(ctx)
	if err != nil {
		return false, err
	}
	if s.loaded.identity != "" && id != "" && s.loaded.identity != id {
		return false, reflector.ErrRewritten
	}
	s.expect = nil
	s.drophold() // of an earlier attempt, whose doubt is looked into again
	if err := s.verifyNewest(ctx); err != nil {
		return false, err
	}
	s.unverified = false
	if s.expect != nil {
		s.holding = true
		return true, nil
	}
	s.store.Resume()
	return false, nil
}

func (s *stream) verifyNewest(ctx context.Context) error {
	k := s.loaded.newest
	if k.Name == "" {
		return nil
	}
	raw, err := s.source.cluster.Get(ctx, request.Path(s.source.served(), k.Namespace, k.Name), nil)
	switch {
	case notFound(err):
		s.expect = &expected{k, s.loaded.uid}
		return nil
	case err != nil:
		return err
	}
	m, err := wire.ReadMeta(wire.JSON, raw)
	switch {
	case err != nil:
		return err
	case m.UID != s.loaded.uid:
		s.expect = &expected{k, s.loaded.uid}
	case wire.Older(m.ResourceVersion, s.loaded.rv):
		return reflector.ErrRewritten
	}
	return nil
}

// CaughtUp implements reflector.Sink.
func (s *stream) CaughtUp(version string) error {
	if s.expect != nil { // that another object has the name is no proof
		s.expect = nil
		return reflector.ErrRewritten // the list that follows drops what is held
	}
	s.commit(store.Commit{Version: version, Live: true})
	s.current()
	s.wantAudit()
	return nil
}
