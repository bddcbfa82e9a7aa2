package log

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// tally counts the changes with one key. It is a row of --stat, and of its JSON.
type tally struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace,omitempty"`
	Cluster   string    `json:"cluster,omitempty"` // if there are several
	Changes   int       `json:"changes"`
	Created   int       `json:"created"`
	Updated   int       `json:"updated"`
	Deleted   int       `json:"deleted"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	// Via is how a related object is related.
	Via string `json:"via,omitempty"`
}

// add counts a change that happened between two times, or at one. Entering a selection counts as created, leaving it as deleted, and a snapshot only as a change.
func (t *tally) add(op event.Op, from, to time.Time) {
	t.Changes++
	switch op {
	case event.Created, event.Entered:
		t.Created++
	case event.Deleted, event.Left:
		t.Deleted++
	case event.Updated, event.Converted:
		t.Updated++
	}
	if t.First.IsZero() || from.Before(t.First) {
		t.First = from
	}
	if to.After(t.Last) {
		t.Last = to
	}
}

// maxKeys bounds the distinct keys of a table, and so its memory.
const maxKeys = 100_000

// table counts changes by a key. Changes with keys beyond maxKeys are counted in Beyond.
type table struct {
	rows   map[string]*tally
	max    int
	beyond int
}

func newTable() *table { return &table{rows: map[string]*tally{}, max: maxKeys} }

// add counts a change under a key. row describes a new key.
func (t *table) add(key string, op event.Op, from, to time.Time, row func() tally) {
	r := t.rows[key]
	if r == nil {
		if len(t.rows) >= t.max {
			t.beyond++
			return
		}
		n := row()
		r = &n
		t.rows[key] = r
	}
	r.add(op, from, to)
}

// top returns the rows with the most changes; 0 is all. cut is the number of the others.
func (t *table) top(most int) (rows []*tally, cut int) {
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), a.First.Compare(b.First), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if most > 0 && len(rows) > most {
		rows, cut = rows[:most], len(rows)-most
	}
	return rows, cut
}

// managersIn returns the managers of a change's shown fields, each once; of another change, its manager.
func managersIn(c *change.Change, noise bool) (names []string) {
	if c.Op.Differs() && !c.Blind {
		for i := range c.Fields {
			if f := &c.Fields[i]; (noise || !f.Quiet) && !slices.Contains(names, f.Manager) {
				names = append(names, f.Manager)
			}
		}
	}
	if len(names) == 0 {
		names = []string{cmp.Or(c.Manager, change.Unknown)}
	}
	if len(names) > 1 { // what the server removed has no manager
		names = slices.DeleteFunc(names, func(n string) bool { return n == change.Unknown })
	}
	return names
}

// pathsIn returns the paths of an update's shown fields, each once, with list elements as [*].
func pathsIn(c *change.Change, noise bool) (paths []string) {
	if !c.Op.Differs() {
		return nil
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Quiet && !noise {
			continue
		}
		if p := general(f.Path); !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// general writes a path with [*] for every element of a list.
func general(p diff.Path) string {
	var b strings.Builder
	var keys diff.Path
	for _, s := range p {
		if s.Kind == diff.Field {
			keys = append(keys, s)
			continue
		}
		b.WriteString(joinKeys(b.Len() > 0, keys) + "[*]")
		keys = nil
	}
	b.WriteString(joinKeys(b.Len() > 0, keys))
	return b.String()
}

// joinKeys writes the keys of a path, which may follow others.
func joinKeys(follow bool, keys diff.Path) string {
	text := keys.String()
	if follow && text != "" && !strings.HasPrefix(text, "[") {
		return "." + text
	}
	return text
}
