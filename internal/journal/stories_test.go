package journal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// rowsOf makes the rows of changes.
func rowsOf(t *testing.T, changes []change.Change) []Row {
	t.Helper()
	var rows []Row
	for i := range changes {
		c := &changes[i]
		in := story.Read(c)
		r := Row{Meta: c.Meta, Story: &in}
		for _, side := range []struct {
			obj  map[string]any
			text *[]byte
		}{{c.Before, &r.Before}, {c.After, &r.After}} {
			if side.obj == nil {
				continue
			}
			text, err := json.Marshal(side.obj)
			must(t, err)
			*side.text = text
		}
		rows = append(rows, r)
	}
	return rows
}

// dump writes the stories and their states.
func dump(t *testing.T, j *Journal) string {
	t.Helper()
	all, err := j.db.stories("ORDER BY s.id")
	must(t, err)
	var b strings.Builder
	for _, s := range all {
		text, err := json.Marshal(s.Story)
		must(t, err)
		fmt.Fprintf(&b, "%s\n", text)
		states, err := j.db.states("WHERE story = (SELECT id FROM stories WHERE key = ?) ORDER BY seq, n", s.ID)
		must(t, err)
		for _, st := range states {
			text, err := json.Marshal(st)
			must(t, err)
			fmt.Fprintf(&b, "\t%s\n", text)
		}
	}
	return b.String()
}

// TestStoriesAfterKills: a recorder that ends and begins again after every change writes the same stories as one that does
// not.
func TestStoriesAfterKills(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 2))
		changes := storytest.Shuffled(r, storytest.Random(r))
		record := func(again bool) string {
			path := filepath.Join(t.TempDir(), "journal.db")
			j := open(t, path)
			for _, row := range rowsOf(t, changes) {
				add(t, j, row)
				if again {
					j.stories = follower{}
				}
			}
			defer j.Close()
			return dump(t, j)
		}
		want, got := record(false), record(true)
		if got != want {
			t.Fatalf("seed %d: killed after every change: %s", seed, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
		if strings.Count(want, "\n") < 20 {
			t.Errorf("only\n%s", want)
		}
	}
}
