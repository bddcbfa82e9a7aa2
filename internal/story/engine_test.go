package story

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// tell writes stories as a tree, by their begin, without the numbers of changes.
func tell(all map[string]Story) string {
	var b strings.Builder
	var under func(parent, indent string)
	under = func(parent, indent string) {
		list := slices.Collect(maps.Values(all))
		slices.SortFunc(list, func(a, b Story) int {
			if c := a.Begin.Compare(b.Begin); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
		for _, s := range list {
			if s.Parent == parent {
				end := "…"
				if !s.Open() {
					end = s.End.Format("04:05")
				}
				fmt.Fprintf(&b, "%s%s–%s %s %s/%s: %s %s (%d changes)\n", indent, s.Begin.Format("04:05"), end, s.Kind, s.Object.Kind.Kind, s.Object.Name, s.State.Word, s.Worst, s.Changes)
				under(s.ID, indent+"  ")
			}
		}
	}
	under("", "")
	return b.String()
}

// random plays a random hour of two Deployments.
func random(r *rand.Rand) []change.Change {
	w := newWorld()
	var all []*deployment
	for i := range 2 {
		all = append(all, newDeployment(w, r, fmt.Sprint("d", i), 1+r.IntN(3)))
		w.pass(time.Duration(r.IntN(100)) * time.Second)
	}
	for i := range 6 {
		d := all[r.IntN(len(all))]
		switch r.IntN(4) {
		case 0:
			d.rollOut(fmt.Sprint("web:", i+2))
		case 1:
			d.scale(1 + r.IntN(4))
		case 2:
			if names := sorted(d.pods); len(names) > 0 {
				d.crash(names[r.IntN(len(names))], 1+r.IntN(3), time.Duration(1+r.IntN(90))*time.Second)
			}
		case 3:
			if names := sorted(d.pods); len(names) > 0 {
				name := names[0]
				d.stopPod(name)
				d.status()
				d.reconcile(len(d.pods) + 1)
				w.pass(time.Second)
				w.remove("Pod/" + name)
			}
		}
		w.pass(time.Duration(r.IntN(200)) * time.Second)
	}
	return w.changes
}

// shuffled interleaves the changes of kinds anew. The order within a kind stays.
func shuffled(r *rand.Rand, changes []change.Change) []change.Change {
	streams := map[string][]change.Change{}
	for _, c := range changes {
		streams[c.Kind.Resource] = append(streams[c.Kind.Resource], c)
	}
	names := slices.Sorted(maps.Keys(streams))
	var out []change.Change
	for len(names) > 0 {
		i := r.IntN(len(names))
		for range 1 + r.IntN(20) {
			if len(streams[names[i]]) == 0 {
				break
			}
			out = append(out, streams[names[i]][0])
			streams[names[i]] = streams[names[i]][1:]
		}
		if len(streams[names[i]]) == 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	return out
}

// TestAnyOrder: the streams of kinds have no order among each other, and the stories do not depend on it.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		changes := random(r)
		want := tell(follow(t, changes))
		for range 5 {
			if got := tell(follow(t, shuffled(r, changes))); got != want {
				t.Fatalf("seed %d: in another order, it reads\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

func TestTell(t *testing.T) {
	w := newWorld()
	d := newDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.pass(2 * time.Minute)
	d.rollOut("web:2")
	w.pass(2 * time.Minute)
	d.crash(sorted(d.pods)[0], 3, 10*time.Second)
	w.pass(2 * time.Minute)
	d.scale(1)
	t.Log("\n" + tell(follow(t, w.changes)))
}
