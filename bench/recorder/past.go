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
	"github.com/tattler-dev/tattler/internal/cli/blame"
	"github.com/tattler-dev/tattler/internal/cli/diff"
	"github.com/tattler-dev/tattler/internal/cli/get"
	"github.com/tattler-dev/tattler/internal/cli/log"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

const (
	// pastNamespace is how many pods a namespace has.
	pastNamespace = 2000
	// pastVersions is how many versions the object with the longest history has.
	pastVersions = 5000
)

// large makes the journal of a large cluster: pods in namespaces of 2,000, each with ten changes of its status, and
// one Deployment that changes all the time.
type large struct {
	n, objects, every int
	last              map[string][]byte
}

func (l *large) row() journal.Row {
	l.n++
	n := l.n
	at := epoch.Add(time.Duration(n) * 30 * time.Millisecond)
	r := journal.Row{Meta: journal.Meta{Op: event.Updated, ResourceVersion: strconv.Itoa(1_000_000 + n), Time: at, At: at, Manager: "kubelet"}}
	if n%l.every == 0 {
		r.Kind, r.Namespace, r.Name = deployKind, "team-0", "busy"
		r.Manager = "operator"
	} else {
		pod := n % l.objects
		r.Kind, r.Namespace, r.Name = podKind, "team-"+strconv.Itoa(pod/pastNamespace), "web-"+strconv.Itoa(pod)
	}
	r.UID = r.Kind.Resource + r.Name
	r.After = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web","team":"shop"},"managedFields":[{"manager":"helm","operation":"Update","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}}}}}}}}}},{"manager":%q,"operation":"Update","subresource":"status","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:beat":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{},"f:message":{}}}}}}]},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"registry.example.com/shop/web:1.0","resources":{"limits":{"cpu":"500m","memory":"256Mi"}}}],"serviceAccountName":"web","dnsPolicy":"ClusterFirst","restartPolicy":"Always"}}},"status":{"beat":"%d","conditions":[{"type":"Ready","status":"True","message":"seen %d"}]}}`,
		r.Kind.Kind, r.Name, r.Namespace, r.UID, 1_000_000+n, r.Manager, at.Format(time.RFC3339), n, n)
	if r.Before = l.last[r.UID]; r.Before == nil {
		r.Op, r.Manager = event.Created, "helm"
	}
	l.last[r.UID] = r.After
	return r
}

// states measures what tattler get, diff, blame and log take on a journal of a million changes over 100,000 objects.
func states(ctx context.Context, in harness.Input) (harness.Sample, error) {
	path := filepath.Join(in.Dir, "journal.db")
	l := &large{objects: max(20, in.Events/10), every: max(2, in.Events/pastVersions), last: map[string][]byte{}}
	if err := l.build(ctx, path, in.Events); err != nil {
		return nil, err
	}
	half := epoch.Add(time.Duration(in.Events/2) * 30 * time.Millisecond).Format(time.RFC3339)
	end := epoch.Add(time.Duration(in.Events+1) * 30 * time.Millisecond)
	now := func() time.Time { return end }
	streams := &terminal.IO{Out: io.Discard, Err: io.Discard, Width: func() int { return 0 }}
	list := func(ctx context.Context, o log.Options) error {
		o.IO, o.Output, o.Noise, o.Now = streams, "text", true, now
		o.Objects, o.Since, o.Past.Path = selection.Objects{Namespaces: []string{"team-0"}}, epoch.Format(time.RFC3339), path
		return log.Run(ctx, &o)
	}
	m := harness.NewMeter()
	for what, run := range map[string]func() error{
		"get object": func() error {
			o := get.Options{IO: streams, Types: []string{"pod/web-17"}, At: half, Output: "yaml", Now: now}
			o.Past.Path = path
			return get.Run(ctx, &o)
		},
		"get namespace": func() error {
			o := get.Options{IO: streams, Types: []string{"pods"}, Objects: selection.Objects{Namespaces: []string{"team-0"}}, At: half, Output: "yaml", Now: now}
			o.Past.Path = path
			return get.Run(ctx, &o)
		},
		"diff object": func() error {
			o := diff.Options{IO: streams, Types: []string{"pod/web-17"}, Since: half, Until: "now", Output: "text", Now: now}
			o.Past.Path = path
			return differs(diff.Run(ctx, &o))
		},
		"diff namespace": func() error {
			o := diff.Options{IO: streams, Types: []string{"pods"}, Objects: selection.Objects{Namespaces: []string{"team-0"}}, Since: half, Until: "now", Output: "text", Now: now}
			o.Past.Path = path
			return differs(diff.Run(ctx, &o))
		},
		"stat namespace": func() error { return list(ctx, log.Options{Stat: true}) },
		"related": func() error {
			return list(ctx, log.Options{Related: true, Options: selection.Options{Types: []string{"deploy/busy"}}})
		},
		"blame": func() error {
			o := blame.Options{IO: streams, Types: []string{"deploy/busy"}, At: "now", Output: "text", Now: now}
			o.Past.Path = path
			return blame.Run(ctx, &o)
		},
	} {
		var took []float64
		for range 9 {
			start := time.Now()
			if err := run(); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
		}
		slices.Sort(took)
		m.Set(what+" ms", took[len(took)/2])
	}
	return m.Sample(), remove(path)
}

// differs makes sure that something differs.
func differs(err error) error {
	switch {
	case err == nil:
		return errors.New("nothing differs")
	case errors.Is(err, diff.ErrDiffers):
		return nil
	}
	return err
}

func (l *large) build(ctx context.Context, path string, changes int) (err error) {
	j, err := journal.Open(ctx, path, journal.Options{Cluster: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for l.n < changes {
		batch := journal.Batch{Stream: journal.Stream{GroupResource: "all"}, Head: journal.Head{Version: "1", Live: true, At: epoch}}
		for range 1000 {
			batch.Rows = append(batch.Rows, l.row())
		}
		if _, err := j.Append(ctx, []journal.Batch{batch}); err != nil {
			return err
		}
	}
	return nil
}
