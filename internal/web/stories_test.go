package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/log"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// changes records changes of a cluster in a test.
func (b *book) changes(all []change.Change) {
	b.t.Helper()
	for i := range all {
		c := &all[i]
		r := journal.Row{Meta: c.Meta}
		if c.Before != nil {
			r.Before = b.raw(c.Before)
		}
		if c.After != nil {
			r.After = b.raw(c.After)
		}
		b.version, b.at = b.version+1, c.At
		b.append(r)
	}
}

// world is a rollout, a crash loop, a scaling and a deletion of a Deployment, in a cluster with others.
func world(seed uint64) []change.Change {
	w := storytest.NewWorld()
	r := rand.New(rand.NewPCG(seed, 1))
	d, other := storytest.NewDeployment(w, r, "web", 3), storytest.NewDeployment(w, r, "api", 2)
	w.Pass(2 * time.Minute)
	d.RollOut("web:2")
	w.Pass(2 * time.Minute)
	d.Crash(d.PodNames()[0], 3, 10*time.Second)
	w.Pass(2 * time.Minute)
	d.Scale(1)
	other.RollOut("api:2")
	other.Crash(other.PodNames()[0], 1, 50*time.Second)
	w.Pass(10 * time.Second)
	other.StopPod(other.PodNames()[1])
	return w.Changes
}

// shownAs are the words of an entry, in the order of a line of tattler log, which leaves out the namespace if it is the only one.
func shownAs(e *entry, one bool) []string {
	words := []string{clock(e.At), e.Sign}
	if e.Namespace != "" && !one {
		words = append(words, e.Namespace)
	}
	words = append(words, e.Name)
	if e.ID == "" {
		words = append(words, e.Info)
	}
	return append(words, e.Manager)
}

// TestSameAsLog: the page has the lines of tattler log, whatever both select.
func TestSameAsLog(t *testing.T) {
	morningBook := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	morningBook.morningOf()
	books := []*book{morningBook}
	for seed := range uint64(2) {
		b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
		b.changes(world(seed))
		r := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
		r.history(rand.New(rand.NewPCG(seed, 9)), 150)
		books = append(books, b, r)
	}
	lines := 0
	for n, b := range books {
		if err := b.j.Close(); err != nil {
			t.Fatal(err)
		}
		for _, now := range []time.Time{b.at, b.at.Add(10 * time.Minute)} {
			p := newPage(t, b.path, now)
			p.pageItems = 10_000
			for query, o := range map[string]selection.Options{
				"": {}, "noise=true": {Noise: true}, "namespace=shop": {Objects: selection.Objects{Namespaces: []string{"shop"}}}, "type=pods": {Types: []string{"pods"}},
				"type=deploy%2Fweb": {Types: []string{"deploy/web"}}, "severity=failure%2Crecovery": {Severities: []string{"failure", "recovery"}}, "manager=kubelet": {Managers: []string{"kubelet"}},
				"until=" + machine(b.at.Add(-3*time.Minute)): {Until: machine(b.at.Add(-3 * time.Minute))}, "since=" + machine(b.at.Add(-4*time.Minute)): {Since: machine(b.at.Add(-4 * time.Minute))},
				"op=updated": {Ops: []string{"updated"}}, "path=status": {Paths: []string{"status"}},
			} {
				var want [][]string
				for _, e := range p.all(t.Context(), query) {
					want = append(want, shownAs(&e, query == "namespace=shop"))
				}
				slices.Reverse(want)
				var got [][]string
				for line := range strings.Lines(logged(t, b.path, now, o)) {
					if strings.HasPrefix(line, " ") { // a detail
						continue
					}
					got = append(got, []string{strings.TrimSpace(line)})
				}
				if len(got) != len(want) {
					t.Errorf("journal %d, %q: the page has %d entries, the log %d lines:\n%s", n, query, len(want), len(got), gocmp.Diff(got, want))
					continue
				}
				for i, words := range want {
					lines++
					rest := got[i][0]
					for _, w := range words {
						_, after, ok := strings.Cut(rest, strings.Split(w, "\n")[0])
						if rest = after; !ok {
							t.Errorf("journal %d, %q: the page has %q, the log\n%s", n, query, words, got[i][0])
							break
						}
					}
				}
			}
		}
	}
	if lines < 500 {
		t.Errorf("only %d lines", lines)
	}
}

// logged returns what tattler log prints.
func logged(t *testing.T, path string, now time.Time, s selection.Options) string {
	t.Helper()
	var out, said bytes.Buffer
	o := &log.Options{
		IO:      &terminal.IO{Out: &out, Err: &said, OutTTY: true, Width: func() int { return 0 }},
		Options: s, Output: "text", Now: func() time.Time { return now },
		Recording: func(context.Context, string) bool { return true },
	}
	o.Past.Path = path
	if err := log.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// all returns the entries of all pages.
func (p *page) all(ctx context.Context, query string) (all []entry) {
	p.t.Helper()
	f, before, err := p.request(ctx, values(p.t, query))
	for {
		if err != nil {
			p.t.Fatal(err)
		}
		var l list
		if l, err = p.list(ctx, f, before); err != nil {
			p.t.Fatal(err)
		}
		all = append(all, l.Entries...)
		if l.Older == "" {
			return all
		}
		f, before, err = p.request(ctx, values(p.t, strings.TrimPrefix(l.Older, "/?")))
	}
}

// TestAfterRollout: a page after the end of a rollout has one entry for it, which unfolds to its changes and those of its pods.
func TestAfterRollout(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.Pass(2 * time.Minute)
	d.RollOut("web:2")
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.changes(w.Changes)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at.Add(time.Minute))
	entries := p.all(t.Context(), "")
	if len(entries) != 4 || !strings.HasPrefix(entries[0].Info, "rolled out in 7 s: 3/3 ready, 3 pods replaced") {
		t.Fatalf("%d entries, the newest says %q", len(entries), entries[0].Info)
	}
	body := p.get(entries[0].Unfold, "HX-Request", "true").Body.String()
	pods := regexp.MustCompile(`class="sign (\w+)"[^<]*</span>\s*<span class="ns">.*\n.*<span class="type">pod/`).FindAllStringSubmatch(body, -1)
	ops := map[string]int{}
	for _, pod := range pods {
		ops[pod[1]]++
	}
	if ops["created"] != 3 || ops["deleted"] != 3 || strings.Contains(body, "all its changes") {
		t.Errorf("below the rollout: %v in\n%s", ops, body)
	}
}

// TestUnfoldParts: what a story covers is unfolded in parts, which have each change once.
func TestUnfoldParts(t *testing.T) {
	w := storytest.NewWorld()
	storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 40)
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.changes(w.Changes)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at.Add(time.Minute))
	tree, err := p.past.source.Story(t.Context(), strings.TrimPrefix(p.all(t.Context(), "")[0].Key, "s"))
	if err != nil {
		t.Fatal(err)
	}
	covered, err := p.past.builder.Covered(t.Context(), &tree)
	if err != nil || len(covered) <= unfoldSize {
		t.Fatalf("%d changes, %v", len(covered), err)
	}
	var got []string
	next := regexp.MustCompile(`hx-get="(/unfold[^"]*)" hx-target="closest ol"[^>]*>(\d+) more`)
	for url := p.all(t.Context(), "")[0].Unfold; url != ""; {
		body := p.get(url, "HX-Request", "true").Body.String()
		for _, id := range regexp.MustCompile(` id="c(\d+)"`).FindAllStringSubmatch(body, -1) {
			got = append(got, id[1])
		}
		if url = ""; next.MatchString(body) {
			more := next.FindStringSubmatch(body)
			if url = strings.ReplaceAll(more[1], "&amp;", "&"); more[2] != fmt.Sprint(len(covered)-len(got)) {
				t.Errorf("%s more after %d of %d", more[2], len(got), len(covered))
			}
		}
	}
	if d := gocmp.Diff(strings.Fields(strings.Trim(fmt.Sprint(covered), "[]")), got); d != "" {
		t.Error(d)
	}
}

// elements returns the entries of HTML by their ids, and the ids in order.
func elements(body string) (of map[string]string, ids []string) {
	of = map[string]string{}
	for _, e := range regexp.MustCompile(`(?s)<li class="entry.*?\n</li>`).FindAllString(body, -1) {
		id := regexp.MustCompile(` id="(\w+)"`).FindStringSubmatch(e)[1]
		of[id] = e
		ids = append(ids, id)
	}
	return of, ids
}

// TestLiveSame: while pods start, fail, recover and go, a live page has what it has when it is loaded again: the same entries in
// the same order. So it does after a lost connection.
func TestLiveSame(t *testing.T) {
	for seed := range uint64(2) {
		all := world(seed)
		b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
		b.changes(all[:len(all)/2])
		var now atomic.Int64
		now.Store(b.at.UnixNano())
		p := newPage(t, b.path, b.at)
		p.o.Now = func() time.Time { return time.Unix(0, now.Load()).UTC() }
		srv := httptest.NewServer(p)
		defer srv.Close()
		page, _ := elements(p.get("/entries").Body.String())
		c := &browser{t: t, srv: srv}
		c.connect(fmt.Sprint("/live?after=", b.version))
		r := rand.New(rand.NewPCG(seed, 3))
		for all = all[len(all)/2:]; len(all) > 0; {
			n := min(1+r.IntN(6), len(all))
			breaks := r.IntN(5) == 0
			if breaks {
				c.leave()
			}
			b.changes(all[:n])
			b.mark()
			now.Store(b.at.UnixNano())
			if breaks {
				c.connect("/live?after=0")
			}
			all = all[n:]
			c.until(fmt.Sprint(b.version), page)
			samePage(t, p, page)
		}
		now.Add(int64(time.Hour)) // a pod that does not start has a line then
		b.mark()
		c.until(fmt.Sprint(b.version), page)
		samePage(t, p, page)
		c.leave()
		if err := b.j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// mark records a change that has nothing to do with the others.
func (b *book) mark() {
	b.set(cmKind, "shop", fmt.Sprint("mark-", b.version), "helm", configMap("k", "v"), nil)
}

// until applies events to a page, as the script does, until a mark.
func (b *browser) until(mark string, page map[string]string) {
	b.t.Helper()
	var name, data string
	for b.lines.Scan() {
		field, value, _ := strings.Cut(b.lines.Text(), ": ")
		switch field {
		case "event":
			name, data = value, ""
		case "data":
			data += value + "\n"
		case "id":
			b.lastID = value
		case "":
			switch name {
			case "entry":
				of, ids := elements(data)
				page[ids[0]] = of[ids[0]]
			case "gone":
				for _, id := range strings.Fields(data) {
					delete(page, id)
				}
			case "mark":
				if b.lastID == mark {
					return
				}
			case "stale":
				b.t.Fatal("the page must be loaded again")
			}
			name = ""
		}
	}
	b.t.Fatalf("the live page ended: %v", b.lines.Err())
}

// samePage reports how a live page differs from the loaded one.
func samePage(t *testing.T, p *page, live map[string]string) {
	t.Helper()
	order := regexp.MustCompile(`data-order="(\d+)"`)
	loaded, want := elements(p.get("/entries").Body.String())
	var got []string
	for id := range live {
		got = append(got, id)
	}
	at := func(id string) (n int) { fmt.Sscan(order.FindStringSubmatch(live[id])[1], &n); return n } //nolint:errcheck // digits
	slices.SortFunc(got, func(a, b string) int {
		return cmp.Or(cmp.Compare(at(b), at(a)), cmp.Compare(slices.Index(want, a), slices.Index(want, b)))
	})
	if d := gocmp.Diff(want, got[:min(len(got), len(want))]); d != "" {
		t.Errorf("the entries (-loaded +live):\n%s", d)
	}
	for _, id := range want {
		if d := gocmp.Diff(loaded[id], live[id]); d != "" {
			t.Errorf("%s (-loaded +live):\n%s", id, d)
		}
	}
}

// TestLiveParts: the entry of a pod that fails gives way to that of its Deployment, and the pod recovers.
func TestLiveParts(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.Pass(2 * time.Minute)
	before := len(w.Changes)
	d.Crash(d.PodNames()[0], 1, 10*time.Second)
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.changes(w.Changes[:before])
	p := newPage(t, b.path, w.Now())
	srv := httptest.NewServer(p)
	defer srv.Close()
	page, _ := elements(p.get("/entries").Body.String())
	c := &browser{t: t, srv: srv}
	c.connect(fmt.Sprint("/live?after=", b.version))
	alone := false
	for i := range w.Changes[before:] {
		b.changes(w.Changes[before+i:][:1])
		b.mark()
		c.until(fmt.Sprint(b.version), page)
		samePage(t, p, page)
		for _, e := range page {
			alone = alone || strings.Contains(e, "pod/</span>web") && strings.Contains(e, "exit code 1, 1 restart")
		}
	}
	all := fmt.Sprint(page)
	if !alone || strings.Contains(all, "pod/</span>web") || !strings.Contains(all, "3/3 ready again, after") {
		t.Errorf("the pod had an entry: %t; at the end there are\n%s", alone, all)
	}
	c.leave()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLiveSlow: a pod that takes long to start has an entry, without a change of its own.
func TestLiveSlow(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.set(cmKind, "shop", "before", "helm", configMap("k", "v"), nil)
	var now atomic.Int64
	now.Store(b.at.UnixNano())
	p := newPage(t, b.path, b.at)
	p.o.Now = func() time.Time { return time.Unix(0, now.Load()).UTC() }
	srv := httptest.NewServer(p)
	defer srv.Close()
	c := &browser{t: t, srv: srv}
	c.connect("/live?after=1")
	b.set(podKind, "shop", "slow", "kubelet", pod("web:1", "Pending", "", 0), &event.Owner{Kind: "Job", Name: "j", UID: "j"})
	b.mark()
	page := map[string]string{}
	c.until("3", page)
	if len(page) != 1 {
		t.Errorf("a pod that has just begun has an entry: %v", page)
	}
	now.Add(int64(40 * time.Second))
	if e := c.next(); !strings.Contains(e.data, "slow</a>") {
		t.Errorf("got %s", e.data)
	}
	c.leave()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

// only is the rights of a viewer of one namespace and of cluster-scoped objects.
type only string

func (o only) May(_ context.Context, targets []access.Target) ([]bool, error) {
	may := make([]bool, len(targets))
	for i, t := range targets {
		may[i] = t.Namespace == string(o) || t.Resource == "nodes"
	}
	return may, nil
}

func (only) Created(_ context.Context, all []access.Namespace) ([]time.Time, error) {
	return slices.Repeat([]time.Time{time.Unix(1, 0)}, len(all)), nil
}

// TestPartsOfOthers: a viewer of one namespace sees nothing of the parts of a story that are in another one, and the pages of any
// size have the same.
func TestPartsOfOthers(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	owner := &event.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	node := func(cordoned bool) obj {
		return obj{"spec": obj{"unschedulable": cordoned}, "status": obj{"conditions": []any{obj{"type": "Ready", "status": "True"}}}}
	}
	evicted := func(ns, name string) {
		o := pod("web:1", "Running", "", 0)
		o["status"].(obj)["conditions"] = append(o["status"].(obj)["conditions"].([]any), obj{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
		b.set(podKind, ns, name, "kubelet", o, owner)
		b.set(podKind, ns, name, "", nil, owner)
	}
	b.set(nodeKind, "", "node-a", "kubelet", node(false), nil)
	for _, ns := range []string{"shop", "pay"} {
		b.set(podKind, ns, "web", "kubelet", pod("web:1", "Running", "", 0), owner)
	}
	b.wait(time.Hour)
	b.set(nodeKind, "", "node-a", "kubectl", node(true), nil)
	b.wait(time.Second)
	evicted("shop", "web")
	b.wait(time.Second)
	evicted("pay", "web")
	b.history(rand.New(rand.NewPCG(5, 5)), 120)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	everybody, source := p.past, access.New(p.past.source.(access.Journal))
	var err error
	if p.past, err = newPast(source); err != nil {
		t.Fatal(err)
	}
	ctx := access.With(t.Context(), only("shop"))
	p.pageItems = 1000
	var want []string
	var drain *entry
	for _, e := range p.all(ctx, "") {
		want = append(want, e.Key)
		if e.Namespace == "pay" || strings.Contains(e.Info, "2 pods evicted") || strings.Contains(e.Info, "2 evicted") {
			t.Errorf("the viewer sees %+v", e.Line)
		}
		if strings.Contains(e.Info, "evicted") && e.Namespace == "" {
			drain = &e
		}
	}
	if drain == nil || !strings.Contains(drain.Info, "1 pod evicted") {
		t.Fatalf("the drain says %+v", drain)
	}
	for _, size := range []int{1, 3, 20} {
		p.pageItems = size
		var got []string
		for _, e := range p.all(ctx, "") {
			got = append(got, e.Key)
		}
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%d entries a page (-one page +all pages):\n%s", size, d)
		}
	}
	// Below the drain are the viewer's pods, and another viewer has more.
	for viewer, pods := range map[access.Access]int{only("shop"): 1, access.Everything{}: 2} {
		r := httptest.NewRequestWithContext(access.With(t.Context(), viewer), "GET", drain.Unfold, nil)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if n := strings.Count(w.Body.String(), `class="sign deleted"`); w.Code != 200 || n != pods {
			t.Errorf("%v: %d, %d pods below the drain\n%s", viewer, w.Code, n, w.Body)
		}
	}
	// A story in another namespace is not there, whatever its id is.
	p.past = everybody
	for _, e := range p.all(t.Context(), "namespace=pay") {
		if e.ID != "" {
			continue
		}
		for _, id := range []string{strings.TrimPrefix(e.Key, "s"), e.Key[1:2]} { // several stories have an id with this letter
			s, err := source.Story(ctx, id)
			if several := (*journal.AmbiguousError)(nil); err == nil && s.Object.Namespace == "pay" || errors.As(err, &several) && slices.Contains(several.IDs, strings.TrimPrefix(e.Key, "s")) {
				t.Errorf("with %s, the viewer reads %s: %v", id, e.Name, err)
			}
		}
	}
}
