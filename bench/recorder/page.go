package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/log"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// Kinds of the objects in the journal.
var (
	nodeKind   = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	podKind    = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	deployKind = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	mapKind    = journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
)

// busy generates the journal of a busy cluster: heartbeats, pods, some deployments, and rarely a
// change that the measurement searches for.
type busy struct {
	n    int
	last map[string][]byte
}

// row generates the next change. The number of the change determines its kind.
func (b *busy) row() journal.Row {
	b.n++
	n := b.n
	at := epoch.Add(time.Duration(n) * 30 * time.Millisecond)
	r := journal.Row{Meta: journal.Meta{Op: event.Updated, ResourceVersion: strconv.Itoa(1_000_000 + n), Time: at, At: at}}
	set := func(k journal.Kind, namespace, name, manager string) {
		r.Kind, r.Namespace, r.Name, r.UID, r.Manager = k, namespace, name, k.Resource+namespace+name, manager
	}
	switch {
	case n%100_000 == 777: // some of a million
		set(mapKind, "attic", "settings", "vi")
	case n%10 < 6:
		set(nodeKind, "", "node-"+strconv.Itoa(n%500), "kubelet")
		r.Quiet = true
	case n%10 < 9:
		set(podKind, "team-"+strconv.Itoa(n%40), "web-"+strconv.Itoa(n%3000), "kubelet")
	default:
		set(deployKind, "team-"+strconv.Itoa(n%40), "web-"+strconv.Itoa(n%400), "kube-controller-manager")
	}
	r.After = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{"app":"web","team":"shop"},"managedFields":[{"manager":%q,"operation":"Update","time":%q,"fieldsV1":{"f:status":{"f:beat":{},"f:conditions":{}}}}]},"spec":{"replicas":3,"image":"registry.example.com/shop/web:1.%d"},"status":{"beat":"%d"}}`,
		r.Kind.Kind, r.Name, r.Namespace, r.UID, 1_000_000+n, r.Manager, at.Format(time.RFC3339), n/1000, n)
	if r.Before = b.last[r.UID]; r.Before == nil {
		r.Op, r.Quiet = event.Created, false
	}
	b.last[r.UID] = r.After
	return r
}

// firstPage measures the time of tattler log until its first page, with and without filters.
func firstPage(ctx context.Context, in harness.Input) (harness.Sample, error) {
	path := filepath.Join(in.Dir, "journal.db")
	if err := build(ctx, path, in.Events); err != nil {
		return nil, err
	}
	m := harness.NewMeter()
	for what, o := range map[string]log.Options{
		"newest":    {},
		"kind":      {Options: selection.Options{Types: []string{"configmaps"}}},
		"namespace": {Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"attic"}}}},
		"manager":   {Options: selection.Options{Managers: []string{"vi"}}},
		"operation": {Options: selection.Options{Ops: []string{"created"}, Types: []string{"cm"}}},
		"object":    {Options: selection.Options{Types: []string{"deploy/web-17"}}},
	} {
		var took []float64
		for range 15 {
			o.IO = &terminal.IO{Out: io.Discard, Err: io.Discard, Width: func() int { return 0 }}
			o.Past.Path, o.Limit, o.Output = path, 50, "text"
			start := time.Now()
			if err := log.Run(ctx, &o); err != nil {
				return nil, fmt.Errorf("log by %s: %w", what, err)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
		}
		slices.Sort(took)
		m.Set(what+" ms", took[len(took)/2])
	}
	return m.Sample(), remove(path)
}

// build writes the journal.
func build(ctx context.Context, path string, changes int) (err error) {
	j, err := journal.Open(ctx, path, journal.Options{Cluster: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	b := busy{last: map[string][]byte{}}
	for b.n < changes {
		batch := journal.Batch{Stream: journal.Stream{GroupResource: "all"}, Head: journal.Head{Version: "1", Live: true, At: epoch}}
		for range 1000 { // enough for each rare change
			batch.Rows = append(batch.Rows, b.row())
		}
		if _, err := j.Append(ctx, []journal.Batch{batch}); err != nil {
			return err
		}
	}
	return nil
}
