package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// TestRules has the orders in which rules come and changes are recorded.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		why string
		// does is what happens: a letter for rules, a digit for so many changes.
		does string
		want int64 // changes that the last rules do not cover
	}{
		{"nothing was recorded", "a", 0},
		{"the same rules at each start", "a2a3a", 0},
		{"other rules", "a2b3", 2},
		{"others again", "a2b3c1", 5},
		{"rules that come back cover what they made", "a2b3a1", 3},
		{"and what they made is not covered by those between", "a2b3a1b", 3},
		{"rules under which nothing was recorded were never in force", "a2ba1", 0},
		{"nor do they cover what others made before", "a2b1cb", 2},
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

// TestRulesSince: what is told is when these rules came into force, not when the daemon started last.
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

// TestRulesOfStates: a stream whose states other rules made is named until a list was compared with
// them.
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
		{"as they are now", first, "rules-a", 0},
		{"other rules", nil, "rules-b", 1},
		{"the list is under way", head(""), "rules-b", 1},
		{"it is through", head("1 v1 rules-b"), "rules-b", 0},
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

// TestRewritten: other bytes of the same version are no change, and what was recorded before reads as it
// did, whatever comes after.
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
		t.Error("readers were told of a change")
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
	add(t, j, next, gone, rewrite("of what is gone"))
	want = append(want, `3 updated hidden again -> {"kind":"Pod","version":3}`, `4 deleted {"kind":"Pod","version":3} -> `)
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Error(d)
	}
}

func TestRewrittenThatMakesNoSense(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for why, r := range map[string]Row{
		"nothing":                {Rewritten: true},
		"what is a change, too":  {Rewritten: true, After: []byte("{}"), Meta: Meta{Op: event.Updated}},
		"an end that is a state": {Rewritten: true, After: []byte("{}"), Meta: Meta{Op: event.Deleted}},
	} {
		if _, err := j.Append(t.Context(), []Batch{{Stream: pods, Rows: []Row{r}}}); err == nil {
			t.Errorf("%s is taken", why)
		}
	}
}

// TestOlderFormat reads a journal of format 1 as it is, then brings it up to date: what it has was
// recorded under rules that nobody knows.
func TestOlderFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h := restoreGolden(t, 1, path)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	h.checkRows(t, r)
	for range 20 {
		h.query(t, r)
	}
	stats, err := r.Stats(t.Context())
	if err != nil || stats.Format != 1 || stats.Changes != int64(len(h.rows)) || stats.Uncovered.Any() {
		t.Errorf("%+v, %v", stats, err)
	}
	if last, err := r.Last(t.Context()); err != nil || last != int64(len(h.rows)) {
		t.Errorf("the last one is %d, %v", last, err)
	}
	j := open(t, path)
	plan, err := j.PlanPurge(t.Context(), Purge{OtherRules: true})
	if err != nil || !plan.None() {
		t.Errorf("before anybody knows the rules: %+v, %v", plan, err)
	}
	u, err := j.Rules(t.Context(), "a", epoch)
	if err != nil || u.Changes != int64(len(h.rows)) {
		t.Errorf("%+v, %v; want %d", u, err, len(h.rows))
	}
	h.checkRows(t, r) // the reader goes on with what it knows
	must(t, r.Close())
	h.check(t, path)
}

func TestReaderOfNoFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	must(t, j.db.script("PRAGMA user_version = 0"), j.Close())
	_, err := OpenReader(t.Context(), path)
	var format *FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), fmt.Sprintf("tattler run brings it to %d", len(migrations))) {
		t.Errorf("%v", err)
	}
}
