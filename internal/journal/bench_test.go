package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// node returns a node's JSON, about 6 KB, with the fields that a heartbeat changes.
func node(i, version int, at time.Time) []byte {
	stamp := at.UTC().Format(time.RFC3339)
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"},"creationTimestamp":"2026-10-02T07:12:44Z","labels":{"kubernetes.io/arch":"amd64","kubernetes.io/hostname":"node-%[1]d","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m5.2xlarge","topology.kubernetes.io/zone":"eu-central-1a"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:volumes.kubernetes.io/controller-managed-attach-detach":{}},"f:labels":{".":{},"f:kubernetes.io/arch":{},"f:kubernetes.io/hostname":{},"f:kubernetes.io/os":{}}}},"manager":"kubelet","operation":"Update","time":"2026-10-02T07:12:44Z"},{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"DiskPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}},"f:images":{}}},"manager":"kubelet","operation":"Update","subresource":"status","time":"%[3]s"}],"name":"node-%[1]d","resourceVersion":"%[2]d","uid":"%[4]s"},"spec":{"podCIDR":"10.244.%[1]d.0/24","podCIDRs":["10.244.%[1]d.0/24"],"providerID":"aws:///eu-central-1a/i-%016[5]x"},"status":{"addresses":[{"address":"10.0.%[1]d.7","type":"InternalIP"},{"address":"node-%[1]d","type":"Hostname"}],"allocatable":{"cpu":"7910m","ephemeral-storage":"95551679124","memory":"31482284Ki","pods":"110"},"conditions":[`,
		i, version, stamp, uidOf(i), uint64(i)*0x9E3779B97F4A7C15)
	for k, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"lastHeartbeatTime":"%s","lastTransitionTime":"2026-10-02T07:12:44Z","message":"kubelet has sufficient resources available for %s","reason":"KubeletHas","status":"False","type":"%s"}`, stamp, c, c)
	}
	b.WriteString(`],"images":[`)
	r := rand.New(rand.NewPCG(uint64(i%5), 3))
	for k := range 25 {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"names":["registry.example.org/team/app-%d@sha256:%016x%016x%016x%016x"],"sizeBytes":%d}`, r.IntN(100), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1<<28))
	}
	b.WriteString(`],"nodeInfo":{"architecture":"amd64","containerRuntimeVersion":"containerd://2.1.4","kernelVersion":"6.8.0","kubeletVersion":"v1.36.3","operatingSystem":"linux"}}}`)
	return []byte(b.String())
}

func uidOf(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 5))
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64N(1<<48))
}

// fleet makes heartbeats of nodes in turn.
type fleet struct {
	nodes   int
	n       int
	version int
	states  [][]byte
}

func (f *fleet) rows(count int) []Row {
	var rows []Row
	for range count {
		i := f.n % f.nodes
		f.n++
		f.version += 7
		at := epoch.Add(time.Duration(f.n) * 37 * time.Millisecond)
		r := Row{Meta: Meta{
			Op: event.Updated, Kind: nodeKind, Name: "node-" + strconv.Itoa(i), UID: uidOf(i), ResourceVersion: strconv.Itoa(4_000_000 + f.version),
			Time: at.Truncate(time.Second), At: at, Manager: "kubelet", Quiet: true,
		}, After: node(i, 4_000_000+f.version, at)}
		if f.n <= f.nodes {
			r.Op, r.Quiet = event.Snapshot, false
			f.states = append(f.states, r.After)
		} else {
			r.Before, f.states[i] = f.states[i], r.After
		}
		rows = append(rows, r)
	}
	return rows
}

func (f *fleet) batch(count int) []Batch {
	return []Batch{{Stream: Stream{GroupResource: "nodes"}, Head: Head{Version: strconv.Itoa(f.version), Live: true, At: epoch}, Rows: f.rows(count)}}
}

func begin(b *testing.B, nodes int) (*Journal, *fleet) {
	b.Helper()
	j, err := Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	f := &fleet{nodes: nodes}
	for f.n < nodes {
		if _, err := j.Append(b.Context(), f.batch(min(nodes-f.n, 500))); err != nil {
			b.Fatal(err)
		}
	}
	return j, f
}

// used returns how many bytes of the file are in use.
func used(b *testing.B, j *Journal) int64 {
	b.Helper()
	pages, free, size, err := j.db.pages()
	if err != nil {
		b.Fatal(err)
	}
	return (pages - free) * size
}

// BenchmarkAppend writes prepared heartbeats of 5,000 nodes of 6 KB, with fsync. An operation is a row. file-B/row counts
// the row, its index entries and its block; whole copies come only after 64 updates per node (-benchtime 400000x).
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 10, 100, 500} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			j, f := begin(b, 5000)
			var batches [][]Batch
			for n := 0; n < b.N; n += size {
				batches = append(batches, f.batch(size))
			}
			before := used(b, j)
			var took []time.Duration
			b.ResetTimer()
			for _, batch := range batches {
				start := time.Now()
				if _, err := j.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(len(batches)*size)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(used(b, j)-before)/float64(len(batches)*size), "file-B/row")
		})
	}
}

// BenchmarkObjects loads the states of 100,000 nodes, as a restart does.
func BenchmarkObjects(b *testing.B) {
	j, _ := begin(b, 100_000)
	for b.Loop() {
		n := 0
		for _, err := range j.Objects(b.Context(), Stream{GroupResource: "nodes"}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100_000 {
			b.Fatalf("%d objects", n)
		}
	}
}

// BenchmarkFirstPage opens a journal and reads the newest 50 changes with their contents. docs/journal.md quotes it with
// JOURNAL_ROWS=1000000.
func BenchmarkFirstPage(b *testing.B) {
	rows := 20_000
	if v := os.Getenv("JOURNAL_ROWS"); v != "" {
		var err error
		if rows, err = strconv.Atoi(v); err != nil {
			b.Fatal(err)
		}
	}
	j, f := begin(b, 2000)
	for f.n < rows {
		batch := f.batch(500)
		for i := range batch[0].Rows {
			batch[0].Rows[i].Quiet = (f.n+i)%10 != 0
		}
		if f.n%100_000 < 500 { // rare: most blocks have none
			batch[0].Rows[0].Manager = "rare"
		}
		if _, err := j.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for name, q := range map[string]Query{
		"newest":    {Limit: 50},
		"object":    {Limit: 50, Names: []string{"node-17"}, Quiet: true},
		"uid":       {Limit: 50, UID: uidOf(17), Quiet: true},
		"unknown":   {Limit: 50, Resources: []string{"pods"}},
		"yesterday": {Limit: 50, Until: epoch.Add(time.Minute), Quiet: true},
		"manager":   {Limit: 50, Managers: []string{"rare"}, Quiet: true},
		"namespace": {Limit: 50, Namespaces: []string{"rare"}, Quiet: true},
		"operation": {Limit: 50, Ops: []event.Op{event.Deleted}, Quiet: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := OpenReader(b.Context(), j.Path())
				if err != nil {
					b.Fatal(err)
				}
				for e, err := range r.Rows(b.Context(), q) {
					if err == nil {
						_, _, err = e.Contents(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
	r, err := OpenReader(b.Context(), j.Path())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.Run("seq-at", func(b *testing.B) {
		for b.Loop() {
			if seq, err := r.SeqAt(b.Context(), epoch.Add(time.Duration(rows/2)*37*time.Millisecond)); err != nil || seq < int64(rows/2-500) || seq > int64(rows/2) {
				b.Fatal(seq, err)
			}
		}
	})
	b.Run("nothing-to-retain", func(b *testing.B) {
		for b.Loop() {
			if got, err := j.Retain(b.Context(), epoch, Retention{Age: time.Hour, Size: 1 << 50}, 1<<62); err != nil || got.Removed > 0 {
				b.Fatal(got, err)
			}
		}
	})
}

// BenchmarkSharedName reads the first page of changes of 5,000 objects that share a name, as the service account "default"
// of each namespace does.
func BenchmarkSharedName(b *testing.B) {
	j, err := Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), Options{Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	f := &fleet{nodes: 5000}
	for f.n < 20_000 {
		batch := f.batch(500)
		for i := range batch[0].Rows {
			r := &batch[0].Rows[i]
			r.Kind, r.Namespace, r.Name, r.Quiet = podKind, r.Name, "default", false
		}
		if _, err := j.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	r, err := OpenReader(b.Context(), j.Path())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for name, q := range map[string]Query{
		"newest":    {Limit: 50},
		"oldest":    {Limit: 50, OldestFirst: true},
		"namespace": {Limit: 50, Namespaces: []string{"node-17"}},
	} {
		q.Names, q.Resources = []string{"default"}, []string{"pods"}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range r.Rows(b.Context(), q) {
					if n++; err != nil {
						b.Fatal(err)
					}
				}
				if n == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
}
