package suite

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/bench/operator"
)

// operators compares a controller-runtime program on client-go's informers, on ours fed by client-go's Reflector, and
// on ours fed by the engine.
func operators(z Size) Scenario {
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

// operatorReads compares the memory and CPU of managers that read in three ways.
func operatorReads(z Size) Scenario {
	sc := Scenario{Name: "operator-reads", Real: true, Objects: z.Objects, Warm: []string{"client-go/widgets"}}
	for _, reads := range operator.Reads {
		for _, form := range operator.Forms {
			for _, stripped := range []bool{false, true} {
				ours, peer := operator.ReadsJob(true, reads, form, stripped), operator.ReadsJob(false, reads, form, stripped)
				sc.Jobs = append(sc.Jobs, Step{Job: peer, Limit: 10 * time.Minute}, Step{Job: ours, Limit: 10 * time.Minute})
				heap, cpu := readsAims(reads, form)
				row := func(name, unit, value string, by float64, aim Aim) {
					what := fmt.Sprintf("manager, %s, %s: %s", reads, form, name)
					if stripped {
						what += ", without managed fields"
					}
					sc.Rows = append(sc.Rows, RowSpec{Name: what, Unit: unit, Ours: Of(ours, value, by), Peer: Of(peer, value, by), Aim: aim})
				}
				row("heap", "MiB", "steady heap B", mib, heap)
				row("CPU", "s", "reads cpu s", 1, cpu)
				row("from a write to its reconcile, median", "ms", "median ms", 1, atMost("1.1×", 1.1))
				row("from a write to its reconcile, p99", "ms", "p99 ms", 1, atMost("1.1×", 1.1))
				row("peak RSS of the start", "MiB", "start peak rss B", mib, atMost("1/2", 1./2))
			}
		}
	}
	return sc
}

func readsAims(reads, form string) (heap, cpu Aim) {
	switch {
	case reads == "hardly":
		return atMost("1/10", 1./10), Aim{}
	case reads == "index":
		return atMost("1/3", 1./3), atMost("0.9×", 0.9)
	case form == "unstructured":
		return atMost("0.25×", 0.25), atMost("0.9×", 0.9)
	}
	return atMost("0.35×", 0.35), atMost("0.9×", 0.9)
}
