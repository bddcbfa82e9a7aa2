package capture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/capture/redact"
)

// Options say what to watch and how to read it.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Types are the command line's TYPE[,TYPE…] [NAME…] or TYPE/NAME…; none is everything.
	Types      []string
	Namespaces Namespaces
	// Labels and Fields are selectors in the server's syntax.
	Labels, Fields string
	// Hidden kinds (events, leases, …) are left out where no type is named, unless Noise is set.
	Noise bool
	// Initial also reports what exists at the start, as snapshots.
	Initial bool
	// Only and Ignore narrow the fields of updates.
	Only, Ignore []diff.Pattern

	Redactor *redact.Redactor
	Quiet    *quiet.Set
}

// Message is what a Watcher tells: exactly one of its fields is set.
type Message struct {
	Change *Change
	// Ready comes once: every stream is live, or known not to become so.
	Ready *Ready
	Away  *Away
	// Problem is something that was skipped and counted, such as an object that cannot be read.
	Problem error
}

// Ready describes what is watched after the start.
type Ready struct {
	Kinds, Objects int
	// Hidden are the kinds left out as noise, by plural name.
	Hidden []string
	// Forbidden may not be watched; Failing do not answer or cannot select what was asked, and
	// are tried again.
	Forbidden, Failing []Refusal
	// Missing are the namespaces asked for that do not exist (yet), where nothing was found.
	Missing []string
}

// Refusal is a kind that cannot be watched now, and why.
type Refusal struct {
	Resource Resource
	Err      error
}

// Away tells that the API server could not be reached, and when it could be again.
type Away struct {
	// Since is when the last answer came, Until when all streams were live again; zero while away.
	Since, Until time.Time
	// Err is the first failure.
	Err error
	// Streams were cut; Relisted of them had to be listed: their changes are net changes.
	Streams, Relisted int
}

// Watcher follows a cluster: discovery, one source per kind and name, and the changes they give.
//
//	Ordering         Changes of one object come in order. Between kinds there is none.
//	What may be      Nothing, but what a gap Change announces.
//	skipped
//	Slow consumers   Hold back the feeds, which fold into net changes beyond their budget.
//	After close      Messages is closed when Run has returned.
type Watcher struct {
	o         Options
	cluster   *informer.Cluster
	discovery discovery.DiscoveryInterfaceWithContext
	builder   *builder
	out       chan Message
	wake      chan struct{} // looks at discovery again soon
	started   chan struct{} // closed when every kind has settled

	mu      sync.Mutex
	unknown map[string]error // groups that never answered: what they have may have been there
	targets []target         // nil: everything
	pinned  map[string]string
	kinds   map[string]*kind // by group and resource
	hidden  map[string]bool
	ready   bool
	waiting int // kinds that have not settled, before ready
	outage  outage

	ownersMu sync.Mutex // held while an admitted change is handed on, which keeps owners first
	owners   *ownership
}

// kind is a resource that is being watched.
type kind struct {
	target
	// appeared while watching: what its first list holds was created.
	appeared bool
	sources  []*informer.Source
	cancel   context.CancelFunc
	streams  map[streamKey]*streamState
	done     sync.WaitGroup
	settled  bool
	silent   bool // only wakes discovery
}

// New prepares a Watcher; it does not talk to the server.
func New(o Options) (*Watcher, error) {
	if err := o.Namespaces.Validate(); err != nil {
		return nil, err
	}
	w := &Watcher{
		o: o, out: make(chan Message, 64), wake: make(chan struct{}, 1), started: make(chan struct{}),
		kinds: map[string]*kind{}, hidden: map[string]bool{}, pinned: map[string]string{},
	}
	var err error
	if w.cluster, err = informer.NewCluster(o.Config, informer.Options{}); err != nil {
		return nil, err
	}
	client, _ := w.cluster.HTTP()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, client)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	w.discovery = d
	w.builder = &builder{
		schemas: openapi.New(func(ctx context.Context, path string) ([]byte, error) { return w.cluster.Get(ctx, path, nil) }),
		quiet:   o.Quiet, only: o.Only, ignore: o.Ignore,
	}
	return w, nil
}

// Messages is what the watcher tells. The reader must read until it is closed or its context ends.
func (w *Watcher) Messages() <-chan Message { return w.out }

// Run watches until ctx ends, and returns nil then. It returns an error where nothing can be
// watched: the server does not answer, or a type is unknown.
func (w *Watcher) Run(ctx context.Context) error {
	defer close(w.out)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	catalog, err := w.fetchCatalog(ctx)
	if err != nil {
		return err
	}
	if w.targets, err = catalog.targets(w.o.Types); err != nil {
		return err
	}
	if err := w.checkSelectors(); err != nil {
		return err
	}
	for _, t := range w.targets {
		if t.owned {
			w.owners = newOwnership()
		}
	}
	done := make(chan error, 1)
	go func() { done <- w.cluster.Run(ctx) }()
	w.reconcile(ctx, catalog)
	w.follow(ctx)
	cancel()
	w.stopAll()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// fetchCatalog bounds discovery: a server that accepts and says nothing must not hang the start.
func (w *Watcher) fetchCatalog(ctx context.Context) (*Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return FetchCatalog(ctx, w.discovery)
}

func (w *Watcher) checkSelectors() error {
	for _, t := range w.targets {
		if len(t.names) > 0 && (w.o.Labels != "" || w.o.Fields != "") {
			return usage("a name cannot be combined with a selector")
		}
	}
	return nil
}

// send hands a message on; it gives up when ctx ends.
func (w *Watcher) send(ctx context.Context, m Message) bool {
	select {
	case w.out <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Watcher) stopAll() {
	w.mu.Lock()
	kinds := w.kinds
	w.kinds = map[string]*kind{}
	w.mu.Unlock()
	for _, k := range kinds {
		k.stop()
	}
}

func (k *kind) stop() {
	k.cancel()
	for _, s := range k.sources {
		s.Close()
	}
	k.done.Wait()
}
