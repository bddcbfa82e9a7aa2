package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/journal"
)

// The API server compacts etcd at an interval that it does not publish. But a version of a known age shows whether the
// history reaches back that far: a list at exactly that version fails once it was compacted. The journal has versions with
// the time at which they were current.

// ages are the ages of the versions that are tried.
var ages = []time.Duration{
	time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 8 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 12 * time.Hour,
}

// version is a resource version and when it was current.
type version struct {
	text string
	at   time.Time
}

// history measures how far back the server's history reaches now.
func (x *examined) history(ctx context.Context) {
	ctx, cancel := x.host.within(ctx, checkHistory, x.name, historyTimeout)
	defer cancel()
	unknown := func(why string) {
		x.add(Server, "history", Note, "how long an absence is harmless is unknown: "+why,
			"The API server compacts etcd's history at an interval that it does not publish. An absence that is shorter loses nothing.",
			"Ask again when tattler run has recorded for an hour: then its versions show how far the history reaches.")
	}
	known, err := x.versions(ctx)
	if err != nil || len(known) == 0 {
		unknown("the journal has no versions of a known age")
		return
	}
	x.measure(ctx, known, unknown)
}

// measure asks for versions, the newest first, until one is gone.
func (x *examined) measure(ctx context.Context, known []version, unknown func(why string)) {
	k := x.allowed[0]
	var kept, gone time.Duration
	for _, v := range known { // the newest first
		q := url.Values{"limit": {"1"}, "fieldSelector": {none(k)}, "resourceVersion": {v.text}, "resourceVersionMatch": {"Exact"}}
		resp, _, err := x.get(ctx, collection(k)+"?"+q.Encode(), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
		age := x.host.now().Sub(v.at)
		if err == nil {
			kept = age
			continue
		}
		if resp == nil || resp.code != http.StatusGone {
			unknown(x.cause(err))
			return
		}
		gone = age
		break
	}
	const meaning = "This was measured now. It is shorter right after a compaction, whose interval the API server does not publish; and its watch caches can hold less, such as after its restart. What is missed then becomes a net change behind a gap."
	switch {
	case kept == 0 && gone <= 2*time.Minute:
		x.add(Server, "history", Warning, "the server's history reaches back less than "+upTo(gone), meaning, "Raise --etcd-compaction-interval of the API server, so that a restart of the daemon misses nothing.")
	case kept == 0:
		x.add(Server, "history", Note, fmt.Sprintf("the server's history reaches back less than %s; the journal has no newer version", upTo(gone)), meaning, "")
	case gone == 0:
		x.add(Server, "history", OK, fmt.Sprintf("the server's history reaches back at least %s, the oldest version that the journal knows", span(kept)), meaning, "")
	default:
		x.add(Server, "history", OK, fmt.Sprintf("the server's history reaches back at least %s, and less than %s", span(kept), upTo(gone)), meaning, "")
	}
}

// versions returns versions of several ages from the journal, the newest first.
func (x *examined) versions(ctx context.Context) (all []version, err error) {
	if _, err := os.Stat(x.journal); err != nil {
		return nil, err
	}
	r, err := past.OpenReader(ctx, x.journal)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	clusters, err := x.own(ctx, r)
	if err != nil {
		return nil, err
	}
	now, epoch := x.host.now(), int64(0)
	for _, age := range ages {
		seq, err := r.SeqAt(ctx, now.Add(-age))
		if err != nil {
			return nil, err
		}
		q := journal.Query{Clusters: clusters, Before: seq + 1, Quiet: true, Ops: []event.Op{event.Created, event.Updated}, Limit: 1}
		for e, err := range r.Rows(ctx, q) {
			if err != nil {
				return nil, err
			}
			v := version{e.ResourceVersion, e.At}
			if epoch == 0 {
				epoch = max(e.Epoch, 1)
			}
			// What a list found was written before it was seen, and other epochs have other versions.
			if e.Since.IsZero() && max(e.Epoch, 1) == epoch && now.Sub(v.at) < 24*time.Hour && (len(all) == 0 || all[len(all)-1] != v) {
				all = append(all, v)
			}
		}
	}
	return all, nil
}

// own selects the changes of the examined cluster in a journal of several: another cluster has other versions. It is nil if
// the journal has one cluster.
func (x *examined) own(ctx context.Context, r *journal.Reader) ([]string, error) {
	known, err := r.Clusters(ctx)
	if err != nil || len(known) < 2 {
		return nil, err
	}
	name, _, err := x.setup.ClusterName(ctx, x.cluster)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, name) { // the journal has its earlier name
		name = r.Cluster()
	}
	return []string{name}, nil
}
