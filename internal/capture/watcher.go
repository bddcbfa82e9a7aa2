package capture

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/openapi"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Options select what to watch and how.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Scopes select kinds and objects; none means everything. The first scope that selects a kind applies to all its objects.
	Scopes []Scope
	// Initial also reports the objects that exist at the start, as snapshots. Those of named kinds, which may own others,
	// are always reported.
	Initial bool
	// Owned also watches the kinds whose objects named objects own.
	Owned bool
	// Objects makes the changes of batches contain their objects, decoded.
	Objects bool

	// Redactor redacts values. If its user rules name a resource that the server does not have, Run and Plan
	// fail, unless the resource may still appear: see Watcher.UnfilledRules.
	Redactor *redact.Redactor
	Quiet    *quiet.Set

	// Kept, if set, is the state from which streams resume. The consumer then keeps every batch, and Initial is implied.
	Kept Kept
	// Audited, if set, is called after every audit of a stream; see informer.Hooks. It must return quickly.
	Audited func(informer.AuditInfo)
}

// Message is one message of a Watcher: exactly one field is set.
type Message struct {
	Batch *Batch
	// Flush is sent if Options.Kept is set, and closed by the reader once every earlier Batch is kept: a stream is about to be resumed from
	// them.
	Flush chan<- struct{} `json:"-"`
	// Ready is sent once, when every stream is live or was refused.
	Ready *Ready
	Away  *Away
	// Problem reports something skipped or missing, such as an object that cannot be decoded or a kind that may
	// no longer be watched.
	Problem error
}

// Ready describes what is watched after the start.
type Ready struct {
	// Kinds counts the kinds that are live, at least in some namespaces, and Objects their objects.
	Kinds, Objects int
	// Hidden are the kinds left out as noise, by plural name.
	Hidden []string
	// Forbidden kinds may not be watched; Failing ones do not answer or reject the selector. Both are retried,
	// and may concern only some of the namespaces.
	Forbidden, Failing []Refusal
	// Missing are requested namespaces that do not exist (yet), Absent requested objects as TYPE/NAME,
	// Unmatched globs that match no kind (yet); Unfilled is as in Watcher.UnfilledRules.
	Missing, Absent, Unmatched, Unfilled []string
}

// Refusal is a kind that cannot be watched now, with the reason.
type Refusal struct {
	Resource Resource
	Err      error
	// Namespaces are set if the kind is watched in other namespaces.
	Namespaces []string
}

// Away reports an outage of the API server: first its start, then its end.
type Away struct {
	// Since is when the first stream broke, Until when the last one recovered; Until is zero during the outage.
	Since, Until time.Time
	// Silent is set if the server stopped answering while the connection stayed open. Since is then the last
	// sign of life before that.
	Silent bool
	// Paused is set if this process did not run, for example because the machine slept.
	Paused bool
	// Err is the latest failure; nil if Paused is set, and for a stall that the connection outlived.
	Err error
	// Streams counts the broken streams, Relisted those that had to list again: their changes are net changes.
	Streams, Relisted int
}

// Watcher watches a cluster: it runs discovery and one source per kind or name, and sends their changes in batches.
//
//	Ordering         Changes of one object are in order. There is no order between kinds.
//	What may be      Nothing, except what a gap change announces.
//	skipped
//	Slow consumers   Block the feeds, which fold into net changes beyond their budget.
//	After close      Run closes Messages when it returns.
type Watcher struct {
	o         Options
	cluster   *informer.Cluster
	discovery discovery.DiscoveryInterfaceWithContext
	builder   *builder
	budget    int64 // of each feed; 0: the default
	out       chan Message
	wake      chan struct{} // requests an early poll of discovery
	started   chan struct{} // closed when every kind has started

	scopes []Scope

	mu      sync.Mutex
	kept    []KeptKind       // of Options.Kept, when the Watcher was made; Held until they end
	catalog *Catalog         // of the latest poll; nil before the first
	unknown map[string]error // groups that never answered: their objects may be old
	kinds   map[string]*kind // by group and resource
	// changedGroups are the groups of recently changed CRDs.
	changedGroups map[string]bool
	hidden        map[string]bool
	unmatched     []string // globs
	waiting       int      // kinds of the first poll that have not started
	outage        outage
	stalls        []Away // to report
}

// New prepares a Watcher; it does not talk to the server.
func New(o Options) (*Watcher, error) {
	scopes := slices.Clone(o.Scopes)
	if len(scopes) == 0 {
		scopes = []Scope{{}}
	}
	for i := range scopes {
		if err := scopes[i].validate(); err != nil {
			return nil, err
		}
	}
	o.Initial = o.Initial || o.Kept != nil
	var kept []KeptKind
	if o.Kept != nil {
		kept = o.Kept.Kinds()
	}
	w := &Watcher{
		o: o, scopes: scopes, kept: kept, out: make(chan Message, 64), wake: make(chan struct{}, 1), started: make(chan struct{}),
		kinds: map[string]*kind{}, hidden: map[string]bool{}, changedGroups: map[string]bool{},
	}
	var err error
	engine := informer.Options{
		Heartbeat: heartbeat, Log: slog.New(slog.DiscardHandler),
		Hooks: informer.Hooks{Audit: o.Audited, Stalled: w.stalled},
	}
	if o.Kept != nil {
		engine.Epochs = o.Kept.Epochs()
	}
	if w.cluster, err = informer.NewCluster(o.Config, engine); err != nil {
		return nil, err
	}
	client, _ := w.cluster.HTTP()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, client)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	w.discovery = d
	w.builder = &builder{
		Builder: change.Builder{Quiet: o.Quiet},
		schemas: openapi.New(w.fetchSchemas),
	}
	return w, nil
}

// Messages returns the watcher's messages. The reader must read until the channel closes or its context ends.
func (w *Watcher) Messages() <-chan Message { return w.out }

// Run watches until ctx ends, then returns nil. It fails if nothing can be watched: the server does not answer,
// or a type is unknown. A Watcher runs once.
func (w *Watcher) Run(ctx context.Context) error {
	defer close(w.out)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	catalog, err := w.prepare(ctx)
	if ctx.Err() != nil {
		return nil // stopping is not a failure
	}
	if err != nil {
		return err
	}
	w.reconcile(ctx, catalog) // before Run, so that the feeds exist before the first list
	ended := make(chan error, 1)
	go func() { ended <- w.cluster.Run(ctx) }()
	var both sync.WaitGroup
	both.Go(func() { w.discover(ctx) })
	both.Go(func() { w.follow(ctx) })
	both.Wait()
	for _, k := range w.kinds { // the goroutines that change them have ended
		k.stop()
	}
	return <-ended
}

// prepare runs discovery and resolves the scopes.
func (w *Watcher) prepare(ctx context.Context) (*Catalog, error) {
	catalog, err := w.fetchCatalog(ctx)
	if err != nil {
		return nil, err
	}
	known := catalog.with(w.goneKinds(catalog, false))
	if err := w.checkRules(known); err != nil {
		return nil, err
	}
	for i := range w.scopes {
		if err := w.scopes[i].resolve(known, w.o.Owned); err != nil {
			return nil, err
		}
	}
	return catalog, nil
}

// send sends a message; false if ctx ended first.
func (w *Watcher) send(ctx context.Context, m Message) bool {
	select {
	case w.out <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow announces the start and outages until ctx ends.
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
	w.mu.Lock()
	stalls := w.stalls
	w.stalls = nil
	if w.outage.unsure() {
		for _, k := range w.kinds {
			for _, st := range k.status() {
				w.outage.alive(st.LastCurrent)
			}
		}
	}
	away := w.outage.tick(now)
	w.mu.Unlock()
	for i := range stalls {
		w.send(ctx, Message{Away: &stalls[i]})
	}
	if away != nil {
		w.send(ctx, Message{Away: away})
	}
	for _, err := range w.blindness() {
		w.send(ctx, Message{Problem: err})
	}
}
