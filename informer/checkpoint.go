package informer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// identity is what tells one cluster from another: the UID of its namespace kube-system. An etcd
// backup has the same one, so that it proves nothing where it is equal.
type identity struct {
	mu    sync.Mutex
	known bool
	uid   string // empty: we may not know
}

// identify asks for the cluster's identity, once. It is empty where that is not permitted.
func (c *Cluster) identify(ctx context.Context) (string, error) {
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
func (s *stream) verify(ctx context.Context) error {
	id, err := s.source.cluster.identify(ctx)
	if err != nil {
		return err
	}
	if s.loaded.identity != "" && id != "" && s.loaded.identity != id {
		return reflector.ErrRewritten
	}
	k := s.loaded.newest
	if k.Name == "" {
		return nil
	}
	raw, err := s.source.cluster.Get(ctx, request.Path(s.source.served(), k.Namespace, k.Name), nil)
	switch {
	case apierrors.IsNotFound(err):
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
		return reflector.ErrRewritten
	}
	s.commit(store.Commit{Version: version, Live: true})
	s.current()
	return nil
}

// checkpoints is the directory of the cluster's checkpoint: nil if none was asked for or it cannot be
// had.
type checkpoints struct {
	dir *checkpoint.Dir
	err error
}

// openCheckpoints opens the directory. That it cannot be had is told by every stream that wants it:
// the cluster works without.
func (c *Cluster) openCheckpoints() {
	if c.opts.Checkpoint == "" {
		return
	}
	c.checkpoints.dir, c.checkpoints.err = checkpoint.Open(c.opts.Checkpoint)
}

func (c *Cluster) closeCheckpoints() error {
	if c.checkpoints.dir == nil {
		return nil
	}
	return c.checkpoints.dir.Close()
}

// checkpointed tells whether the source's state may be on disk. Secrets may not, and what a function
// selects cannot be compared with what it selected before.
func (s *Source) checkpointed() bool {
	secrets := schema.GroupResource{Resource: "secrets"}
	return s.cluster.opts.Checkpoint != "" && !s.opts.NoCheckpoint && s.opts.Selection.Keep == nil &&
		s.gvr.GroupResource() != secrets
}

// fingerprint is of all that decides what bytes are stored of an object.
func (s *Source) fingerprint() string {
	o := &s.opts
	text := fmt.Sprintf("1 %s %s metadata=%t managedFields=%t", s.served().Version, o.Format, o.MetadataOnly, !o.DropManagedFields)
	if t := o.Transform; t != nil {
		text += fmt.Sprintf(" transform=%q/%d", t.Name, t.Version)
	}
	return text
}

// checkpointName names the stream's checkpoint among those of the cluster.
func (s *stream) checkpointName() string {
	o := &s.source.opts
	name := s.id.Resource.GroupResource().String() + " " + s.id.Namespace
	return fmt.Sprintf("%s labels=%q fields=%q %s metadata=%t", name, o.Selection.Labels, o.Selection.Fields, o.Format, o.MetadataOnly)
}

// openCheckpoint opens the stream's checkpoint; nil if it has none.
func (s *stream) openCheckpoint() *checkpoint.Stream {
	if !s.source.checkpointed() {
		return nil
	}
	c := &s.source.cluster.checkpoints
	if c.err != nil {
		s.checkpointIs(c.err)
		return nil
	}
	file, err := c.dir.Stream(s.checkpointName())
	s.checkpointIs(err)
	return file
}

// checkpointIs notes why the stream has no checkpoint, or that it has one: nil.
func (s *stream) checkpointIs(err error) {
	s.update(func(st *Status) { st.Checkpoint = err })
	if err != nil {
		s.hooks().checkpoint(s.id, err)
	}
}

// load takes the state of a checkpoint into the empty store, and tells whether the stream may be
// resumed from it.
func (s *stream) load(file *checkpoint.Stream) bool {
	st, err := file.Load(s.source.fingerprint())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		s.checkpointIs(err) // until a new one is written
		return false
	}
	s.loaded = loaded{identity: st.Identity, at: st.Saved}
	if it, ok := st.Newest(); ok {
		s.loaded.newest, s.loaded.uid, s.loaded.rv = it.Key, it.V.UID(), it.V.RV()
	}
	for d, f := range st.Dicts() {
		s.source.router.Adopt(f, d)
	}
	st.Head.At = st.Saved
	s.store.Load(st.Items, st.Head, st.Trusted)
	s.update(func(now *Status) { now.Loaded, now.LastCurrent = true, st.Saved })
	s.source.notify()
	return st.Trusted && st.Head.Phase == store.Live && st.Head.Version != ""
}

// startSaving keeps the checkpoint in step until it is stopped; stop waits for the last write.
func (s *stream) startSaving(ctx context.Context, file *checkpoint.Stream) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var saving sync.WaitGroup
	saving.Go(func() { s.save(ctx, file) })
	return func() {
		cancel()
		saving.Wait()
		file.Close()
	}
}

// save keeps the checkpoint in step once the stream is synced, until ctx ends.
func (s *stream) save(ctx context.Context, file *checkpoint.Stream) {
	id, err := s.settled(ctx)
	if err != nil {
		return // it ended before
	}
	err = file.Run(ctx, checkpoint.Options{
		Fingerprint: s.source.fingerprint(),
		Identity:    id,
		Subscribe:   s.checkpointQueue,
		Report:      s.checkpointIs,
	})
	if err != nil {
		s.checkpointIs(err)
	}
}

// settled waits until the stream is synced, and returns the cluster's identity.
func (s *stream) settled(ctx context.Context) (id string, err error) {
	for {
		changed, _ := s.source.watchState()
		if s.Status().Synced {
			if id, err = s.source.cluster.identify(ctx); err == nil {
				return id, nil
			}
			if ctx.Err() == nil {
				s.checkpointIs(err) // tried again with the next transition of a stream
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// checkpointQueue is a queue of this stream alone.
func (s *stream) checkpointQueue() (checkpoint.Queue, error) {
	if s.source.isClosed() {
		return nil, ErrClosed
	}
	q := &ownQueue{store.NewQueue(len(s.source.streams), store.QueueOptions{Latest: true}), s.store}
	s.store.Subscribe(q.Queue, time.Now())
	return q, nil
}

// ownQueue is a queue of one store; it leaves it when it closes.
type ownQueue struct {
	*store.Queue
	of *store.Store
}

// Close implements checkpoint.Queue.
func (q *ownQueue) Close() {
	q.of.Unsubscribe(q.Queue)
	q.Queue.Close()
}

// CheckpointReport describes a file of a checkpoint.
type CheckpointReport = checkpoint.Report

// VerifyCheckpoint reads one file of a checkpoint, also beside the process that writes it, and
// returns what it holds; the error says where it is damaged.
func VerifyCheckpoint(file string) (CheckpointReport, error) { return checkpoint.Verify(file) }
