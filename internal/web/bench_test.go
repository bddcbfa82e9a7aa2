package web

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
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
