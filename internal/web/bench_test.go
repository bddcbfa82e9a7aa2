package web

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// million writes a journal of a million changes of the status of 100,000 pods in 50 namespaces, over a week.
func million(b *testing.B) (path string, end time.Time) {
	b.Helper()
	const changes, objects, namespaces = 1_000_000, 100_000, 50
	path = filepath.Join(b.TempDir(), "journal.db")
	j, err := journal.Open(b.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	last := make([][]byte, objects)
	at := morning
	for n := 0; n < changes; {
		batch := journal.Batch{Stream: journal.Stream{GroupResource: "pods"}, Head: journal.Head{Version: fmt.Sprint(n), Epoch: 1, Live: true, EverLive: true, At: at}}
		for range 2000 {
			o := n % objects
			n++
			at = morning.Add(time.Duration(n) * (7 * 24 * time.Hour / changes))
			name, ns := fmt.Sprint("web-", o), fmt.Sprint("team-", o%namespaces)
			after := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{"app":"web","team":"shop"}},"spec":{"containers":[{"name":"app","image":"registry.example.com/shop/web:1.0","resources":{"limits":{"cpu":"500m","memory":"256Mi"}}}],"serviceAccountName":"web","dnsPolicy":"ClusterFirst","restartPolicy":"Always"},"status":{"phase":"Running","beat":"%d","conditions":[{"type":"Ready","status":"True","message":"seen %d"}]}}`, name, ns, name, n, n, n)
			r := journal.Row{Meta: journal.Meta{Op: event.Updated, Kind: podKind, Namespace: ns, Name: name, UID: name, ResourceVersion: fmt.Sprint(n), Time: at, At: at, Manager: "kubelet"}, Before: last[o], After: after}
			if last[o] == nil {
				r.Op = event.Created
			}
			last[o] = after
			batch.Rows = append(batch.Rows, r)
		}
		if _, err := j.Append(b.Context(), []journal.Batch{batch}); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	return path, at
}

// BenchmarkTimeline serves the timeline of a million changes.
func BenchmarkTimeline(b *testing.B) {
	path, end := million(b)
	p := newPage(b, path, end)
	p.patience = 1
	for _, url := range []string{"/", "/?since=1h", "/?namespace=team-7", "/?type=pods&name=web-17", "/?flat=1", "/?lanes=object", "/?q=nothing-has-this"} {
		b.Run(url, func(b *testing.B) {
			size := 0
			for b.Loop() {
				w := p.get(url)
				if size = w.Body.Len(); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
			b.ReportMetric(float64(size)/1000, "kB")
		})
	}
}

// routine writes a journal of 100,000 changes, most of them routine: rollouts, crashes and edits of 50 workloads in 10 namespaces
// over days.
func routine(b *testing.B) (path string, end time.Time, plain int) {
	b.Helper()
	const changes, workloads, namespaces = 100_000, 50, 10
	path = filepath.Join(b.TempDir(), "journal.db")
	j, err := journal.Open(b.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	w := storytest.NewWorld()
	r := rand.New(rand.NewPCG(1, 1))
	all := make([]*storytest.Deployment, workloads)
	for i := range all {
		all[i] = storytest.NewDeployment(w, r, fmt.Sprintf("web%02d", i), 3)
		w.Create("helm", obj{"kind": "ConfigMap", "apiVersion": "v1", "metadata": obj{"name": fmt.Sprintf("settings%02d", i), "namespace": "shop"}, "data": obj{"n": "0"}})
	}
	write := func() {
		var batches []journal.Batch
		for i := range w.Changes {
			c := &w.Changes[i]
			ns := fmt.Sprint("team-", int(c.Name[strings.IndexAny(c.Name, "0123456789")+1]-'0')%namespaces)
			c.Namespace = ns
			row := journal.Row{Meta: c.Meta}
			for to, o := range map[*[]byte]obj{&row.Before: c.Before, &row.After: c.After} {
				if o == nil {
					continue
				}
				o["metadata"].(obj)["namespace"] = ns
				if *to, err = json.Marshal(o); err != nil {
					b.Fatal(err)
				}
			}
			rows := []journal.Row{row}
			historytest.Judge(rows)
			if !rows[0].Routine {
				plain++
			}
			batches = append(batches, journal.Batch{
				Stream: journal.Stream{GroupResource: c.Kind.GroupResource()}, Rows: rows,
				Head: journal.Head{Version: c.ResourceVersion, Epoch: 1, Live: true, EverLive: true, At: c.At},
			})
			end = c.At
		}
		w.Changes = w.Changes[:0]
		if _, err := j.Append(b.Context(), batches); err != nil {
			b.Fatal(err)
		}
	}
	for n := 0; n < changes; {
		d := r.IntN(workloads)
		switch r.IntN(20) {
		case 0:
			all[d].Crash(all[d].PodNames()[0], 2, 20*time.Second)
		case 1:
			w.Write("kubectl-edit", fmt.Sprintf("ConfigMap/settings%02d", d), func(o obj) { o["data"].(obj)["n"] = fmt.Sprint(n) })
		default:
			all[d].RollOut(fmt.Sprint("web:", n))
		}
		w.Pass(time.Duration(r.IntN(120)) * time.Second)
		n += len(w.Changes)
		write()
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	return path, end, plain
}

// BenchmarkStored serves the first page for each filter that needs no objects.
func BenchmarkStored(b *testing.B) {
	path, end, plain := routine(b)
	b.Logf("%d changes are not routine", plain)
	p := newPage(b, path, end)
	p.patience = 1
	middle := end.Add(-24 * time.Hour)
	for _, query := range []string{
		"", "since=1h", "since=" + machine(middle) + "&until=" + machine(middle.Add(time.Hour)), "until=" + machine(middle), "type=pods", "type=deploy", "type=cm",
		"namespace=team-7", "exclude-namespace=team-7", "type=deploy&name=web17", "type=cm&name=nothing", "severity=failure", "severity=failure%2Cwarning", "severity=recovery",
		"manager=kubectl-edit", "manager=nobody", "cluster=prod", "field-selector=metadata.name%3Dweb17", "op=deleted", "flat=1", "before=20000",
	} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if w := p.get("/?" + query); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
		b.Run("list of "+query, func(b *testing.B) {
			f, before, err := p.request(b.Context(), values(b, query))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err = p.list(b.Context(), f, before); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
