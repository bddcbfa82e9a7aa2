package journal

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// TestRules lists orders in which rules change and changes are recorded.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		why string
		// does is the sequence of events: a letter sets rules, a digit records so many changes.
		does string
		want int64 // uncovered changes
	}{
		{"nothing was recorded", "a", 0},
		{"the same rules at each start", "a2a3a", 0},
		{"other rules", "a2b3", 2},
		{"third rules", "a2b3c1", 5},
		{"rules that come back cover their own changes", "a2b3a1", 3},
		{"the rules in between do not cover those changes", "a2b3a1b", 3},
		{"rules under which nothing was recorded are forgotten", "a2ba1", 0},
		{"forgotten rules do not cover earlier changes of other rules", "a2b1cb", 2},
	} {
		j := open(t, filepath.Join(t.TempDir(), "journal.db"))
		version := 0
		var u Uncovered
		for i, what := range c.does {
			if what < '0' || what > '9' {
				var err error
				if u, err = j.Rules(t.Context(), string(what), epoch.Add(time.Duration(i)*time.Hour)); err != nil {
					t.Fatalf("%s: %v", c.why, err)
				}
				continue
			}
			for range int(what - '0') {
				version++
				add(t, j, pod(event.Updated, version))
			}
		}
		r, err := OpenReader(t.Context(), j.Path())
		if err != nil {
			t.Fatal(err)
		}
		read, err := r.Uncovered(t.Context())
		if err != nil || read.Changes != c.want {
			t.Errorf("%s: a reader finds %d not covered, %v; want %d", c.why, read.Changes, err, c.want)
		}
		if u.Changes != c.want || u.Unfinished != nil {
			t.Errorf("%s: %+v, want %d", c.why, u, c.want)
		}
		must(t, r.Close(), j.Close())
	}
}

// TestRulesSince: Before is when the current rules came into force, not when the daemon last started.
func TestRulesSince(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	_, err := j.Rules(t.Context(), "a", epoch)
	must(t, err)
	add(t, j, pod(event.Created, 1))
	_, err = j.Rules(t.Context(), "b", epoch.Add(time.Hour))
	must(t, err)
	add(t, j, pod(event.Updated, 2))
	u, err := j.Rules(t.Context(), "b", epoch.Add(2*time.Hour))
	if err != nil || !u.Any() || !u.Before.Equal(epoch.Add(time.Hour)) {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestRulesOfStates: a stream whose states other rules made is reported until a list was compared with them.
func TestRulesOfStates(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	_, err := j.Rules(t.Context(), "rules-a", epoch)
	must(t, err)
	head := func(pipeline string) []Batch {
		return []Batch{{Stream: pods, Head: Head{Version: "1", Live: true, Pipeline: pipeline, At: epoch}}}
	}
	first := head("1 v1 rules-a")
	first[0].Rows = []Row{pod(event.Created, 1)}
	for _, c := range []struct {
		why   string
		batch []Batch
		rules string
		want  int
	}{
		{"made by the current rules", first, "rules-a", 0},
		{"other rules", nil, "rules-b", 1},
		{"during the list", head(""), "rules-b", 1},
		{"after the list", head("1 v1 rules-b"), "rules-b", 0},
		{"another version of the API", head("1 v2 rules-b"), "rules-b", 0},
	} {
		if _, err := j.Append(t.Context(), c.batch); err != nil {
			t.Fatal(err)
		}
		u, err := j.Rules(t.Context(), c.rules, epoch)
		if err != nil || len(u.Streams) != c.want {
			t.Errorf("%s: %+v, %v; want %d", c.why, u, err, c.want)
		}
	}
}

// TestRewritten: other bytes of the same version are not a change, and earlier changes read as before, whatever follows.
func TestRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	rewrite := func(text string) Row {
		r := pod("", 0)
		r.Rewritten, r.Before, r.After = true, nil, []byte(text)
		return r
	}
	add(t, j, pod(event.Created, 1), pod(event.Updated, 2))
	changed := j.Changed()
	if got := add(t, j, rewrite("hidden"), rewrite("hidden again")); got.Rows != 0 || got.Duplicates != 0 || got.Last != 2 {
		t.Errorf("%+v", got)
	}
	select {
	case <-changed:
		t.Error("readers were notified of a change")
	default:
	}
	want := []string{
		`1 created  -> {"kind":"Pod","version":1}`,
		`2 updated {"kind":"Pod","version":1} -> {"kind":"Pod","version":2}`,
	}
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Error(d)
	}
	for o, err := range j.Objects(t.Context(), pods) {
		if err != nil || string(o.JSON) != "hidden again" {
			t.Errorf("the state is %s, %v", o.JSON, err)
		}
	}
	next := pod(event.Updated, 3)
	next.Before = []byte("hidden again")
	gone := pod(event.Deleted, 4)
	gone.Before = next.After
	add(t, j, next, gone, rewrite("after the end"))
	want = append(want, `3 updated hidden again -> {"kind":"Pod","version":3}`, `4 deleted {"kind":"Pod","version":3} -> `)
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Error(d)
	}
}

func TestInvalidRewritten(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for why, r := range map[string]Row{
		"no content":            {Rewritten: true},
		"an operation":          {Rewritten: true, After: []byte("{}"), Meta: Meta{Op: event.Updated}},
		"a deletion with after": {Rewritten: true, After: []byte("{}"), Meta: Meta{Op: event.Deleted}},
	} {
		if _, err := j.Append(t.Context(), []Batch{{Stream: pods, Rows: []Row{r}}}); err == nil {
			t.Errorf("%s: accepted", why)
		}
	}
}
