package render

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// told writes the lines of the stories of a world, as of its end.
func told(t *testing.T, w *storytest.World) string {
	t.Helper()
	e := story.New("c", nil)
	all := map[string]story.Story{}
	for i := range w.Changes {
		in := story.Read(&w.Changes[i])
		in.Seq = int64(i + 1)
		updates, err := e.Apply(&in)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range updates {
			all[u.Story.ID] = u.Story
		}
	}
	parts := map[string][]story.Story{}
	var heads []story.Story
	for _, s := range all {
		if s.Parent == "" {
			heads = append(heads, s)
		} else {
			parts[s.Parent] = append(parts[s.Parent], s)
		}
	}
	slices.SortFunc(heads, func(a, b story.Story) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.ID, b.ID)) })
	var b strings.Builder
	for i := range heads {
		s := &heads[i]
		slices.SortFunc(parts[s.ID], func(a, b story.Story) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.ID, b.ID)) })
		line := Tell(s, parts[s.ID], w.Now())
		fmt.Fprintf(&b, "%s %s/%s %s (%s)\n", line.At.Format(time.TimeOnly), strings.ToLower(s.Object.Kind.Kind), s.Object.Name, line.Text, line.Severity)
	}
	return b.String()
}

func TestTell(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.Pass(2 * time.Minute)
	d.RollOut("web:2")
	w.Pass(2 * time.Minute)
	d.Crash(d.PodNames()[0], 3, 10*time.Second)
	w.Pass(2 * time.Minute)
	d.Scale(1)
	t.Log("\n" + told(t, w))
}
