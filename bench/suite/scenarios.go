package suite

import (
	"fmt"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gb  = 1e9
)

// Size is the scale of a run.
type Size struct {
	// Objects is the number of objects of most rows.
	Objects int
	// Quick makes everything small, to check that it works; the numbers mean little.
	Quick bool
	// Tiny is smaller still, for tests: every row gets a meaningless value.
	Tiny bool
}

// scale returns n, or a hundredth of it for Quick, or a minimum for Tiny.
func (z Size) scale(n int) int {
	switch {
	case z.Tiny:
		return min(n, 100)
	case z.Quick:
		return max(n/100, 500)
	}
	return n
}

// Scenarios returns all scenarios.
func Scenarios(z Size) []Scenario {
	all := []Scenario{
		typed(z), typedIndex(z), live(z), unstructured(z), widgets(z), storages(z), reads(z), manyApps(z), liveChurn(z),
		relistHeap(z), relistRSS(z), audit(z), events(z), stuck(z, "updates"), stuck(z, "churn"), restart(z), million(z),
	}
	all = append(all, operators(z), operatorReads(z), controllers(z))
	all = append(all, daemon(z)...)
	all = append(all, delivery(z)...)
	for i := range all {
		all[i].Warm = append(all[i].Warm, "bare/stream-protobuf")
	}
	return all
}

func jobs(names ...string) []Step {
	list := make([]Step, len(names))
	for i, n := range names {
		list[i] = Step{Job: n}
	}
	return list
}

func atMost(text string, ratio float64) Aim { return Aim{Text: "≤ " + text, Limit: ratio} }

// synced has the rows of every scenario that syncs an informer.
func synced(what, ours, peer, bare string, n int, heap, cpu Aim) []RowSpec {
	rows := []RowSpec{
		{Name: what + ": CPU to sync", Unit: "s", Ours: Of(ours, "settled cpu s", 1), Peer: Of(peer, "settled cpu s", 1), Aim: cpu},
		{Name: what + ": heap per object", Unit: "B", Ours: Of(ours, "hot heap B", float64(n)), Peer: Of(peer, "steady heap B", float64(n)), Aim: heap,
			Note: "ours with a full set of decoded objects, which reads fill"},
		{Name: what + ": heap per object, before anything is read", Unit: "B", Ours: Of(ours, "steady heap B", float64(n)), Peer: Of(peer, "steady heap B", float64(n))},
		{Name: what + ": RSS", Unit: "MiB", Ours: Of(ours, "steady rss B", mib), Peer: Of(peer, "steady rss B", mib)},
		{Name: what + ": peak RSS", Unit: "MiB", Ours: Of(ours, "steady peak rss B", mib), Peer: Of(peer, "steady peak rss B", mib)},
		{Name: what + ": time to sync", Unit: "s", Ours: Of(ours, "sync s", 1), Peer: Of(peer, "sync s", 1)},
	}
	if bare == "" {
		return rows
	}
	return append(rows,
		RowSpec{Name: what + ": time to sync, beside the download", Unit: "s", Ours: Of(ours, "sync s", 1), Peer: Of(bare, "sync s", 1), Aim: atMost("1.2×", 1.2), Beside: bare},
		RowSpec{Name: what + ": client-go's time to sync, beside the download", Unit: "s", Ours: Of(peer, "sync s", 1), Peer: Of(bare, "sync s", 1), Beside: bare,
			Note: "the column ours is client-go's"},
	)
}

func typed(z Size) Scenario {
	rows := synced("typed pods", "tattler/typed", "client-go/typed", "bare/stream-protobuf", z.Objects, atMost("1/33", 1./33), atMost("1/4", 1./4))
	return Scenario{Name: "typed", Real: true, Objects: z.Objects, Jobs: jobs("tattler/typed", "client-go/typed", "bare/stream-protobuf"), Rows: rows}
}

func typedIndex(z Size) Scenario {
	rows := synced("typed pods, an index by a function", "tattler/typed-index", "client-go/typed-index", "", z.Objects, Aim{}, atMost("0.45", .45))
	rows = append(rows, synced("typed pods, an index by a field", "tattler/typed-field-index", "client-go/typed-index", "", z.Objects, Aim{}, atMost("0.3", .3))...)
	return Scenario{
		Name: "typed-index", Real: true, Objects: z.Objects, Rows: rows,
		Jobs: jobs("tattler/typed-index", "tattler/typed-field-index", "client-go/typed-index"),
	}
}

// live keeps every object decoded, like client-go.
func live(z Size) Scenario {
	sc := Scenario{Name: "live", Real: true, Objects: z.Objects}
	for _, s := range []struct {
		what, ours, peer string
		heap             Aim
	}{
		{"typed pods", "tattler/live", "client-go/typed", atMost("0.33", .33)},
		{"unstructured pods", "tattler/live-unstructured", "client-go/dynamic", atMost("0.25", .25)},
	} {
		sc.Jobs = append(sc.Jobs, jobs(s.ours, s.peer)...)
		sc.Rows = append(sc.Rows,
			RowSpec{Name: "live, " + s.what + ": heap per object", Unit: "B", Ours: Of(s.ours, "steady heap B", float64(z.Objects)), Peer: Of(s.peer, "steady heap B", float64(z.Objects)), Aim: s.heap},
			RowSpec{Name: "live, " + s.what + ": CPU to sync", Unit: "s", Ours: Of(s.ours, "settled cpu s", 1), Peer: Of(s.peer, "settled cpu s", 1), Aim: atMost("0.5", .5)},
			RowSpec{Name: "live, " + s.what + ": a forced garbage collection", Unit: "ms", Ours: Of(s.ours, "gc ns", 1e6), Peer: Of(s.peer, "gc ns", 1e6), Aim: atMost("0.45", .45)})
	}
	return sc
}

// manyApps has fewer similar pods: ten of each application.
func manyApps(z Size) Scenario {
	sc := Scenario{Name: "many-apps", Objects: z.Objects, Apps: max(z.Objects/10, 1), Jobs: jobs("tattler/typed", "tattler/live", "client-go/typed")}
	for _, s := range []struct{ what, ours string }{{"compact", "tattler/typed"}, {"live", "tattler/live"}} {
		sc.Rows = append(sc.Rows,
			RowSpec{Name: "ten pods of each application, " + s.what + ": heap per object", Unit: "B", Ours: Of(s.ours, "steady heap B", float64(z.Objects)), Peer: Of("client-go/typed", "steady heap B", float64(z.Objects))},
			RowSpec{Name: "ten pods of each application, " + s.what + ": CPU to sync", Unit: "s", Ours: Of(s.ours, "settled cpu s", 1), Peer: Of("client-go/typed", "settled cpu s", 1)})
	}
	return sc
}

// liveChurn is a day of rollouts: every pod is replaced many times.
func liveChurn(z Size) Scenario {
	ours := "tattler/live-churn"
	return Scenario{Name: "live-churn", Objects: z.scale(10_000), Events: z.scale(200_000), Jobs: []Step{{Job: ours, Limit: 15 * time.Minute}}, Rows: []RowSpec{
		{Name: "live: growth of the heap by 200,000 pods that came and went, after as many others", Unit: "MiB", Ours: Of(ours, "growth B", mib), Peer: Of(ours, "before B", mib), Beside: "our steady heap",
			Aim: atMost("0.05", .05)},
	}}
}

func unstructured(z Size) Scenario {
	rows := synced("unstructured pods", "tattler/unstructured", "client-go/dynamic", "bare/stream-json", z.Objects, atMost("1/50", 1./50), atMost("1/12", 1./12))
	return Scenario{Name: "unstructured", Real: true, Warm: []string{"bare/stream-json"}, Objects: z.Objects, Jobs: jobs("tattler/unstructured", "client-go/dynamic", "bare/stream-json"), Rows: rows}
}

func widgets(z Size) Scenario {
	rows := synced("custom resources", "tattler/widgets", "client-go/widgets", "", z.Objects, Aim{}, Aim{})
	return Scenario{Name: "widgets", Real: true, Warm: []string{"client-go/widgets"}, Objects: z.Objects, Jobs: jobs("tattler/widgets", "client-go/widgets"), Rows: rows}
}

// storages compares the forms in which objects can be kept.
func storages(z Size) Scenario {
	sc := Scenario{Name: "storages", Real: true, Objects: z.Objects, Jobs: jobs("client-go/reads")}
	for _, s := range []string{"compact", "auto", "live"} {
		job := "tattler/reads-" + s
		sc.Jobs = append(sc.Jobs, Step{Job: job})
		for _, r := range []struct{ what, ours, peer string }{
			{"all, cold", "all cold ns", "all copied ns"}, {"all, hot", "all hot ns", "all copied ns"}, {"all, Shared, hot", "all shared ns", "all shared ns"},
			{"1 % by a selector", "select copied ns", "select copied ns"}, {"1 % by a selector, Shared", "select shared ns", "select shared ns"},
		} {
			spec := RowSpec{Name: fmt.Sprintf("storage %s: %s", s, r.what), Unit: "ms", Ours: Of(job, r.ours, 1e6), Peer: Of("client-go/reads", r.peer, 1e6)}
			switch {
			case r.ours == "select copied ns", r.ours == "select shared ns", s == "live" && r.ours == "all hot ns":
				spec.Aim = atMost("1.1×", 1.1)
			case s == "live" && r.ours == "all shared ns":
				spec.Aim = atMost("1.1×", 1.1)
			case s == "compact" && r.ours == "all shared ns":
				spec.Aim = Aim{Text: "≤ 250 ms for 20,000", Limit: 250 * float64(z.Objects) / 20_000, Absolute: true}
			}
			sc.Rows = append(sc.Rows, spec)
		}
		sc.Rows = append(sc.Rows, RowSpec{Name: fmt.Sprintf("storage %s: heap per object after reading all", s), Unit: "B",
			Ours: Of(job, "read heap B", float64(z.Objects)), Peer: Of("client-go/reads", "read heap B", float64(z.Objects))})
	}
	return sc
}

func reads(z Size) Scenario {
	ours, untyped, peer := "tattler/reads-compact", "tattler/reads-unstructured", "client-go/reads"
	return Scenario{Name: "reads", Real: true, Objects: z.Objects, Jobs: jobs(ours, peer, untyped), Rows: []RowSpec{
		{Name: "Get, hot", Unit: "µs", Ours: Of(ours, "get hot ns", 1e3), Peer: Of(peer, "get hot ns", 1e3), Aim: atMost("1.5×", 1.5), Note: "beside Get and DeepCopy"},
		{Name: "Get, cold, typed", Unit: "µs", Ours: Of(ours, "get cold ns", 1e3), Peer: Of(peer, "get cold ns", 1e3), Aim: Aim{Text: "≤ 20 µs", Limit: 20, Absolute: true}},
		{Name: "Get, cold, unstructured", Unit: "µs", Ours: Of(untyped, "get cold ns", 1e3), Aim: Aim{Text: "≤ 60 µs", Limit: 60, Absolute: true}},
		{Name: "Shared().Get, hot", Unit: "ns", Ours: Of(ours, "get shared ns", 1), Peer: Of(peer, "get shared ns", 1), Aim: Aim{Text: "≤ 200 ns", Limit: 200, Absolute: true}},
	}}
}

func relistHeap(z Size) Scenario {
	ours, peer := "tattler/relist-heap", "client-go/relist-heap"
	return Scenario{Name: "relist-heap", Objects: z.Objects, Jobs: jobs(ours, peer), Rows: []RowSpec{
		{Name: "relist: peak live heap, beside our steady one", Unit: "MiB", Ours: Of(ours, "peak heap B", mib), Peer: Of(ours, "steady heap B", mib), Aim: atMost("1.15×", 1.15), Beside: "our steady heap"},
		{Name: "relist: client-go's peak live heap, beside its steady one", Unit: "MiB", Ours: Of(peer, "peak heap B", mib), Peer: Of(peer, "steady heap B", mib), Beside: "its steady heap",
			Note: "the column ours is client-go's"},
	}}
}

func relistRSS(z Size) Scenario {
	ours, peer := "tattler/relist-rss", "client-go/relist-rss"
	return Scenario{Name: "relist-rss", Objects: z.Objects, Jobs: jobs(ours, peer), Rows: []RowSpec{
		{Name: "relist: growth of RSS", Unit: "MiB", Ours: Of(ours, "growth B", mib), Peer: Of(peer, "growth B", mib), Aim: Aim{Text: "≤ 32 MiB", Limit: 32, Absolute: true},
			Note: "beyond the resident memory after unused memory was returned to the system"},
	}}
}

// audit measures the metadata-only list that is compared with the cache every few hours.
func audit(z Size) Scenario {
	n := z.scale(100_000)
	ours, bare := "tattler/audit", "tattler/typed"
	return Scenario{Name: "audit", Objects: n, Jobs: jobs(ours, bare), Rows: []RowSpec{
		{Name: "audit: CPU, beside that of the first sync", Unit: "s", Ours: Of(ours, "audit cpu s", 1), Peer: Of(bare, "settled cpu s", 1), Aim: atMost("1/2", 1./2), Beside: "our first sync"},
		{Name: "audit: time", Unit: "s", Ours: Of(ours, "audit s", 1), Peer: Of(bare, "sync s", 1), Beside: "our first sync"},
		{Name: "audit: bytes read for each object", Unit: "B", Ours: Of(ours, "audit bytes B", float64(n))},
		{Name: "audit: growth of RSS", Unit: "MiB", Ours: Of(ours, "audit growth B", mib), Aim: Aim{Text: "≤ 32 MiB", Limit: 32, Absolute: true}},
	}}
}

func events(z Size) Scenario {
	n := z.scale(200_000)
	sc := Scenario{Name: "events", Objects: z.Objects, Events: n, Jobs: jobs("client-go/events", "client-go/events-both")}
	for _, s := range []struct {
		what, job, peer string
		aim             Aim
	}{
		{"old and new, Shared, in handlers", "tattler/events-handle", "client-go/events-both", Aim{Text: "≥ 1.7×", Limit: 1.7, AtLeast: true}},
		{"old and new, copies, in handlers", "tattler/events-handle-copies", "client-go/events-both", Aim{}},
		{"old and new, Shared", "tattler/events-both", "client-go/events-both", Aim{Text: "≥ 1.7×", Limit: 1.7, AtLeast: true}},
		{"Shared objects", "tattler/events-shared", "client-go/events", Aim{Text: "≥ 1.7×", Limit: 1.7, AtLeast: true}},
		{"keys", "tattler/events-keys", "client-go/events", Aim{Text: "≥ 1.5×", Limit: 1.5, AtLeast: true}},
		{"private copies", "tattler/events-copies", "client-go/events", Aim{}},
		{"Shared objects, every version", "tattler/events-every", "client-go/events", Aim{}},
		{"objects, as handlers of client-go's interface", "operator/events", "client-go/events", Aim{}},
	} {
		peer := s.peer
		sc.Jobs = append(sc.Jobs, Step{Job: s.job})
		rate := func(job string) Measure { return Per(job, "sent", "events s", 1) }
		cpu := func(job string) Measure { return Per(job, "events cpu s", "sent", 1e-6) }
		sc.Rows = append(sc.Rows,
			RowSpec{Name: "events to 10 subscribers that read " + s.what, Unit: "1/s", Ours: rate(s.job), Peer: rate(peer), Aim: s.aim},
			RowSpec{Name: "events to 10 subscribers that read " + s.what + ": CPU for each", Unit: "µs", Ours: cpu(s.job), Peer: cpu(peer)},
			RowSpec{Name: "events to 10 subscribers that read " + s.what + ": handed on", Unit: "", Ours: Per(s.job, "heard", "sent", 1), Peer: Per(peer, "heard", "sent", 1)})
	}
	return sc
}

// stuck measures the cost of a subscriber that never returns, during 1,000,000 updates or as many
// creations and deletions.
func stuck(z Size, what string) Scenario {
	ours, peer, n := "tattler/stuck-"+what, "client-go/stuck-"+what, z.scale(1_000_000)
	happens := map[string]string{"updates": "1,000,000 updates", "churn": "1,000,000 creations and deletions"}[what]
	sc := Scenario{Name: "stuck-" + what, Objects: z.scale(10_000), Events: n, Jobs: []Step{{Job: ours, Limit: 15 * time.Minute}, {Job: peer, Limit: 15 * time.Minute}}}
	all := func(job string) Measure { return Per(job, "growth B", "events", mib/float64(n)) }
	sc.Rows = []RowSpec{
		{Name: "one stuck subscriber: growth of the heap by " + happens, Unit: "MiB", Ours: all(ours), Peer: all(peer),
			Note: "client-go's growth is extrapolated from 100,000 updates, or from 50,000 pods that are created and deleted"},
		{Name: "one stuck subscriber: growth for each cached object by " + happens, Unit: "B", Ours: Of(ours, "growth B", float64(sc.Objects)), Peer: Per(peer, "growth B", "events", float64(sc.Objects)/float64(n)),
			Aim: Aim{Text: "bounded by objects: ≤ 2048 B", Limit: 2 * kib, Absolute: true}},
	}
	return sc
}

func restart(z Size) Scenario {
	n := z.scale(100_000)
	ours, peer := "tattler/restart", "client-go/typed"
	return Scenario{Name: "restart", Objects: n, Jobs: []Step{{Job: "tattler/checkpoint", Prepare: true}, {Job: ours}, {Job: peer}}, Rows: []RowSpec{
		{Name: "restart from a checkpoint: Loaded", Unit: "s", Ours: Of(ours, "loaded s", 1), Peer: Of(peer, "sync s", 1), Aim: Aim{Text: "≤ 1 s", Limit: 1, Absolute: true}, Note: "client-go lists again"},
		{Name: "restart from a checkpoint: Synced", Unit: "s", Ours: Of(ours, "sync s", 1), Peer: Of(peer, "sync s", 1), Aim: Aim{Text: "≤ 3 s", Limit: 3, Absolute: true}},
		{Name: "restart from a checkpoint: lists, beyond limit=1", Unit: "", Ours: Of(ours, "lists", 1), Aim: Aim{Text: "0", Limit: 0, Absolute: true}},
		{Name: "restart from a checkpoint: CPU", Unit: "s", Ours: Of(ours, "settled cpu s", 1), Peer: Of(peer, "settled cpu s", 1)},
	}}
}

// millionLimit is the GOMEMLIMIT for 1,000,000 pods.
const millionLimit = 1100 * mib

func million(z Size) Scenario {
	n := z.scale(1_000_000)
	ours := "tattler/million"
	return Scenario{Name: "million", Objects: n, Jobs: []Step{{Job: ours, Limit: 20 * time.Minute, MemoryLimit: millionLimit}}, Rows: []RowSpec{
		{Name: "1,000,000 pods: live heap", Unit: "GB", Ours: Of(ours, "hot heap B", gb), Aim: Aim{Text: "≤ 0.75 GB", Limit: .75, Absolute: true},
			Note: fmt.Sprintf("GOMEMLIMIT=%dMiB; client-go does not run: see its heap per object", millionLimit/mib)},
		{Name: "1,000,000 pods: peak RSS", Unit: "GiB", Ours: Of(ours, "steady peak rss B", 1<<30), Aim: Aim{Text: "≤ 1.2 GiB", Limit: 1.2, Absolute: true}},
		{Name: "1,000,000 pods: CPU to sync", Unit: "s", Ours: Of(ours, "settled cpu s", 1)},
		{Name: "1,000,000 pods: time to sync", Unit: "s", Ours: Of(ours, "sync s", 1)},
	}}
}
