package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/rights"
)

// A daemon with several clusters has a recording for each: a client, a watcher and its streams. They share the journal and
// the sinks, and nothing else: one that cannot be reached, is slow or refuses the daemon waits and retries alone.

// Cluster is one of several clusters that a daemon records into one journal.
type Cluster struct {
	// Name is the cluster's name in events. The journal keeps the streams of a cluster under its name.
	Name string
	// Scopes select what is watched.
	Scopes []capture.Scope
	// Rights are rights that the daemon needs there beside those to watch.
	Rights []rights.Right
	// Connect returns the configuration of the client. It is called before each attempt to watch, until one succeeds, so
	// that a kubeconfig can be repaired while the daemon runs.
	Connect func() (*rest.Config, error)
	// Explain completes an error for people; nil leaves errors as they are.
	Explain func(error) error
	// OnMessage, if set, receives the watcher's messages other than changes. It must not block.
	OnMessage func(capture.Message)
}

// recording records one cluster.
type recording struct {
	*daemon
	Cluster
	key      string // see journal.ClusterKey
	log      *slog.Logger
	redactor *redact.Redactor // one of several has its own: it learns the names of the cluster's kinds
	state    state
	asked    chan struct{} // receives an element when the status was requested
}

// newRecordings returns the recordings of a daemon that is not open yet.
func (d *daemon) newRecordings() {
	clusters := d.o.Clusters
	if d.several = len(clusters) > 0; !d.several {
		clusters = []Cluster{{
			Name: d.o.Cluster, Scopes: d.o.Scopes, Rights: d.o.Rights, Explain: d.o.Explain, OnMessage: d.o.OnMessage,
			Connect: func() (*rest.Config, error) { return d.o.Config, nil },
		}}
	}
	for _, c := range clusters {
		r := &recording{daemon: d, Cluster: c, log: d.o.Log, asked: make(chan struct{}, 1)}
		if d.several {
			r.log = d.o.Log.With("cluster", c.Name)
		}
		d.recordings = append(d.recordings, r)
	}
}

// openRecordings prepares the recordings once the journal is open.
func (d *daemon) openRecordings(ctx context.Context) error {
	key, err := LoadKey(d.o.Key)
	if err != nil {
		return err
	}
	for _, r := range d.recordings {
		r.redactor = d.redactor
		if d.several {
			if r.redactor, err = redact.New(key, d.o.Redact); err != nil {
				return err
			}
		}
		r.key = d.journal.ClusterKey(r.Name)
	}
	if d.several {
		return d.noteLeftClusters(ctx)
	}
	r := d.recordings[0]
	if r.key == "" {
		return nil
	}
	known, err := d.journal.Clusters(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's clusters: %w", err)
	}
	if slices.Contains(known, r.Name) { // recorded together with others before
		return nil
	}
	r.key = ""
	if err := d.patiently(ctx, func() error { return d.sameCluster(ctx) }); err != nil {
		return err
	}
	d.o.Log.Warn("the journal was created under another cluster name, which events keep", "journal", d.journal.Cluster(), "now", r.Name)
	return nil
}

// noteLeftClusters logs the clusters of the journal that are no longer configured.
func (d *daemon) noteLeftClusters(ctx context.Context) error {
	known, err := d.journal.Clusters(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's clusters: %w", err)
	}
	known = slices.DeleteFunc(known, func(name string) bool {
		return slices.ContainsFunc(d.recordings, func(r *recording) bool { return r.Name == name })
	})
	if len(known) > 0 {
		d.o.Log.Warn("clusters of the journal are no longer configured; their history stays", "clusters", strings.Join(known, ", "))
	}
	return nil
}

// capture records all clusters until ctx ends. A daemon of one cluster ends if that cannot be watched at the start, for a
// reason that does not pass.
func (d *daemon) capture(ctx context.Context) error {
	if !d.several {
		return d.recordings[0].captureAlways(ctx)
	}
	var all sync.WaitGroup
	for _, r := range d.recordings {
		all.Go(func() { _ = r.captureAlways(ctx) }) // it returns nil
	}
	all.Wait()
	return nil
}

// captureAlways is capture that retries a failed start until ctx ends. The only cluster is retried while that may help.
func (r *recording) captureAlways(ctx context.Context) error {
	wait := firstWait
	var said complaint
	for ctx.Err() == nil {
		err := r.capture(ctx)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the daemon ends
		}
		what := waitsFor(err)
		if !r.several && what == "" {
			return err
		}
		full := r.freeSpace(err)
		if r.Explain != nil {
			err = r.Explain(err)
		}
		if said.due(what) { // the status has it, too
			r.log.Error("the cluster cannot be watched; trying again until it can", "error", err)
		}
		if full {
			r.state.wrote(journal.Appended{}, err)
		} else {
			r.state.failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
	return nil
}

// identityTimeout bounds the request for a cluster's identity.
const identityTimeout = 30 * time.Second

// connect returns the client's configuration. It fails if the server is known under the name of another cluster: its
// objects would be recorded twice or, if two contexts were exchanged, as deleted.
func (r *recording) connect(ctx context.Context) (*rest.Config, error) {
	config, err := r.Connect()
	if err != nil || !r.several {
		return config, err
	}
	cluster, err := informer.NewCluster(config, informer.Options{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	identity, err := cluster.Identity(ctx)
	if err != nil || identity == "" { // unknown, if the namespace kube-system must not be read
		return config, err
	}
	was, err := r.journal.Identity(ctx, r.key)
	if err != nil {
		return nil, fmt.Errorf("read the journal's cluster: %w", err)
	}
	known, err := r.journal.Clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the journal's clusters: %w", err)
	}
	for _, name := range known {
		other, err := r.journal.Identity(ctx, r.journal.ClusterKey(name))
		if err != nil {
			return nil, fmt.Errorf("read the journal's cluster: %w", err)
		}
		if name != r.Name && other == identity && was != identity {
			return nil, fmt.Errorf("this is the cluster that the journal records as %q: correct the context of %q, or name it %q", name, r.Name, name)
		}
	}
	if name, taken := r.identities.take(identity, r.Name); taken {
		return nil, fmt.Errorf("this is the same cluster as %q: remove one of the two from clusters", name)
	}
	return config, nil
}

// identities are the identities of the clusters that are recorded, with their names.
type identities struct {
	mu sync.Mutex
	of map[string]string
}

// take notes who has an identity; taken if another cluster has it.
func (i *identities) take(identity, name string) (by string, taken bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if by, ok := i.of[identity]; ok && by != name {
		return by, true
	}
	if i.of == nil {
		i.of = map[string]string{}
	}
	maps.DeleteFunc(i.of, func(_, by string) bool { return by == name })
	i.of[identity] = name
	return name, false
}

// forgetClusters drops the last states of clusters that are no longer configured, which would otherwise stay live for ever.
// Their history stays.
func (d *daemon) forgetClusters(ctx context.Context, all []journal.StreamHead) error {
	if !slices.ContainsFunc(d.recordings, func(r *recording) bool { return r.state.watching() != nil }) {
		return nil
	}
	for _, s := range all {
		if slices.ContainsFunc(d.recordings, func(r *recording) bool { return r.key == s.Stream.Cluster }) {
			continue
		}
		if err := d.journal.Forget(ctx, s.Stream); err != nil {
			return err
		}
	}
	return nil
}

// fill adds the state of a recording.
func (r *recording) fill(to *control.Status) {
	if !r.several {
		r.state.fill(to)
		return
	}
	var own control.Status
	r.state.fill(&own)
	c := control.Cluster{Name: r.Name, Settled: own.Settled, Away: own.Away, AwaySince: own.AwaySince, RightsError: own.RightsError, UnfilledRules: own.UnfilledRules}
	for i := range own.Streams {
		own.Streams[i].Cluster = r.Name
	}
	for i := range own.Audits {
		own.Audits[i].Cluster = r.Name
	}
	for i := range own.MissingRights {
		own.MissingRights[i].Cluster = r.Name
	}
	to.Clusters = append(to.Clusters, c)
	to.MissingRights = append(to.MissingRights, own.MissingRights...)
	if c.RightsError != "" && to.RightsError == "" {
		to.RightsError = c.Name + ": " + c.RightsError
	}
	to.Streams, to.Audits = append(to.Streams, own.Streams...), append(to.Audits, own.Audits...)
	j, o := &to.Journal, &own.Journal
	j.Recorded, j.Quiet, j.Duplicates, j.Commits = j.Recorded+o.Recorded, j.Quiet+o.Quiet, j.Duplicates+o.Duplicates, j.Commits+o.Commits
	j.Failures += o.Failures
	if !o.WritingSince.IsZero() && (j.WritingSince.IsZero() || o.WritingSince.Before(j.WritingSince)) {
		j.WritingSince = o.WritingSince
	}
	if o.ErrorAt.After(j.ErrorAt) {
		j.Error, j.ErrorAt = o.Error, o.ErrorAt
	}
	if c.Away != "" && to.Away == "" {
		to.Away, to.AwaySince = c.Name+": "+c.Away, c.AwaySince
	}
	to.Settled = to.Settled && (c.Settled || c.Away != "")
}
