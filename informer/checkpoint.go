package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// checkpoints is the cluster's checkpoint directory; dir is nil if there is no checkpoint.
type checkpoints struct {
	dir *checkpoint.Dir
	// owners maps checkpoint names to the streams that write them. The cluster's lock guards it.
	owners map[string]*stream
}

// claim assigns a source's streams the checkpoints that no other open source has. A source that is being closed may still
// write; openCheckpoint waits for that.
func (c *checkpoints) claim(s *Source) {
	if !s.checkpointed() {
		return
	}
	for _, st := range s.streams {
		c.owns(st)
	}
}

// owns assigns a stream its checkpoint, unless another open source has it.
func (c *checkpoints) owns(st *stream) bool {
	name := st.checkpointName()
	if owner := c.owners[name]; owner == nil || owner.source.isClosed() {
		c.owners[name] = st
	}
	return c.owners[name] == st
}

func (c *checkpoints) release(s *Source) {
	maps.DeleteFunc(c.owners, func(_ string, st *stream) bool { return st.source == s })
}

var errDuplicate = errors.New("an earlier source with equal options has the checkpoint: set NoCheckpoint")

const (
	// A stream retries every inUseRetry, for inUseTimeout, to open a checkpoint that a closed source still writes.
	inUseRetry   = 20 * time.Millisecond
	inUseTimeout = 10 * time.Second
	// identifyRetry is the wait after the cluster's identity could not be read.
	identifyRetry = 10 * time.Second
	// takeOverEvery is how often a stream without a checkpoint tries to get it from an owner that may have ended.
	takeOverEvery = 10 * time.Second
)

// openCheckpoints prepares the directory. While it cannot be used, every stream that needs it reports the error, and works
// without it.
func (c *Cluster) openCheckpoints() {
	if c.opts.Checkpoint != "" {
		c.checkpoints.dir = checkpoint.Open(c.opts.Checkpoint)
	}
}

func (c *Cluster) closeCheckpoints() error {
	if c.checkpoints.dir == nil {
		return nil
	}
	return c.checkpoints.dir.Close()
}

// checkpointed reports whether the source's state may be on disk. Secrets may not. The results of a selection function or
// an unnamed transform cannot be compared with those of an earlier run.
func (s *Source) checkpointed() bool {
	o := &s.opts
	secrets := schema.GroupResource{Resource: "secrets"}
	return s.cluster.opts.Checkpoint != "" && !o.NoCheckpoint && s.restore == nil && o.Selection.Keep == nil &&
		(o.Transform == nil || o.Transform.Name != "") && s.gvr.GroupResource() != secrets
}

// fingerprint covers everything that decides which bytes are stored for an object, and the server's address.
func (s *Source) fingerprint() string {
	o := &s.opts
	_, server := s.cluster.client.HTTP()
	text := fmt.Sprintf("2 %s%s %s %s metadata=%t managedFields=%t",
		server.Host, server.Path, s.served().Version, o.Format, o.MetadataOnly, !o.DropManagedFields)
	if t := o.Transform; t != nil {
		text += fmt.Sprintf(" transform=%q/%d", t.Name, t.Version)
	}
	return text
}

// checkpointName names the stream's checkpoint within the cluster: streams that may be open at the same time and store
// different bytes have different names.
func (s *stream) checkpointName() string {
	o := &s.source.opts
	name := fmt.Sprintf("%s %s labels=%q fields=%q %s %s metadata=%t managedFields=%t",
		s.id.Resource.GroupResource(), s.id.Namespace, o.Selection.Labels, o.Selection.Fields,
		s.id.Resource.Version, o.Format, o.MetadataOnly, !o.DropManagedFields)
	if t := o.Transform; t != nil {
		name += fmt.Sprintf(" transform=%q", t.Name)
	}
	return name
}

// openCheckpoint opens the stream's checkpoint; it returns nil if the stream has none, or cannot have it now.
func (s *stream) openCheckpoint(ctx context.Context) *checkpoint.Stream {
	if !s.source.checkpointed() {
		return nil
	}
	patience := time.After(inUseTimeout)
	for {
		file, err := s.tryCheckpoint()
		if !errors.Is(err, checkpoint.ErrInUse) {
			s.setCheckpointErr(err)
			return file
		}
		select {
		case <-time.After(inUseRetry):
		case <-patience:
			s.setCheckpointErr(err)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// tryCheckpoint opens the stream's checkpoint. After Close, it returns neither a checkpoint nor an error.
func (s *stream) tryCheckpoint() (*checkpoint.Stream, error) {
	c := s.source.cluster
	c.mu.Lock()
	owns := c.checkpoints.owns(s)
	c.mu.Unlock()
	switch {
	case s.source.isClosed(): // the next source may have it already
		return nil, nil
	case !owns:
		return nil, errDuplicate
	}
	return c.checkpoints.dir.Stream(s.checkpointName())
}

// awaitCheckpoint opens the checkpoint as soon as its owner, another process or source, has ended; it returns nil when ctx
// ends. The checkpoint is then written anew.
func (s *stream) awaitCheckpoint(ctx context.Context) *checkpoint.Stream {
	for {
		select {
		case <-time.After(takeOverEvery):
		case <-ctx.Done():
			return nil
		}
		file, err := s.tryCheckpoint()
		if file != nil {
			return file
		}
		if now := s.Status().Checkpoint; err != nil && (now == nil || now.Error() != err.Error()) {
			s.setCheckpointErr(err)
		}
	}
}

// setCheckpointErr records why the stream has no checkpoint, or nil if it has one.
func (s *stream) setCheckpointErr(err error) {
	s.update(func(st *Status) { st.Checkpoint = err })
	if err != nil {
		s.hooks().checkpoint(s.id, err)
	}
}

// startSaving keeps the checkpoint current until stopSaving. If file is nil, it waits for the checkpoint.
func (s *stream) startSaving(ctx context.Context, file *checkpoint.Stream) {
	if !s.source.checkpointed() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var saving sync.WaitGroup
	saving.Go(func() {
		if file == nil {
			file = s.awaitCheckpoint(ctx)
		}
		if file != nil {
			defer file.Close()
			s.save(ctx, file)
		}
	})
	s.saving = func() {
		cancel()
		saving.Wait()
	}
}

// stopSaving waits for the last write.
func (s *stream) stopSaving() {
	if s.saving != nil {
		s.saving()
		s.saving = nil
	}
}

// pauseSaving stops saving while the stream is parked: it may go on under another version of the API group, which needs
// a new file.
func (s *stream) pauseSaving(parked bool) {
	if parked == s.parked {
		return
	}
	if s.parked = parked; parked {
		s.stopSaving()
	} else if ctx := s.source.running(); ctx != nil {
		s.startSaving(ctx, s.openCheckpoint(ctx))
	}
}

// save keeps the checkpoint current, from when the stream is synced until ctx ends.
func (s *stream) save(ctx context.Context, file *checkpoint.Stream) {
	id, err := s.awaitIdentity(ctx)
	if err != nil {
		return // ctx ended first
	}
	err = file.Run(ctx, checkpoint.Options{
		Fingerprint: s.source.fingerprint(),
		Identity:    id,
		Subscribe:   s.checkpointQueue,
		Report:      s.setCheckpointErr,
	})
	if err != nil && !errors.Is(err, ErrClosed) { // closed before it began: not a failure
		s.setCheckpointErr(err)
	}
}

// awaitIdentity waits until the stream is synced, and returns the cluster's identity.
func (s *stream) awaitIdentity(ctx context.Context) (id string, err error) {
	for {
		changed, _ := s.source.watchState()
		var again <-chan time.Time
		if s.Status().Synced {
			if id, err = s.source.cluster.Identity(ctx); err == nil {
				return id, nil
			}
			if ctx.Err() == nil {
				s.setCheckpointErr(err)
			}
			again = time.After(identifyRetry)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// checkpointQueue subscribes a queue to this stream alone.
func (s *stream) checkpointQueue() (checkpoint.Queue, error) {
	if s.source.isClosed() {
		return nil, ErrClosed
	}
	q := &ownQueue{store.NewQueue(len(s.source.streams), store.QueueOptions{Latest: true}), s.store}
	s.store.Subscribe(q.Queue, time.Now())
	return q, nil
}

// ownQueue is a queue of one store; Close unsubscribes it.
type ownQueue struct {
	*store.Queue
	of *store.Store
}

// Close implements checkpoint.Queue.
func (q *ownQueue) Close() {
	q.of.Unsubscribe(q.Queue)
	q.Queue.Close()
}

// CheckpointReport describes a checkpoint file.
type CheckpointReport = checkpoint.Report

// VerifyCheckpoint reads a checkpoint file, even while another process writes it, and describes its contents; the error
// says where it is damaged.
func VerifyCheckpoint(file string) (CheckpointReport, error) { return checkpoint.Verify(file) }
