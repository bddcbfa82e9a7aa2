// The benchmarks measure a restart and a new file.

package checkpoint

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// pods is the first batch of a stream of n pods of some applications. A pod differs from the others of its
// application in about 450 bytes.
func pods(n, of int) store.Batch {
	rng := rand.New(rand.NewPCG(1, 1))
	apps := make([]string, of)
	for i := range apps {
		var b strings.Builder
		for b.Len() < 5500 {
			fmt.Fprintf(&b, `,"field%d":"value %x"`, rng.IntN(1000), rng.Uint32())
		}
		apps[i] = b.String()
	}
	p := compact.Packer{Router: compact.NewRouter(compact.Options{})}
	batch := store.Batch{Epoch: 1, Phase: store.Live, Version: fmt.Sprint(10_000_000 + n), Served: 0x5e7d}
	own := make([]byte, 240)
	for i := range n {
		app := rng.IntN(len(apps))
		for j := range own {
			own[j] = byte(rng.Uint32())
		}
		key := store.Key{Namespace: fmt.Sprint("team-", app%40), Name: fmt.Sprintf("app-%d-%010x-%05x", app, rng.Uint64()>>24, rng.Uint32()>>12)}
		uid := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", rng.Uint32(), i&0xffff, i&0xfff, i>>4&0xfff, rng.Uint64()>>16)
		rv := fmt.Sprint(10_000_000 + i)
		raw := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":%q,"labels":{"app":"app-%d"}},"own":%q%s}`,
			key.Name, key.Namespace, uid, rv, app, base64.StdEncoding.EncodeToString(own), apps[app])
		batch.Deltas = append(batch.Deltas, store.Delta{Op: store.Added, Key: key, New: p.PackSummed(wire.JSON, uid, rv, wire.Sum(wire.JSON, []byte(raw)), []byte(raw))})
	}
	return batch
}

// written returns the file of a batch.
func written(tb testing.TB, b store.Batch) []byte {
	d := newMemDisk()
	f, err := d.Create("f")
	if err != nil {
		tb.Fatal(err)
	}
	w, err := newWriter(f, maxBuffer, &header{stream: "pods"})
	if err == nil {
		err = w.apply(&b)
	}
	if err == nil {
		err = w.commit(store.Head{Epoch: b.Epoch, Phase: b.Phase, Version: b.Version, Served: b.Served})
	}
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return d.names["f"].data
}

// BenchmarkLoad100k loads 100,000 pods from memory: the cost of a restart without disk reads.
func BenchmarkLoad100k(b *testing.B) {
	const n = 100_000
	file := written(b, pods(n, 200))
	b.ReportAllocs()
	for b.Loop() {
		l, err := load(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			b.Fatal(err)
		}
		if st := l.state(int64(len(file))); len(st.Items) != n {
			b.Fatal(len(st.Items))
		}
	}
	b.ReportMetric(float64(len(file))/n, "file-B/object")
}

type discard struct{ io.ReadWriter }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Sync() error                 { return nil }
func (discard) Close() error                { return nil }
func (discard) Size() (int64, error)        { return 0, nil }

// BenchmarkWrite100k writes 100,000 pods without a disk: the cost of a new file.
func BenchmarkWrite100k(b *testing.B) {
	batch := pods(100_000, 200)
	b.ReportAllocs()
	for b.Loop() {
		w, err := newWriter(discard{}, maxBuffer, &header{stream: "pods"})
		if err == nil {
			err = w.apply(&batch)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
