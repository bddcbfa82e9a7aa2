package story

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/story/storytest"
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

// TestAnyOrder: the streams of kinds have no order among each other, and the stories do not depend on it.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		changes := storytest.Random(r)
		want := tell(follow(t, changes))
		for range 5 {
			if got := tell(follow(t, storytest.Shuffled(r, changes))); got != want {
				t.Fatalf("seed %d: in another order, it reads\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

// TestStories: a rollout, a crash loop and a scaling, with what they are made of.
func TestStories(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.Pass(2 * time.Minute)
	d.RollOut("web:2")
	w.Pass(2 * time.Minute)
	d.Crash(d.PodNames()[0], 3, 10*time.Second)
	w.Pass(2 * time.Minute)
	d.Scale(1)
	goldentest.Compare(t, filepath.Join("testdata", "stories.txt"), tell(follow(t, w.Changes)))
}

// follow applies changes, numbered in this order, and returns the stories as they are then.
func follow(t *testing.T, changes []change.Change) map[string]Story {
	t.Helper()
	e := New("c", nil)
	all := map[string]Story{}
	for i := range changes {
		in := Read(&changes[i])
		in.Seq = int64(i + 1)
		updates, err := e.Apply(&in)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range updates {
			all[u.Story.ID] = u.Story
		}
	}
	return all
}

// TestRoutine: a story covers each routine change.
func TestRoutine(t *testing.T) {
	routine := 0
	for seed := range uint64(100) {
		changes := storytest.Random(rand.New(rand.NewPCG(seed, 2)))
		e := New("c", nil)
		for i := range changes {
			in := Read(&changes[i])
			in.Seq = int64(i + 1)
			updates, err := e.Apply(&in)
			if err != nil {
				t.Fatal(err)
			}
			if !in.Routine {
				continue
			}
			routine++
			covered := slices.ContainsFunc(updates, func(u Update) bool { return u.Story.Object.UID == in.Object.UID && u.Story.Last == in.Seq })
			if !covered {
				t.Fatalf("seed %d: no story covers change %d: %s %s/%s, %v", seed, in.Seq, in.Op, in.Object.Kind.Kind, in.Object.Name, changes[i].Fields)
			}
		}
	}
	if routine == 0 {
		t.Error("no change was routine")
	}
}
