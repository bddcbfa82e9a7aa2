package suite

import "time"

// operator is a program made with controller-runtime: with client-go's informers, with ours where client-go's
// Reflector lists and watches, and with ours where the engine does.
func operator(z Size) Scenario {
	peer := "operator/client-go"
	sc := Scenario{Name: "operator", Real: true, Objects: z.Objects, Warm: []string{"client-go/widgets"}}
	for _, f := range []struct {
		what, job string
		heap, cpu Aim
	}{
		{"decoded by client-go", "operator/decoded", Aim{}, atMost("1.15×", 1.15)},
		{"raw", "operator/raw", atMost("1/8", 1./8), atMost("1/2", 1./2)},
	} {
		sc.Jobs = append(sc.Jobs, Step{Job: f.job, Limit: 10 * time.Minute})
		row := func(name, unit, value string, by float64, aim Aim, note string) {
			sc.Rows = append(sc.Rows, RowSpec{Name: "manager, " + f.what + ": " + name, Unit: unit, Ours: Of(f.job, value, by), Peer: Of(peer, value, by), Aim: aim, Note: note})
		}
		row("heap", "MiB", "steady heap B", mib, f.heap, "pods as types and as metadata, custom resources as maps, each read by its key")
		row("RSS", "MiB", "steady rss B", mib, Aim{}, "")
		row("CPU to sync", "s", "sync cpu s", 1, f.cpu, "")
		row("time to sync", "s", "sync s", 1, Aim{}, "")
		row("CPU to the last reconcile", "s", "settled cpu s", 1, Aim{}, "of every object once: most of it is the same on both sides")
		row("from a write to its reconcile, median", "ms", "median ms", 1, Aim{}, "the write takes most of it")
		row("from a write to its reconcile, p99", "ms", "p99 ms", 1, Aim{}, "")
		row("first List", "ms", "first list ms", 1, Aim{}, "")
		row("List", "ms", "list ns", 1e6, Aim{}, "all pods, by controller-runtime's client, which copies")
		row("List by an index", "ms", "list of a node ns", 1e6, Aim{}, "")
		row("List, not copied", "ms", "list, not copied ns", 1e6, Aim{}, "")
	}
	sc.Jobs = append(sc.Jobs, Step{Job: peer, Limit: 10 * time.Minute})
	return sc
}
