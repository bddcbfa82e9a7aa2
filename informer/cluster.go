package informer

import (
	"context"
	"errors"
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
	// defaultLists is how many lists run at once: enough to be quick, and few enough for the API
	// server's default priority level of a human's workload.
	defaultLists = 8
	getTimeout   = 30 * time.Second
	// maxGet bounds the answer of Get: OpenAPI documents have some megabytes.
	maxGet = 64 << 20
)

// Options tune a Cluster. The zero value is usable.
type Options struct {
	// MaxLists bounds the lists under way at once, and the streams that ask, before they resume, whether the
	// server's history is what it was; 0 means 8.
	MaxLists int
	// RetryRefused is the wait after an answer that only an administrator can change, such as 403;
	// 0 means a minute.
	RetryRefused time.Duration
	// Scheme tells the kinds of Go types that are not of k8s.io/api, for For.
	Scheme *runtime.Scheme
	// Checkpoint is a directory to keep the state of every source in, so that after a restart it is
	// served at once and only what changed is asked for. It is made where it does not exist. One
	// process at a time has it. What another API server's address was asked for is not served, nor
	// what was kept in another way. A directory that cannot be used, such as one that another process has,
	// ends nothing: the cluster runs without it, and Hooks.Checkpoint and Status.Checkpoint say why. Empty:
	// none.
	Checkpoint string
	// AuditEvery is how often each stream is audited: its objects' UIDs and versions are compared with a
	// list of metadata that is read beside the watch, and a stream that has missed something is listed
	// anew. An audit also follows a resumption from disk and an outage, and a whole list follows when the
	// kind is served in another form, so that contents that changed at the same version are noticed. 0
	// means 6 hours, more or less; negative: there are no audits.
	AuditEvery time.Duration
	// DetectMutation panics once it finds that somebody wrote to a shared object (of Informer.Shared, or an index
	// function's), with the object, the place and the readers that had it. It is for tests: it costs memory and up to
	// a tenth of a CPU. The environment variable KUBE_CACHE_MUTATION_DETECTOR=true, which is client-go's, turns it on
	// as well. Otherwise only a few shared objects are checked: see Hooks.Mutation.
	DetectMutation bool
	Hooks          Hooks
}

// Cluster talks to one API server. It is safe for concurrent use.
type Cluster struct {
	client *request.Client
	opts   Options
	timing reflector.Timing
	lists  chan struct{}

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before it
	closed  bool
	sources map[*Source]struct{}
	shared  map[sharedKey]*Source // of views, by what they ask for
	holds   int                   // calls of Hold that have not returned
	held    []*Source             // that start when they have
	running sync.WaitGroup        // the streams' goroutines

	forms       forms
	identity    identity
	checkpoints checkpoints
	mutations   *mutations
}

// NewCluster prepares the connection; it does not talk to the server. cfg is copied; its Timeout
// and rate limits do not apply. A User-Agent of a browser or of curl is changed, since API servers
// indent their answers for those.
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
		client:  client,
		opts:    o,
		timing:  timing,
		lists:   make(chan struct{}, o.MaxLists),
		sources: map[*Source]struct{}{},
		shared:  map[sharedKey]*Source{},
		forms:   forms{asked: make(chan struct{})},

		checkpoints: checkpoints{owners: map[string]*stream{}},
		mutations:   newMutations(o.DetectMutation || detectByEnv()),
	}, nil
}

// Run serves every source until ctx ends, then closes them; it returns when their goroutines are
// gone. An end on request is no error. A Cluster runs once.
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

// RunWhile runs the cluster while do runs, which is a whole program:
//
//	err := cluster.RunWhile(ctx, func(ctx context.Context) error {
//		if err := pods.Wait(ctx); err != nil {
//			return err
//		}
//		…
//	})
//
// The context of do ends with ctx, or when Run fails. The cluster serves until do has returned. RunWhile returns what
// failed, in do or in Run; an end on request is no error: nil where ctx has ended and do returns its error.
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
		return errors.New("run cluster: it runs or ran already")
	}
	c.openCheckpoints()
	c.ctx = ctx
	c.running.Go(func() { c.mutations.run(ctx) })
	if c.opts.AuditEvery >= 0 {
		c.running.Go(func() { c.watchForms(ctx) })
	}
	c.running.Go(func() { c.tidy(ctx) })
	for s := range c.sources {
		c.launch(s)
	}
	return nil
}

// tidy lets go of what nobody reads any more, until ctx ends.
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

// Hold runs open while the cluster may be running already; sources that are opened meanwhile, by anybody, start when it
// has returned. So what is subscribed in open misses nothing, not even with SubscribeOptions.FromCheckpoint: what it
// starts with is the state of the checkpoint, and not what became of that before it was subscribed. Open must not wait
// for a source. Hold returns its error.
func (c *Cluster) Hold(open func() error) error {
	c.mu.Lock()
	c.holds++
	c.mu.Unlock()
	defer c.release()
	return open()
}

func (c *Cluster) release() {
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

// close refuses new sources.
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

// hasRun tells whether Run was called.
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

// spawn runs f in a goroutine that Run waits for; it does nothing once the cluster is closed.
func (c *Cluster) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f)
	}
}

// launch starts the source's streams, or leaves that to release; c.mu is held.
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

// relaunch runs a stream again, unless its source or the cluster is closed.
func (c *Cluster) relaunch(st *stream) bool {
	c.mu.Lock() // Run must not wait for its goroutines before this one is counted
	defer c.mu.Unlock()
	ctx := st.source.running()
	if c.closed || ctx == nil {
		return false
	}
	c.running.Go(func() { st.run(ctx) })
	return true
}

// Source opens a source; it starts with Run, or at once where Run is under way.
func (c *Cluster) Source(gvr schema.GroupVersionResource, o SourceOptions) (*Source, error) {
	s, err := newSource(c, gvr, o, raw.Options{})
	if err != nil {
		return nil, err
	}
	if err := c.take(s); err != nil {
		return nil, err
	}
	return s, nil
}

// take takes a source in.
func (c *Cluster) take(s *Source) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(s)
}

// add is take; c.mu is held.
func (c *Cluster) add(s *Source) error {
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

// WaitForSync returns nil once every source that is open now is synced, or the error of the first
// that cannot be; see Source.Wait. Once the cluster is closed it returns ErrClosed.
func (c *Cluster) WaitForSync(ctx context.Context) error {
	c.mu.Lock()
	closed, sources := c.closed, slices.Collect(maps.Keys(c.sources))
	c.mu.Unlock()
	if closed {
		return ErrClosed
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(sources)) // room for those that nobody waits for any more
	for _, s := range sources {
		go func() { errs <- s.Wait(waiting) }()
	}
	var late error // of ctx, with the causes
	for range sources {
		switch err := <-errs; {
		case err == nil:
		case errors.Is(err, ErrClosed) && !c.isClosed(): // one that was closed meanwhile is not open
		case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
			return err
		default:
			late = errors.Join(late, err)
		}
	}
	return late
}

// HTTP returns the client that the cluster's requests go through, and the server's address, for
// other clients of the same server. The client has no time limit.
func (c *Cluster) HTTP() (*http.Client, *url.URL) { return c.client.HTTP() }

// Get asks for one JSON document, such as an object or discovery; it works without Run. A refusal
// of the server is an apierrors.APIStatus. It takes at most 30 seconds and 64 MiB.
func (c *Cluster) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	return c.client.Get(ctx, path, query, maxGet)
}

// ResourcePath is the path of a resource's collection, or of one object where name is set, for Get.
// An empty namespace means the whole cluster, or a resource without namespaces.
func (c *Cluster) ResourcePath(gvr schema.GroupVersionResource, namespace, name string) string {
	return request.Path(gvr, namespace, name)
}
