package web

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// history records random changes: rollouts, failing pods, edits, gaps and absences, of several workloads at once.
func (b *book) history(r *rand.Rand, n int) {
	owner := func(kind, name string) *event.Owner {
		return &event.Owner{Kind: kind, Name: name, UID: "uid-" + name}
	}
	generation := map[string]int{}
	for range n {
		ns := []string{"shop", "pay"}[r.IntN(2)]
		app := fmt.Sprint("app", r.IntN(3))
		g := generation[ns+app]
		pods := func() string { return fmt.Sprint(app, "-", g, "-", r.IntN(4)) }
		switch r.IntN(12) {
		case 0:
			generation[ns+app]++
			g++
			fallthrough
		case 1, 2:
			b.set(deployKind, ns, app, "kubectl", deployment(fmt.Sprint("web:", g), g+1, 4, r.IntN(5), r.IntN(5)), nil)
		case 3:
			b.set(replicaKind, ns, fmt.Sprint(app, "-", g), "kube-controller-manager", obj{"spec": obj{"replicas": r.IntN(5)}, "status": obj{"replicas": r.IntN(5)}}, owner("Deployment", app))
		case 4, 5, 6:
			waiting := []string{"", "", "CrashLoopBackOff", "ImagePullBackOff"}[r.IntN(4)]
			b.set(podKind, ns, pods(), "kubelet", pod("web:1", []string{"Pending", "Running"}[r.IntN(2)], waiting, r.IntN(3)), owner("ReplicaSet", fmt.Sprint(app, "-", g)))
		case 7:
			if name := pods(); b.objects["pods/"+ns+"/"+name] != nil {
				b.set(podKind, ns, name, "", nil, owner("ReplicaSet", fmt.Sprint(app, "-", g)))
			}
		case 8, 9:
			b.set(cmKind, ns, fmt.Sprint("settings", r.IntN(3)), "helm", configMap("k", fmt.Sprint(r.IntN(100))), nil)
		case 10:
			b.set(nodeKind, "", "node-a", "kubelet", obj{"status": obj{"conditions": []any{obj{"type": "Ready", "status": []string{"True", "False"}[r.IntN(2)]}}}}, nil)
		case 11:
			switch r.IntN(4) {
			case 0:
				b.gap(podKind)
			case 1:
				b.absence(time.Minute)
			}
		}
		b.wait(time.Duration(r.IntN([]int{200, 3000, 60_000}[r.IntN(3)])) * time.Millisecond)
	}
}

// TestPaging: whatever the filter and the size of pages, the pages together have what a single page has, in the same order.
func TestPaging(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
			b.history(rand.New(rand.NewPCG(seed, 5)), 100)
			middle := b.at
			b.history(rand.New(rand.NewPCG(seed, 6)), 40)
			if err := b.j.Close(); err != nil {
				t.Fatal(err)
			}
			p := newPage(t, b.path, b.at)
			p.patience = 1 // searches that are cut short change where pages end, and nothing else
			for _, filter := range []string{
				"", "flat=1", "exclude-namespace=shop", "type=pods", "type=deploy%2Fapp1", "op=created", "noise=true", "q=settings", "severity=failure,recovery",
				"manager=kubelet", "since=" + url.QueryEscape(machine(morning.Add(20*time.Minute))), "until=" + url.QueryEscape(machine(middle)),
			} {
				p.pageItems = 1000
				want := slices.Concat(p.keysOf(filter)...)
				if n := len(slices.Compact(slices.Sorted(slices.Values(want)))); n != len(want) || n == 0 {
					t.Errorf("filter %q: a page has %d entries of %d changes and stories", filter, len(want), n)
				}
				for _, size := range []int{1, 2, 7, 60} {
					p.pageItems = size
					if d := cmp.Diff(want, slices.Concat(p.keysOf(filter)...)); d != "" {
						t.Errorf("filter %q, %d entries a page (-one page +all pages):\n%s", filter, size, d)
					}
				}
			}
		})
	}
}

// keysOf returns the ids of the entries on each page.
func (p *page) keysOf(filter string) (pages [][]string) {
	p.t.Helper()
	for next := "/?" + filter; next != ""; {
		f, before, err := p.request(p.t.Context(), values(p.t, strings.TrimPrefix(next, "/?")))
		if err != nil {
			p.t.Fatal(err)
		}
		l, err := p.list(p.t.Context(), f, before)
		if err != nil {
			p.t.Fatal(err)
		}
		var keys []string
		for _, e := range l.Entries {
			keys = append(keys, e.Key)
		}
		pages = append(pages, keys)
		if next = l.Older; len(pages) > 2000 {
			p.t.Fatal("the pages do not end")
		}
	}
	return pages
}

// values parses a query of a URL.
func values(t testing.TB, query string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
