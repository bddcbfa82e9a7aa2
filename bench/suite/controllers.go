package suite

import (
	"runtime/debug"
	"time"
)

// controllers compares one controller on informer/controller and on controller-runtime.
func controllers(z Size) Scenario {
	ours, peer := "controller/tattler", "controller/controller-runtime"
	n := float64(z.Objects)
	notBehind := atMost("1×", 1)
	sc := Scenario{
		Name: "controller", Real: true, Objects: z.Objects,
		Jobs: []Step{{Job: ours, Limit: 10 * time.Minute}, {Job: peer, Limit: 10 * time.Minute}},
		Rows: []RowSpec{
			{Name: "controller: heap", Unit: "MiB", Ours: Of(ours, "steady heap B", mib), Peer: Of(peer, "steady heap B", mib), Aim: atMost("1/8", 1./8),
				Note: "after each object was reconciled once; each reconcile gets its pod and lists about five by an index"},
			{Name: "controller: heap after 6,000 writes", Unit: "MiB", Ours: Of(ours, "loaded heap B", mib), Peer: Of(peer, "loaded heap B", mib), Aim: atMost("1/8", 1./8)},
			{Name: "controller: RSS", Unit: "MiB", Ours: Of(ours, "loaded rss B", mib), Peer: Of(peer, "loaded rss B", mib)},
			{Name: "controller: time until each object was reconciled", Unit: "s", Ours: Of(ours, "reconciled s", 1), Peer: Of(peer, "reconciled s", 1), Aim: notBehind},
			{Name: "controller: reconciles/s until then, from the synced cache on", Unit: "1/s", Ours: Of(ours, "reconciles 1/s", 1), Peer: Of(peer, "reconciles 1/s", 1),
				Aim: Aim{Text: "≥ 1×", Limit: 1, AtLeast: true}},
			{Name: "controller: CPU until then, for each object", Unit: "µs", Ours: Of(ours, "settled cpu s", n/1e6), Peer: Of(peer, "settled cpu s", n/1e6), Aim: notBehind},
			{Name: "controller: from a write to its reconcile at 300 writes/s, median", Unit: "ms", Ours: Of(ours, "median ms", 1), Peer: Of(peer, "median ms", 1), Aim: notBehind,
				Note: "the write takes most of the time"},
			{Name: "controller: from a write to its reconcile at 300 writes/s, p99", Unit: "ms", Ours: Of(ours, "p99 ms", 1), Peer: Of(peer, "p99 ms", 1), Aim: notBehind},
			{Name: "controller: CPU for each write and its reconcile", Unit: "µs", Ours: Per(ours, "load cpu s", "load reconciles", 1e-6), Peer: Per(peer, "load cpu s", "load reconciles", 1e-6), Aim: notBehind,
				Note: "the writer is in the same process, on both sides"},
		},
	}
	for i := range sc.Rows {
		sc.Rows[i].Beside = controllerRuntime()
	}
	return sc
}

// controllerRuntime names the peer with its version.
func controllerRuntime() string {
	const name = "controller-runtime"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/"+name {
				return name + " " + m.Version
			}
		}
	}
	return name
}
