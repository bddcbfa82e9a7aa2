package render

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// storyLines writes the lines of the stories of a world, as of its end.
func storyLines(t *testing.T, w *storytest.World) string {
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
	var b strings.Builder
	for _, tree := range trees(all) {
		line := Tell(tree, w.Now())
		fmt.Fprintf(&b, "%s %s/%s %s (%s)\n", line.At.Format(time.TimeOnly), strings.ToLower(tree.Object.Kind.Kind), tree.Object.Name, line.Text, line.Severity)
	}
	return b.String()
}

// trees returns the stories that are no part of others, in the order in which they came to where they stand.
func trees(all map[string]story.Story) (heads []*story.Tree) {
	of := map[string]*story.Tree{}
	head := func(s story.Story) string {
		for s.Parent != "" {
			s = all[s.Parent]
		}
		if s.Kind == story.Incident && s.Via != "" {
			return s.Via
		}
		return s.ID
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b story.Story) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.ID, b.ID)) })
	for _, s := range list {
		if head(s) == s.ID {
			of[s.ID] = &story.Tree{Story: s, Seq: s.Moved}
			heads = append(heads, of[s.ID])
		}
	}
	for _, s := range list {
		if h := of[head(s)]; h.ID != s.ID {
			h.Parts = append(h.Parts, s)
		}
	}
	for _, h := range heads {
		for _, s := range append([]story.Story{h.Story}, h.Parts...) {
			if v, ok := all[s.Via]; ok && v.ID != h.ID && !slices.ContainsFunc(h.Via, func(o story.Story) bool { return o.ID == v.ID }) {
				h.Via = append(h.Via, v)
			}
		}
	}
	slices.SortStableFunc(heads, func(a, b *story.Tree) int { return cmp.Compare(a.Seq, b.Seq) })
	return heads
}

// TestTell: a rollout, a crash loop and a scaling each are one line.
func TestTell(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 3)
	w.Pass(2 * time.Minute)
	d.RollOut("web:2")
	w.Pass(2 * time.Minute)
	d.Crash(d.PodNames()[0], 3, 10*time.Second)
	w.Pass(2 * time.Minute)
	d.Scale(1)
	const want = `10:42:07 deployment/web rolled out in 7 s: 3/3 ready (change)
10:44:14 deployment/web rolled out in 7 s: 3/3 ready, 3 pods replaced (change)
10:47:02 deployment/web 3/3 ready again, after 35 s; before that: 1 pod CrashLoopBackOff: exit code 1 (recovery)
10:49:02 deployment/web scaled 3 → 1 within 1 s: 1/1 ready, 2 pods gone (change)
`
	if got := storyLines(t, w); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
