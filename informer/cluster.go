package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/internal/raw"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
)

const (
	// defaultLists is how many lists run at once: enough to be fast, and few enough for the API server's default
	// priority level for a human's workload.
	defaultLists = 8
	getTimeout   = 30 * time.Second
	// maxGet limits the response of Get: OpenAPI documents have a few megabytes.
	maxGet = 64 << 20
)

// Options tune a Cluster. The zero value is usable.
type Options struct {
	// MaxLists limits concurrent lists, and the streams that check the server's history before they resume; 0
	// means 8.
	MaxLists int
	// RetryRefused is the wait after a refusal that only an administrator can lift, such as 403; 0 means a minute.
	RetryRefused time.Duration
	// Scheme maps Go types that are not in k8s.io/api to kinds, for For.
	Scheme *runtime.Scheme
	// Checkpoint is a directory for the state of every source, so that after a restart the state is served at once
	// and only changes are requested. It is created if it does not exist. One process at a time can use it. A state
	// from another API server's address, or kept under other options, is not served. While the directory cannot be
	// used, for example because another process has it, the cluster runs without it, and Hooks.Checkpoint and
	// Status.Checkpoint report why; it takes the directory over within seconds of the other's end. Values that a Transform hides are not written, nor anything that a guess could be
	// tested with: sums of contents have a random key. Empty means no checkpoint.
	Checkpoint string
	// AuditEvery is how often each stream is audited: the UIDs and versions of its objects are compared with a
	// metadata list read beside the watch, and a stream that missed a change is relisted. An audit also
	// follows a resumption from disk and an outage. When the kind is served in another form, an audit of whole
	// objects follows, to notice contents that changed at the same version. 0 means about 6 hours; negative means no
	// audits.
	AuditEvery time.Duration
	// DetectMutation panics when a shared object (from Informer.Shared, or passed to an index function) was modified,
	// and names the object, the path and its readers. It is for tests: it takes memory and up to a tenth of a CPU.
	// client-go's environment variable KUBE_CACHE_MUTATION_DETECTOR=true enables it as well. Without it, only a sample
	// of shared objects is checked: see Hooks.Mutation.
	DetectMutation bool
	// Heartbeat, if set, is how often the server is sent a small request, to notice a connection that stalls and a process
	// that stands still. If none was answered for three times as long, the watches are opened anew, and what they then
	// deliver of that time has a bound (feed.Delta.After): without heartbeats it looks as if it happened when it arrived.
	Heartbeat time.Duration
	// Epochs are the highest epochs that earlier runs used, by resource: streams without a state of their own begin
	// there (see feed.Batch). A program needs it only if it keeps epochs beyond a checkpoint. Nil means the first.
	Epochs map[schema.GroupResource]int64
	// Log receives what an operator should know: streams that fail and recover; gaps; objects that cannot be decoded or
	// indexed, or that were modified; failing checkpoints. A stream that keeps failing for the same reason is logged once.
	// Nil means slog.Default; slog.New(slog.DiscardHandler) logs nothing.
	Log   *slog.Logger
	Hooks Hooks
}

// Cluster talks to one API server. It is safe for concurrent use.
type Cluster struct {
	client  *request.Client
	opts    Options
	reports reports
	timing  reflector.Timing
	lists   chan struct{}

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before it
	closed  bool
	sources map[*Source]struct{}
	shared  map[sharedKey]*Source // sources of views, by their options
	holds   int                   // calls of Hold that have not returned
	held    []*Source             // sources that start when they have
	running sync.WaitGroup        // the streams' goroutines

	forms       forms
	identity    identity
	heartbeat   heartbeat
	histories   *histories
	checkpoints checkpoints
	mutations   *mutations
}

// NewCluster prepares the connection; it does not contact the server. cfg is copied; its Timeout and rate limits do
// not apply. A browser's or curl's User-Agent is replaced, since API servers indent their responses for those.
func NewCluster(cfg *rest.Config, o Options) (*Cluster, error) {
	client, err := request.New(cfg)
	if err != nil {
		return nil, err
	}
	if o.MaxLists <= 0 {
		o.MaxLists = defaultLists
	}
	timing := reflector.DefaultTiming
	if o.RetryRefused > 0 {
		timing.Refused = o.RetryRefused
	}
	return &Cluster{
		identity: identity{lock: make(chan struct{}, 1)},
		client:   client,
		opts:     o,
		reports:  reports{o.Hooks, newStreamLog(o.Log)},
		timing:   timing,
		lists:    make(chan struct{}, o.MaxLists),
		sources:  map[*Source]struct{}{},
		shared:   map[sharedKey]*Source{},
		forms:    forms{asked: make(chan struct{})},

		heartbeat: heartbeat{every: o.Heartbeat},

		histories: newHistories(o.Epochs),

		checkpoints: checkpoints{owners: map[string]*stream{}},
		mutations:   newMutations(o.DetectMutation || detectFromEnv()),
	}, nil
}

// Run serves every source until ctx ends, then closes them; it returns when their goroutines have ended. It returns
// nil after the end of ctx. A Cluster runs once.
func (c *Cluster) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.close()
	for _, s := range c.open() {
		s.Close()
	}
	c.running.Wait()
	c.client.CloseIdle()
	return c.closeCheckpoints()
}

// RunWhile runs the cluster while do runs; do is the rest of the program:
//
//	err := cluster.RunWhile(ctx, func(ctx context.Context) error {
//		if err := pods.Wait(ctx); err != nil {
//			return err
//		}
//		…
//	})
//
// The context of do ends with ctx, or when Run fails. The cluster serves until do has returned. RunWhile returns the
// error of do or of Run; if ctx has ended and do returns the context's error, RunWhile returns nil.
func (c *Cluster) RunWhile(ctx context.Context, do func(context.Context) error) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	doing, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- c.Run(serving)
	}()
	err := do(doing)
	if doing.Err() != nil && errors.Is(err, context.Canceled) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	stop()
	return errors.Join(err, <-served)
}

func (c *Cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		return errors.New("run cluster: it was run before")
	}
	c.openCheckpoints()
	c.ctx = ctx
	c.running.Go(func() { c.mutations.run(ctx) })
	if c.opts.AuditEvery >= 0 {
		c.running.Go(func() { c.watchForms(ctx) })
	}
	c.running.Go(func() { c.tidy(ctx) })
	if c.opts.Heartbeat > 0 {
		c.running.Go(func() { c.beat(ctx) })
	}
	for s := range c.sources {
		c.launch(s)
	}
	return nil
}

// tidy evicts decoded objects that are no longer read, until ctx ends.
func (c *Cluster) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range c.open() {
			s.tidy()
		}
	}
}

// Hold calls open and delays the start of all sources that are opened meanwhile, by any goroutine, until open has
// returned. Use it when the cluster may be running already: subscriptions made in open miss nothing, and with
// SubscribeOptions.FromCheckpoint they start with the checkpoint's state, not with a later one. open must not wait for a
// source. Hold returns its error.
func (c *Cluster) Hold(open func() error) error {
	c.mu.Lock()
	c.holds++
	c.mu.Unlock()
	defer c.endHold()
	return open()
}

func (c *Cluster) endHold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds > 0 {
		return
	}
	held := c.held
	c.held = nil
	for _, s := range held {
		if !c.closed {
			c.launch(s)
		}
	}
}

// close makes the cluster refuse new sources.
func (c *Cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *Cluster) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// hasRun reports whether Run was called.
func (c *Cluster) hasRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx != nil
}

// open returns the sources that are open.
func (c *Cluster) open() []*Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.sources))
}

// spawn runs f in a goroutine that Run waits for, unless the cluster is closed.
func (c *Cluster) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f)
	}
}

// launch starts the source's streams, or leaves that to endHold; c.mu is held.
func (c *Cluster) launch(s *Source) {
	if c.holds > 0 {
		c.held = append(c.held, s)
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	if !s.started(ctx, cancel) {
		cancel()
		return
	}
	for _, st := range s.streams {
		c.running.Go(func() { st.run(ctx) })
	}
}

// Source opens a source. It starts with Run, or at once if Run is under way.
func (c *Cluster) Source(gvr schema.GroupVersionResource, o SourceOptions) (*Source, error) {
	s, err := newSource(c, gvr, o, raw.Options{})
	if err != nil {
		return nil, err
	}
	if err := c.register(s); err != nil {
		return nil, err
	}
	return s, nil
}

// register adds a source to the cluster.
func (c *Cluster) register(s *Source) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registerLocked(s)
}

// registerLocked is register with c.mu held.
func (c *Cluster) registerLocked(s *Source) error {
	if c.closed {
		return ErrClosed
	}
	c.sources[s] = struct{}{}
	c.checkpoints.claim(s)
	if c.ctx != nil {
		c.launch(s)
	}
	return nil
}

func (c *Cluster) forget(s *Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sources, s)
	c.checkpoints.release(s)
	maps.DeleteFunc(c.shared, func(_ sharedKey, shared *Source) bool { return shared == s })
}

// Wait returns nil once every source that is open now is synced, or the error of the first that cannot be; see
// Source.Wait. If the cluster is closed, or a source is closed before it is synced, it returns ErrClosed.
func (c *Cluster) Wait(ctx context.Context) error {
	c.mu.Lock()
	closed, sources := c.closed, slices.Collect(maps.Keys(c.sources))
	c.mu.Unlock()
	if closed {
		return ErrClosed
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(sources)) // buffered: after an early return, nothing receives
	for _, s := range sources {
		go func() {
			err := s.Wait(waiting)
			if ready, _, _ := s.progress(isSynced); ready && !c.isClosed() {
				err = nil // even if it was closed since
			} else if errors.Is(err, ErrClosed) {
				err = fmt.Errorf("sync %s: %w", s.gvr.GroupResource(), err)
			}
			errs <- err
		}()
	}
	var late error // errors of ctx, with their causes
	for range sources {
		switch err := <-errs; {
		case err == nil:
		case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
			return err
		default:
			late = errors.Join(late, err)
		}
	}
	return late
}

// HTTP returns the cluster's HTTP client and the server's address, for other clients of the same server. The client
// has no timeout.
func (c *Cluster) HTTP() (*http.Client, *url.URL) { return c.client.HTTP() }

// Get requests one JSON document, such as an object or discovery; it works without Run. If the server refuses, the
// error is an apierrors.APIStatus, and ErrNotFound if an API server answered that the object does not exist. It takes at
// most 30 seconds and reads at most 64 MiB.
func (c *Cluster) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	raw, err := c.client.Get(ctx, path, query, maxGet)
	if notFound(err) {
		err = absentError{err}
	}
	return raw, err
}

// absentError is ErrNotFound, with the server's answer.
type absentError struct{ error }

func (e absentError) Is(target error) bool { return target == ErrNotFound }

func (e absentError) Unwrap() error { return e.error }

// ResourcePath returns the path of a resource's collection, or of one object if name is set, for Get. An empty
// namespace means the whole cluster, or a cluster-scoped resource.
func (c *Cluster) ResourcePath(gvr schema.GroupVersionResource, namespace, name string) string {
	return request.Path(gvr, namespace, name)
}
