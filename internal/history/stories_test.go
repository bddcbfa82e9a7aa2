package history

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// record appends changes as a recorder does.
func (p *past) record(changes []change.Change) {
	p.Helper()
	for i := range changes {
		c := changes[i]
		in := story.Read(&c)
		r := journal.Row{Meta: c.Meta, Story: &in}
		r.Routine, r.Severity = in.Routine, c.Severity()
		for _, side := range []struct {
			obj  map[string]any
			text *[]byte
		}{{c.Before, &r.Before}, {c.After, &r.After}} {
			if side.obj == nil {
				continue
			}
			text, err := json.Marshal(side.obj)
			if err != nil {
				p.Fatal(err)
			}
			*side.text = text
		}
		_, err := p.j.Append(p.Context(), []journal.Batch{{
			Stream: journal.Stream{GroupResource: c.Kind.GroupResource()},
			Head:   journal.Head{Version: fmt.Sprint(i + 1), Epoch: 1, Live: true, EverLive: true, At: c.At}, Rows: []journal.Row{r},
		}})
		if err != nil {
			p.Fatal(err)
		}
	}
}

func (p *past) stories(q journal.Query) (all []story.Tree) {
	p.Helper()
	for t, err := range p.r.Stories(p.Context(), q) {
		if err != nil {
			p.Fatal(err)
		}
		all = append(all, t)
	}
	return all
}

func ids(all []story.Tree) (out []string) {
	for _, t := range all {
		out = append(out, t.ID)
	}
	return out
}

// TestCheckStories: what a recorder wrote is what the changes make, and a story that was altered is found.
func TestCheckStories(t *testing.T) {
	for seed := range uint64(3) {
		p := newPast(t)
		p.record(storytest.Random(rand.New(rand.NewPCG(seed, 3))))
		var found []string
		n, err := p.tell.CheckStories(t.Context(), func(text string) { found = append(found, text) })
		if err != nil || len(found) > 0 || n < 10 {
			t.Fatalf("seed %d: %d compared, %v:\n%s", seed, n, err, strings.Join(found, "\n"))
		}
	}
}

// TestStoriesBothWays: each story that is no part of another one is yielded once, in either order, and page by page.
func TestStoriesBothWays(t *testing.T) {
	p := newPast(t)
	p.record(storytest.Random(rand.New(rand.NewPCG(7, 3))))
	newest := p.stories(journal.Query{})
	oldest := ids(p.stories(journal.Query{OldestFirst: true}))
	slices.Reverse(oldest)
	if got := ids(newest); len(got) < 5 || !slices.Equal(got, oldest) {
		t.Errorf("the newest first: %v\nthe oldest first, reversed: %v", got, oldest)
	}
	var paged []string
	for q := (journal.Query{Limit: 1}); ; {
		page := p.stories(q)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page[0].ID)
		q.Before = page[0].Seq
	}
	seqs := map[int64]bool{}
	for _, s := range newest {
		seqs[s.Seq] = true
	}
	if len(seqs) == len(newest) && !slices.Equal(paged, ids(newest)) {
		t.Errorf("page by page: %v, at once %v", paged, ids(newest))
	}
	for _, s := range newest {
		if s.Parent != "" {
			t.Errorf("story %s is a part of %s", s.ID, s.Parent)
		}
	}
}

// TestStoriesUntil: with an end, stories are as they were then: as of each change, the same as if nothing had followed.
func TestStoriesUntil(t *testing.T) {
	changes := storytest.Random(rand.New(rand.NewPCG(5, 3)))
	whole := newPast(t)
	whole.record(changes)
	for n := 10; n < len(changes); n += 17 {
		at := changes[n].At.Truncate(time.Second).Add(time.Second)
		if later := slices.IndexFunc(changes, func(c change.Change) bool { return !c.At.Before(at) }); later < 0 {
			break
		}
		cut := newPast(t)
		cut.record(slices.DeleteFunc(slices.Clone(changes), func(c change.Change) bool { return !c.At.Before(at) }))
		want, got := cut.stories(journal.Query{}), whole.stories(journal.Query{Until: at})
		brief := func(all []story.Tree) string {
			var lines []string
			for _, s := range all {
				lines = append(lines, fmt.Sprintf("%s %s %s %s %s", s.ID, s.Kind, s.State.Word, s.State.At.UTC(), s.Worst))
			}
			slices.Sort(lines)
			return strings.Join(lines, "\n")
		}
		if brief(got) != brief(want) {
			t.Fatalf("until %s:\n%s\nwant\n%s", at, brief(got), brief(want))
		}
	}
}

// TestStoriesOfSeverity: a severity selects the stories in which that happened, to them or to a part of them.
func TestStoriesOfSeverity(t *testing.T) {
	w := storytest.NewWorld()
	d := storytest.NewDeployment(w, rand.New(rand.NewPCG(1, 1)), "web", 2)
	w.Pass(10 * time.Minute)
	d.Scale(3)
	w.Pass(10 * time.Minute)
	d.Crash(d.PodNames()[0], 2, 10*time.Second)
	p := newPast(t)
	p.record(w.Changes)
	got := p.stories(journal.Query{Severities: []event.Severity{event.Failure}})
	if len(got) != 1 || got[0].Object.Kind.Kind != "Deployment" || got[0].Kind != story.Disruption || len(got[0].Parts) == 0 {
		t.Errorf("got %+v", got)
	}
	if n := len(p.stories(journal.Query{Resources: []string{"pods"}, Severities: []event.Severity{event.Failure}})); n != 1 {
		t.Errorf("%d pods failed, want 1", n)
	}
	if n := len(p.stories(journal.Query{Severities: []event.Severity{event.Failure}, Until: w.Changes[3].At})); n != 0 {
		t.Errorf("%d failures before there was one", n)
	}
}
