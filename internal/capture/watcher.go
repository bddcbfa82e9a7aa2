package capture

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Options say what to watch and how to read it.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Types are the command line's TYPE[,TYPE…] [NAME…] or TYPE/NAME…; none is everything. A type with a *
	// is a glob of plural and group, such as deploy* or *.example.com, which kinds that appear match, too.
	Types      []string
	Namespaces Namespaces
	// Labels and Fields are selectors in the server's syntax.
	Labels, Fields string
	// Hidden kinds (events, leases, …) are left out where they are not named, unless Noise is set.
	Noise bool
	// Scopes, if any, stand instead of the fields above. The first that selects a kind decides how all
	// its objects are watched.
	Scopes []Scope
	// Initial also reports what exists at the start, as snapshots.
	Initial bool
	// Only and Ignore narrow the fields of updates.
	Only, Ignore []diff.Pattern

	// Redactor hides values. A resource in its user's rules that the server does not have is an error of Run and
	// Plan, unless it may come: see Watcher.UnfilledRules.
	Redactor *redact.Redactor
	Quiet    *quiet.Set

	// Kept, if set, has batches told instead of changes, and streams resumed from what was kept of them.
	Kept Kept
	// Audited, if set, is called after every audit of a stream: see informer.Hooks. It must be quick.
	Audited func(informer.AuditInfo)
}

// Message is what a Watcher tells: exactly one of its fields is set.
type Message struct {
	Change *change.Change
	// Batch takes the place of Change where Options.Kept is set.
	Batch *Batch
	// Flush is to be closed once every Batch that came before it is kept: a stream is about to be
	// resumed from them.
	Flush chan<- struct{} `json:"-"`
	// Ready comes once: every stream is live, or known not to become so.
	Ready *Ready
	Away  *Away
	// Problem is something that was skipped, or done without, such as an object that cannot be read or
	// a kind that may not be watched any more.
	Problem error
}

// Ready describes what is watched after the start.
type Ready struct {
	// Kinds are live, at least in some of the namespaces; Objects are what they hold.
	Kinds, Objects int
	// Hidden are the kinds left out as noise, by plural name.
	Hidden []string
	// Forbidden may not be watched; Failing do not answer or cannot select what was asked. Both
	// are tried again, and may concern only some of the namespaces.
	Forbidden, Failing []Refusal
	// Missing are the namespaces asked for that do not exist (yet), Absent the objects, as TYPE/NAME,
	// Unmatched the globs that no kind matches (yet), Unfilled as Watcher.UnfilledRules.
	Missing, Absent, Unmatched, Unfilled []string
}

// Refusal is a kind that cannot be watched now, and why.
type Refusal struct {
	Resource Resource
	Err      error
	// Namespaces are set where the kind is watched in others.
	Namespaces []string
}

// Away tells that the API server could not be reached, and when it could be again.
type Away struct {
	// Since is when the first stream was cut, Until when the last was live again; zero while away.
	Since, Until time.Time
	// Silent is true where the server ceased to answer and the connection stayed open: Since is then the last
	// sign of life before the connection was given up.
	Silent bool
	// Err is the latest failure.
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
	budget    int64 // of each feed; 0: the default
	out       chan Message
	wake      chan struct{} // looks at discovery again soon
	started   chan struct{} // closed when every kind has settled

	scopes []Scope

	mu      sync.Mutex
	catalog *Catalog         // of the latest look; nil before the first
	unknown map[string]error // groups that never answered: what they have may have been there
	kinds   map[string]*kind // by group and resource
	// changedGroups are those of CRDs that changed a moment ago.
	changedGroups map[string]bool
	hidden        map[string]bool
	unmatched     []string // globs
	waiting       int      // kinds of the first look that have not settled
	outage        outage

	turn   chan struct{} // holds a token while a change is admitted and handed on, which keeps owners first
	owners *ownership    // guarded by turn; nil where nothing is watched for its owner
}

// New prepares a Watcher; it does not talk to the server.
func New(o Options) (*Watcher, error) {
	scopes := slices.Clone(o.Scopes)
	if len(scopes) == 0 {
		scopes = []Scope{{Types: o.Types, Namespaces: o.Namespaces, Labels: o.Labels, Fields: o.Fields, Noise: o.Noise}}
	}
	for i := range scopes {
		if err := scopes[i].validate(); err != nil {
			return nil, err
		}
	}
	w := &Watcher{
		o: o, scopes: scopes, out: make(chan Message, 64), wake: make(chan struct{}, 1), started: make(chan struct{}),
		turn:  make(chan struct{}, 1),
		kinds: map[string]*kind{}, hidden: map[string]bool{}, changedGroups: map[string]bool{},
	}
	var err error
	if w.cluster, err = informer.NewCluster(o.Config, informer.Options{Hooks: informer.Hooks{Audit: o.Audited}}); err != nil {
		return nil, err
	}
	client, _ := w.cluster.HTTP()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, client)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	w.discovery = d
	w.builder = &builder{
		Builder: change.Builder{Quiet: o.Quiet, Only: o.Only, Ignore: o.Ignore},
		schemas: openapi.New(func(ctx context.Context, path string) ([]byte, error) { return w.cluster.Get(ctx, path, nil) }),
		decode:  jsonmap.DecodePair,
	}
	if o.Kept != nil { // as JSON
		w.builder.decode = jsonmap.DecodeChanged
	}
	return w, nil
}

// Messages is what the watcher tells. The reader must read until it is closed or its context ends.
func (w *Watcher) Messages() <-chan Message { return w.out }

// Run watches until ctx ends, and returns nil then. It returns an error where nothing can be
// watched: the server does not answer, or a type is unknown. A Watcher runs once.
func (w *Watcher) Run(ctx context.Context) error {
	defer close(w.out)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	catalog, err := w.prepare(ctx, w.o.Kept == nil)
	if ctx.Err() != nil {
		return nil // the end on request came first
	}
	if err != nil {
		return err
	}
	w.reconcile(ctx, catalog) // before Run, so that the feeds are there from the first list on
	ended := make(chan error, 1)
	go func() { ended <- w.cluster.Run(ctx) }()
	var both sync.WaitGroup
	both.Go(func() { w.discover(ctx) })
	both.Go(func() { w.follow(ctx) })
	both.Wait()
	for _, k := range w.kinds { // nobody is left to change them
		k.stop()
	}
	return <-ended
}

// prepare asks the server what it has, and finds in that what is asked for; follow adds what named
// objects own.
func (w *Watcher) prepare(ctx context.Context, follow bool) (*Catalog, error) {
	catalog, err := w.fetchCatalog(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.checkRules(catalog); err != nil {
		return nil, err
	}
	for i := range w.scopes {
		s := &w.scopes[i]
		if err := s.resolve(catalog, follow); err != nil {
			return nil, err
		}
		for _, t := range s.targets {
			if t.owned {
				w.owners = newOwnership()
			}
		}
	}
	return catalog, nil
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

// follow announces the start, outages and their ends, and gives up on owners, until ctx ends.
func (w *Watcher) follow(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	started := w.started
	for {
		select {
		case <-ctx.Done():
			return
		case <-started:
			started = nil
			w.announce(ctx)
		case now := <-tick.C:
			w.tick(ctx, now)
		}
	}
}

func (w *Watcher) tick(ctx context.Context, now time.Time) {
	select {
	case w.turn <- struct{}{}:
		if w.owners != nil {
			w.owners.expire(now)
		}
		<-w.turn
	default: // our reader is slow: the next tick will do
	}
	w.mu.Lock()
	away := w.outage.tick(now)
	w.mu.Unlock()
	if away != nil {
		w.send(ctx, Message{Away: away})
	}
	for _, err := range w.blindness() {
		w.send(ctx, Message{Problem: err})
	}
}
