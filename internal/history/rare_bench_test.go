//go:build unix

package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// cpu returns the CPU time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median reports the median CPU time of f.
func median(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		start := cpu(b)
		f()
		took = append(took, cpu(b)-start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "cpu-ms")
}

var (
	benchPods = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	benchTime = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
)

// lives makes the lives of pods in 500 namespaces of very different sizes, over three days: created, started, ready,
// now and then with a crash, deleted.
type lives struct {
	*rand.Rand
	pick    *rand.Zipf
	n, all  int
	version int
	pods    []life
}

type life struct {
	namespace, name string
	age             int
	text            []byte
}

func (l *lives) row() journal.Row {
	at := benchTime.Add(time.Duration(l.n) * (3 * 24 * time.Hour / time.Duration(l.all)))
	l.n++
	l.version += 3
	if len(l.pods) < 1000 {
		l.pods = append(l.pods, life{namespace: fmt.Sprint("team-", l.pick.Uint64()), name: fmt.Sprint("web-", l.n)})
	}
	i := l.IntN(len(l.pods))
	p := &l.pods[i]
	state := `"phase":"Running","containerStatuses":[{"name":"app","ready":true,"state":{"running":{"startedAt":"2026-11-21T00:00:00Z"}}}]`
	switch {
	case p.age < 2:
		state = `"phase":"Pending"`
	case p.age > 3 && l.IntN(100) == 0:
		state = `"phase":"Running","containerStatuses":[{"name":"app","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]`
	}
	r := journal.Row{Before: p.text, Meta: journal.Meta{
		Op: event.Updated, Kind: benchPods, Namespace: p.namespace, Name: p.name, UID: p.name, ResourceVersion: strconv.Itoa(l.version), Time: at, At: at, Manager: "kubelet",
	}}
	if p.age == 0 {
		r.Op = event.Created
	}
	if p.age++; p.age == 10 {
		r.Op = event.Deleted
		l.pods = slices.Delete(l.pods, i, i+1)
		return r
	}
	p.text = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"registry.example.com/shop/web:1.0","resources":{"limits":{"cpu":"500m","memory":"256Mi"}}}],"serviceAccountName":"web","restartPolicy":"Always"},"status":{"beat":"%d",%s}}`,
		p.name, p.namespace, p.name, l.version, p.age, state)
	r.After = p.text
	return r
}

// BenchmarkRare asks a journal of 200,000 changes (JOURNAL_ROWS) for what is rare in it. Append is per change, in transactions
// of 50.
func BenchmarkRare(b *testing.B) {
	rows := 200_000
	if v := os.Getenv("JOURNAL_ROWS"); v != "" {
		var err error
		if rows, err = strconv.Atoi(v); err != nil {
			b.Fatal(err)
		}
	}
	path := filepath.Join(b.TempDir(), "journal.db")
	j, err := journal.Open(b.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	l := &lives{Rand: r, pick: rand.NewZipf(r, 1.3, 2, 499), all: rows}
	var took []time.Duration
	for l.n < rows {
		var all []journal.Row
		for range 50 {
			all = append(all, l.row())
		}
		historytest.Judge(all)
		start := cpu(b)
		if _, err := j.Append(b.Context(), []journal.Batch{{Stream: journal.Stream{GroupResource: "pods"}, Head: journal.Head{Version: "9", Live: true, At: benchTime}, Rows: all}}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (cpu(b)-start)/50)
	}
	slices.Sort(took)
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		for b.Loop() { // measured above
		}
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "cpu-µs/change")
	})
	end := benchTime.Add(3 * 24 * time.Hour)
	for name, q := range map[string]journal.Query{
		"failures":                         {Severities: []event.Severity{event.Failure}},
		"failures in a small namespace":    {Severities: []event.Severity{event.Failure}, Namespaces: []string{"team-60"}},
		"deletions in a small namespace":   {Ops: []event.Op{event.Deleted}, Namespaces: []string{"team-60"}},
		"deletions in a namespace unknown": {Ops: []event.Op{event.Deleted}, Namespaces: []string{"nowhere"}},
		"newest of a small namespace":      {Namespaces: []string{"team-60"}},
	} {
		q.Limit = 100
		b.Run(name, func(b *testing.B) {
			median(b, func() { ask(b, path, q) })
		})
	}
	for name, since := range map[string]time.Duration{"chart of an hour": time.Hour, "chart of a day": 24 * time.Hour, "chart of all": 72 * time.Hour} {
		b.Run(name, func(b *testing.B) {
			median(b, func() {
				r, err := journal.OpenReader(b.Context(), path)
				if err == nil {
					_, err = r.Counts(b.Context(), journal.Query{Since: end.Add(-since), Until: end}, since/100)
				}
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			})
		})
	}
}

// ask reads the changes that a query selects, with their fields.
func ask(b *testing.B, path string, q journal.Query) {
	r, err := journal.OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	rules, err := quiet.New()
	if err != nil {
		b.Fatal(err)
	}
	tell := New(r, rules)
	for e, err := range r.Rows(b.Context(), q) {
		if err == nil {
			_, err = tell.Change(b.Context(), &e)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
