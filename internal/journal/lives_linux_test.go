package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// lives makes the changes of pods that live for seven of them, in 200 applications, and heartbeats of nodes.
type lives struct {
	*rand.Rand
	fleet
	n    int
	pods []*life
	apps []string // text that the pods of an application share
}

// life is a pod.
type life struct {
	app, stage int
	name, uid  string
	own        [4]string
	now        []byte
}

func newLives() *lives {
	l := &lives{Rand: rand.New(rand.NewPCG(7, 7)), fleet: fleet{nodes: 50}}
	for app := range 200 {
		var b strings.Builder
		for k := range 40 {
			fmt.Fprintf(&b, `{"name":"SETTING_%d","value":"%s"},`, k, noise(l.Rand, 4+l.IntN(40)))
		}
		for k := range 60 {
			fmt.Fprintf(&b, `"f:metadata":{"f:labels":{"f:app-%d":{},"k:{\"name\":\"SETTING_%d\"}":{".":{},"f:name":{}}},`, app, k)
		}
		l.apps = append(l.apps, b.String())
	}
	for range 300 {
		l.pods = append(l.pods, &life{stage: -1})
	}
	return l
}

// json returns a pod of about 7 KB.
func (p *life) json(version int, at time.Time, app string) []byte {
	var b strings.Builder
	stamp := at.UTC().Format(time.RFC3339)
	fmt.Fprintf(&b, `{"kind":"Pod","metadata":{"name":"%s","namespace":"team-%d","uid":"%s","resourceVersion":"%d"},"spec":{"env":[%s`, p.name, p.app%20, p.uid, version, app)
	for stage := range p.stage + 1 {
		fmt.Fprintf(&b, `],"stage%d":{"lastTransitionTime":"%s","containerID":"containerd://%s","status":"True"}`, stage, stamp, p.own[stage%4])
	}
	return []byte(b.String() + "}")
}

// row makes the next change.
func (l *lives) row() Row {
	l.n++
	version, at := 1_000_000+l.n, epoch.Add(time.Duration(l.n)*300*time.Millisecond)
	if l.IntN(10) == 0 {
		r := l.fleet.rows(1)[0]
		r.Time, r.At = at, at
		return r
	}
	i := l.IntN(len(l.pods))
	p := l.pods[i]
	if p.stage++; p.stage == 0 {
		p.app, p.uid = l.IntN(len(l.apps)), uidOf(l.n)
		p.name = fmt.Sprintf("app-%d-%s", p.app, noise(l.Rand, 5))
		for k := range p.own {
			p.own[k] = fmt.Sprintf("%016x%016x%016x%016x", l.Uint64(), l.Uint64(), l.Uint64(), l.Uint64())
		}
	}
	r := Row{Before: p.now, Meta: Meta{
		Op: event.Updated, Kind: podKind, Namespace: fmt.Sprint("team-", p.app%20), Name: p.name, UID: p.uid, ResourceVersion: strconv.Itoa(version),
		Time: at, At: at, Manager: "kubelet", Owner: &event.Owner{Kind: "ReplicaSet", Name: fmt.Sprint("app-", p.app), UID: "u" + strconv.Itoa(p.app)},
	}}
	switch p.stage {
	case 0:
		r.Op = event.Created
	case 6:
		r.Op = event.Deleted
		l.pods[i] = &life{stage: -1}
		return r
	}
	p.now = p.json(version, at, l.apps[p.app])
	r.After = p.now
	return r
}

// cpu is the processor time of this thread.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLives records JOURNAL_ROWS changes, 20,000 unless set, 50 per transaction, of many pods that live for a short time,
// and reads them. Its metrics are exact counts, and processor time of one thread; of appends, the median of transactions.
// docs/journal.md quotes it.
func BenchmarkLives(b *testing.B) {
	rows := 20_000
	if v := os.Getenv("JOURNAL_ROWS"); v != "" {
		rows, _ = strconv.Atoi(v)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "journal.db")
		j, err := Open(b.Context(), path, Options{Cluster: "prod"})
		must(b, err)
		l := newLives()
		var took []time.Duration
		for n := 0; n < rows; n += 50 {
			batch := []Batch{
				{Stream: Stream{GroupResource: "pods"}, Head: Head{Version: "1", Live: true, At: epoch}},
				{Stream: Stream{GroupResource: "nodes"}, Head: Head{Version: "1", Live: true, At: epoch}},
			}
			for range 50 {
				r := l.row()
				to := &batch[0].Rows
				if r.Kind == nodeKind {
					to = &batch[1].Rows
				}
				*to = append(*to, r)
			}
			start := cpu()
			_, err := j.Append(b.Context(), batch)
			took = append(took, cpu()-start)
			must(b, err)
		}
		pages, _, err := j.db.c.Status(sqlite3.DBSTATUS_CACHE_WRITE, false)
		must(b, err)
		all, free, size, err := j.db.pages()
		must(b, err)
		report := func(n int64, d time.Duration, unit string) {
			b.ReportMetric(float64(d.Microseconds())/float64(n), unit)
		}
		slices.Sort(took)
		report(50, took[len(took)/2], "append-µs/row")
		b.ReportMetric(float64(pages)/float64(rows), "pages/row")
		b.ReportMetric(float64((all-free)*size)/float64(rows), "file-B/row")
		r, err := OpenReader(b.Context(), path)
		must(b, err)
		l.read(b, r, report)
		start := cpu()
		got, err := j.Retain(b.Context(), epoch.Add(time.Duration(rows)*300*time.Millisecond), Retention{Age: time.Duration(rows) * 200 * time.Millisecond}, 1<<62)
		report(int64(got.Removed), cpu()-start, "retain-µs/row")
		must(b, err, r.Close(), j.Close(), os.Remove(path))
	}
}

// read reads all changes in order, the newest, and states at times.
func (l *lives) read(b *testing.B, r *Reader, report func(n int64, d time.Duration, unit string)) {
	b.Helper()
	r.ReadForwards(24 << 20)
	read := func(q Query) (n int64, d time.Duration, last Entry) {
		start := cpu()
		for e, err := range r.Rows(b.Context(), q) {
			if err == nil {
				_, _, err = e.Contents(b.Context())
			}
			must(b, err)
			n, last = n+1, e
		}
		return n, cpu() - start, last
	}
	n, d, last := read(Query{Quiet: true, OldestFirst: true})
	report(n, d, "inorder-µs/row")
	start := cpu()
	for range 50 {
		read(Query{Limit: 100})
	}
	report(50, cpu()-start, "newest100-µs")
	names := make([]string, 0, 500)
	for e, err := range r.Rows(b.Context(), Query{Resources: []string{"pods"}, Ops: []event.Op{event.Created}, Limit: 500 * 20}) {
		must(b, err)
		if e.Seq%20 == 0 {
			names = append(names, e.Name)
		}
	}
	at := func(q Query, t time.Time) (n int64) {
		for _, err := range r.At(b.Context(), q, t) {
			must(b, err)
			n++
		}
		return n
	}
	start = cpu()
	for _, name := range names {
		at(Query{Resources: []string{"pods"}, Names: []string{name}}, epoch.Add(time.Duration(l.Int64N(int64(last.At.Sub(epoch))))))
	}
	report(int64(len(names)), cpu()-start, "at-µs")
	start = cpu()
	at(Query{Resources: []string{"pods"}, Namespaces: []string{"team-3"}}, epoch.Add(last.At.Sub(epoch)/2))
	report(1, cpu()-start, "at-namespace-µs")
}
