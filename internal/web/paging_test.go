package web

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// TestPaging: whatever the filter and the size of pages, the pages together have each change once, the newest first.
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
				"", "flat=1", "exclude-namespace=shop", "type=pods", "type=deploy%2Fapp1", "op=created", "noise=true", "q=settings",
				"since=" + url.QueryEscape(machine(morning.Add(20*time.Minute))), "until=" + url.QueryEscape(machine(middle)),
			} {
				p.pageChanges, p.contextChanges = 1000, 1000
				want := slices.Concat(p.changesOf(filter + "&flat=1")...)
				for _, size := range [][2]int{{2, 5}, {7, 40}, {20, 20}, {60, 100}} {
					p.pageChanges, p.contextChanges = size[0], size[1]
					if err := once(p.changesOf(filter), want); err != nil {
						t.Errorf("filter %q, %d changes a page with %d older ones: %v", filter, size[0], size[1], err)
					}
				}
			}
		})
	}
}

// changesOf returns the numbers of the changes of each entry, on each page.
func (p *page) changesOf(filter string) (pages [][][]int64) {
	p.t.Helper()
	for next := "/?" + filter; next != ""; {
		u, err := url.Parse(next)
		if err != nil {
			p.t.Fatal(err)
		}
		f, at, err := p.request(p.t.Context(), u.Query())
		if err != nil {
			p.t.Fatal(err)
		}
		l, err := p.list(p.t.Context(), f, at)
		if err != nil {
			p.t.Fatal(err)
		}
		var entries [][]int64
		for _, e := range l.Entries {
			entries = append(entries, e.Changes)
		}
		pages = append(pages, entries)
		if next = l.Older; len(pages) > 2000 {
			p.t.Fatal("the pages do not end")
		}
	}
	return pages
}

// once returns an error unless the pages have each wanted change once, and each page has newer entries than the next. A
// fold may have changes from before the filter's time range. A change without a line, such as one of nothing, is not wanted.
func once(pages [][][]int64, want [][]int64) error {
	seen := map[int64]int{}
	above := int64(1 << 62)
	for n, entries := range pages {
		least := above
		for _, changes := range entries {
			for _, seq := range changes {
				seen[seq]++
			}
			newest := slices.Max(changes)
			if newest >= above {
				return fmt.Errorf("change %d is on page %d, after change %d", newest, n, above)
			}
			least = min(least, newest)
		}
		above = least
	}
	for _, changes := range want {
		for _, seq := range changes {
			if seen[seq] != 1 {
				return fmt.Errorf("change %d is shown %d times", seq, seen[seq])
			}
		}
	}
	for seq, n := range seen {
		if n > 1 {
			return fmt.Errorf("change %d is shown %d times", seq, n)
		}
	}
	return nil
}
