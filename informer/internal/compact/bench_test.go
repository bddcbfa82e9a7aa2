package compact

import (
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// orders returns the items in the order of a list, sorted by key, and of random churn.
func orders(items []samples.Item) map[string][]samples.Item {
	return map[string][]samples.Item{"list": items, "churn": samples.Shuffled(items)}
}

// BenchmarkPack packs pods of 200 applications, which have samples; S2 without a dictionary is the peer.
func BenchmarkPack(b *testing.B) {
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		pods := samples.New(1).Pods(f, 200, 20)
		for order, items := range orders(pods) {
			b.Run(f.String()+"/"+order, func(b *testing.B) {
				p := Packer{Router: NewRouter(Options{})}
				versions := packAll(&p, items)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					it, v := &items[i%len(items)], &versions[i%len(items)]
					*v = p.Pack(f, it.UID, it.RV, it.Raw)
				}
			})
		}
		b.Run(f.String()+"/s2", func(b *testing.B) {
			dst := make([]byte, s2.MaxEncodedLen(maxSource))
			for i := 0; b.Loop(); i++ {
				s2.Encode(dst, pods[i%len(pods)].Raw)
			}
		})
	}
}

// BenchmarkAppend unpacks pods of 200 applications.
func BenchmarkAppend(b *testing.B) {
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		for order, items := range orders(samples.New(1).Pods(f, 200, 20)) {
			b.Run(f.String()+"/"+order, func(b *testing.B) {
				versions := packAll(&Packer{Router: NewRouter(Options{})}, items)
				dst := make([]byte, 0, maxSource)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := versions[i%len(items)].Append(dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSource packs whole sources, and reports the bytes per object with its share of the samples, the shared dictionary
// and the router.
func BenchmarkSource(b *testing.B) {
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		for _, c := range []struct {
			name string
			make func() []samples.Item
		}{
			{"pods-200x100", func() []samples.Item { return samples.New(1).Pods(f, 200, 100) }},
			{"pods-2000x10", func() []samples.Item { return samples.New(1).Pods(f, 2000, 10) }},
			{"pods-6000x3", func() []samples.Item { return samples.New(1).Pods(f, 6000, 3) }},
			{"pods-20000x1", func() []samples.Item { return samples.New(1).Pods(f, 20000, 1) }},
			{"pods-30x10", func() []samples.Item { return samples.New(1).Pods(f, 30, 10) }},
			{"replicasets-500x10", func() []samples.Item { return samples.New(1).ReplicaSets(f, 500, 10) }},
			{"configmaps-20000", func() []samples.Item { return samples.New(1).ConfigMaps(f, 20_000) }},
			{"leases-5000", func() []samples.Item { return samples.New(1).Leases(f, 5_000) }},
		} {
			items := []samples.Item(nil)
			for _, order := range []string{"list", "churn"} {
				b.Run(f.String()+"/"+c.name+"/"+order, func(b *testing.B) {
					if items == nil {
						items = c.make()
					}
					items, raw := orders(items)[order], 0
					for _, it := range items {
						raw += len(it.Raw)
					}
					for b.Loop() {
						r := NewRouter(Options{})
						versions := packAll(&Packer{Router: r}, items)
						b.ReportMetric(cost(versions, r), "B/object")
					}
					n := float64(len(items))
					b.ReportMetric(float64(raw)/n, "raw-B/object")
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/object")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
