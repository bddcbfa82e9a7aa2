package history

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// author is who wrote a field last, and in which version.
type author struct {
	manager string
	version int
}

// writing is a Thing that managers write, field by field: its fields by path, such as spec.a.b, and their authors.
type writing struct {
	*rand.Rand
	values  map[string]int
	authors map[string]author
	begin   time.Time
}

func (w *writing) at(version int) time.Time { return w.begin.Add(time.Duration(version) * time.Second) }

// write changes some fields.
func (w *writing) write(version int) {
	manager := []string{"kubectl", "helm", "operator"}[w.IntN(3)]
	for range 1 + w.IntN(3) {
		path := "spec"
		for range 1 + w.IntN(3) {
			path += "." + string(rune('a'+w.IntN(4)))
		}
		conflict := slices.ContainsFunc(mapsKeys(w.values), func(p string) bool {
			return p != path && (strings.HasPrefix(p, path+".") || strings.HasPrefix(path, p+"."))
		})
		if conflict { // a field is a value or has fields
			continue
		}
		if _, has := w.values[path]; has && w.IntN(4) == 0 && len(w.values) > 1 {
			delete(w.values, path)
			delete(w.authors, path)
			continue
		}
		w.values[path] = version*10 + w.IntN(3)
		w.authors[path] = author{manager, version}
	}
}

func mapsKeys(m map[string]int) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// object is the Thing as the API server would serve it.
func (w *writing) object(version int) string {
	spec := map[string]any{}
	set := func(root map[string]any, path, prefix string, leaf any) {
		names := strings.Split(path, ".")
		for _, n := range names[:len(names)-1] {
			inner, ok := root[prefix+n].(map[string]any)
			if !ok {
				inner = map[string]any{}
				root[prefix+n] = inner
			}
			root = inner
		}
		root[prefix+names[len(names)-1]] = leaf
	}
	owned, last := map[string]map[string]any{}, map[string]int{}
	for path, v := range w.values {
		set(spec, path, "", v)
		a := w.authors[path]
		if owned[a.manager] == nil {
			owned[a.manager] = map[string]any{}
		}
		set(owned[a.manager], path, "f:", map[string]any{})
		last[a.manager] = max(last[a.manager], a.version)
	}
	var entries []any
	for _, m := range slices.Sorted(slices.Values([]string{"kubectl", "helm", "operator"})) {
		if owned[m] != nil {
			entries = append(entries, map[string]any{"manager": m, "operation": "Update", "time": w.at(last[m]).Format(time.RFC3339),
				"fieldsType": "FieldsV1", "fieldsV1": owned[m]})
		}
	}
	spec["kind"] = "Thing"
	spec["metadata"] = map[string]any{"name": "a", "uid": "u", "managedFields": entries, "resourceVersion": fmt.Sprint(version)}
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestBlameReplays compares Blame with who wrote each field last, for random histories, at random moments of them.
func TestBlameReplays(t *testing.T) {
	for seed := range uint64(30) {
		w := &writing{Rand: rand.New(rand.NewPCG(seed, 1)), values: map[string]int{"spec.z": 0}, authors: map[string]author{"spec.z": {"helm", 1}},
			begin: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
		p := newPast(t)
		before := ""
		var authors []map[string]author
		for version := 1; version <= 40; version++ {
			w.write(version)
			op := event.Updated
			if version == 1 {
				op = event.Created
			}
			after := w.object(version)
			r := row(op, fmt.Sprint(version), before, after)
			r.Time, r.At = w.at(version), w.at(version)
			p.add("", r)
			before = after
			now := map[string]author{}
			for path, a := range w.authors {
				now[path] = a
			}
			authors = append(authors, now)
		}
		compared := 0
		for _, version := range []int{1, 2 + w.IntN(38), 40} {
			for path, l := range p.blame(w.at(version)) {
				if !strings.HasPrefix(path, "spec") {
					continue
				}
				want := authors[version-1][path]
				if got := l.Blame; got.Manager != want.manager || !got.Time.Equal(w.at(want.version)) || got.Before {
					t.Errorf("seed %d, version %d, %s: %+v, want %+v", seed, version, path, got, want)
				}
				compared++
			}
		}
		if compared < 5 {
			t.Errorf("seed %d: only %d fields were compared", seed, compared)
		}
	}
}

// blame returns the lines of the only object that have a blame, by path.
func (p *past) blame(at time.Time) map[string]Line {
	p.Helper()
	found := map[string]Line{}
	for s, err := range p.r.At(p.Context(), journal.Query{}, at) {
		if err != nil {
			p.Fatal(err)
		}
		lines, err := p.tell.Blame(p.Context(), &s)
		if err != nil {
			p.Fatal(err)
		}
		for _, l := range lines {
			if l.Blame != nil {
				found[l.Path().String()] = l
			}
		}
	}
	return found
}

// TestBlameLists: elements of lists are followed by their keys, wherever they stand. An element that moved has the blame of
// the move at its key, and nobody is known to have moved it.
func TestBlameLists(t *testing.T) {
	p := newPast(t)
	list := func(rules string) string { return `{"kind":"Thing","spec":{"rules":[` + rules + `],"set":["x"]}}` }
	states := []string{
		list(`{"id":"a","to":"1"},{"id":"b","to":"2"}`),
		list(`{"id":"b","to":"2"},{"id":"a","to":"3"}`),
		list(`{"id":"c","to":"1"},{"id":"b","to":"2"},{"id":"a","to":"3"}`),
	}
	begin := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	before := ""
	for i, s := range states {
		op := event.Updated
		if i == 0 {
			op = event.Created
		}
		r := row(op, fmt.Sprint(i+1), before, s)
		r.At = begin.Add(time.Duration(i) * time.Minute)
		r.Time = r.At
		p.add(keyed("id"), r)
		before = s
	}
	lines := p.blame(begin.Add(time.Hour))
	for path, minute := range map[string]int{"spec.rules[0].to": 2, "spec.rules[0].id": 2, "spec.rules[1].to": 0, "spec.rules[1].id": 0, "spec.rules[2].to": 1, "spec.rules[2].id": 1, "spec.set[0]": 0} {
		if l, ok := lines[path]; !ok || !l.Blame.Time.Equal(begin.Add(time.Duration(minute)*time.Minute)) {
			t.Errorf("%s: %+v, want minute %d", path, l.Blame, minute)
		}
	}
	if who := lines["spec.rules[2].id"].Blame.Manager; who != change.Unknown {
		t.Errorf("moved by %s", who)
	}
}

// TestBlameIntervals: a change of which only an interval is known has that interval, which ends when the object's next change
// happened: an object as it was at a time has no line of a later time.
func TestBlameIntervals(t *testing.T) {
	p := newPast(t)
	begin := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	thing := func(a, b, c int) string { return fmt.Sprintf(`{"spec":{"a":%d,"b":%d,"c":%d}}`, a, b, c) }
	created, missed, late, missedLater := row(event.Created, "1", "", thing(0, 0, 0)), row(event.Updated, "2", thing(0, 0, 0), thing(1, 0, 0)),
		row(event.Updated, "3", thing(1, 0, 0), thing(1, 1, 0)), row(event.Updated, "4", thing(1, 1, 0), thing(1, 1, 1))
	created.Time, created.At = at(0), at(0)
	missed.Since, missed.Time, missed.At, missed.Net = at(10), at(40), at(40), true
	late.Time, late.At = at(20), at(41) // the object says when
	missedLater.Since, missedLater.Time, missedLater.At, missedLater.Net = at(50), at(60), at(60), true
	p.add("", created, missed, late, missedLater)

	want := map[string][2]time.Time{"spec.a": {at(10), at(20)}, "spec.b": {{}, at(20)}, "spec.c": {at(50), at(60)}}
	for path, line := range blameAt(t, p, at(60)) {
		if got := [2]time.Time{line.Blame.Since, line.Blame.Time}; got != want[path] {
			t.Errorf("%s: %v, want %v", path, got, want[path])
		}
	}
	for path, line := range blameAt(t, p, at(30)) {
		if line.Blame.Time.After(at(30)) {
			t.Errorf("%s changed at %v, after the time that was asked for", path, line.Blame.Time)
		}
	}
}

// blameAt returns the lines of the only object that have a blame, by their paths.
func blameAt(t *testing.T, p *past, at time.Time) map[string]Line {
	t.Helper()
	lines := map[string]Line{}
	for s, err := range p.r.At(t.Context(), journal.Query{}, at) {
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.tell.Blame(t.Context(), &s)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Blame != nil {
				lines[l.Path().String()] = l
			}
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no lines at %v", at)
	}
	return lines
}

// TestNet: what Net says, applied to the first state, gives the second.
func TestNet(t *testing.T) {
	for seed := range uint64(20) {
		w := &writing{Rand: rand.New(rand.NewPCG(seed, 2)), values: map[string]int{"spec.z": 0}, authors: map[string]author{"spec.z": {"helm", 1}},
			begin: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
		p := newPast(t)
		before := ""
		for version := 1; version <= 30; version++ {
			w.write(version)
			op := event.Updated
			if version == 1 {
				op = event.Created
			}
			after := w.object(version)
			r := row(op, fmt.Sprint(version), before, after)
			r.Time, r.At = w.at(version), w.at(version)
			p.add("", r)
			before = after
		}
		from := w.IntN(31)
		to := from + w.IntN(31-from)
		var first, second map[string]any
		for both, err := range p.r.Between(t.Context(), journal.Query{Since: w.at(from), Until: w.at(to)}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := p.tell.Net(t.Context(), &both[0], &both[1])
			if err != nil {
				t.Fatal(err)
			}
			if first, second = c.Before, c.After; c.Op != event.Updated {
				continue
			}
			for _, f := range c.Fields {
				apply(first, f.Path, f.Op, f.To)
			}
			if left := diff.Objects(first, second, nil); len(left) > 0 {
				t.Errorf("seed %d, %d to %d: %v is left", seed, from, to, left)
			}
		}
		if to > from && second == nil {
			t.Errorf("seed %d: nothing between %d and %d", seed, from, to)
		}
	}
}

// apply sets or removes a field.
func apply(m map[string]any, path diff.Path, op diff.Op, to any) {
	name := path[0].Name
	switch {
	case len(path) > 1:
		apply(m[name].(map[string]any), path[1:], op, to)
	case op == diff.Remove:
		delete(m, name)
	default:
		m[name] = to
	}
}

// TestBlameOfRandomLists compares Blame with when each field of a list's elements got its value, while elements change,
// move, come and go.
func TestBlameOfRandomLists(t *testing.T) {
	begin := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(version int) time.Time { return begin.Add(time.Duration(version) * time.Second) }
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newPast(t)
		type field struct {
			value, version int
		}
		type rule struct {
			id   string
			born int
			to   map[string]field
			// moved are the versions in which it was put before or behind another element that stayed.
			moved []int
		}
		var rules []rule
		before := ""
		for version := 1; version <= 60; version++ {
			was := slices.Clone(rules)
			for range 1 + r.IntN(2) {
				switch n := r.IntN(10); {
				case n == 0 || len(rules) == 0:
					rules = slices.Insert(rules, r.IntN(len(rules)+1), rule{fmt.Sprint("r", seed, "-", version, "-", len(rules)), version, map[string]field{"to": {version, version}}, nil})
				case n == 1 && len(rules) > 1:
					i := r.IntN(len(rules))
					rules = slices.Delete(rules, i, i+1)
				case n == 2:
					r.Shuffle(len(rules), func(i, k int) { rules[i], rules[k] = rules[k], rules[i] })
				default:
					rules[r.IntN(len(rules))].to[string(rune('a'+r.IntN(3)))] = field{version*10 + r.IntN(5), version}
				}
			}
			place := func(id string) int { return slices.IndexFunc(was, func(o rule) bool { return o.id == id }) }
			for i := range rules {
				for k := range rules {
					if a, b := place(rules[i].id), place(rules[k].id); a >= 0 && b >= 0 && (a < b) != (i < k) {
						rules[i].moved = append(rules[i].moved, version)
						break
					}
				}
			}
			var list []any
			for _, x := range rules {
				m := map[string]any{"id": x.id}
				for k, f := range x.to {
					m[k] = f.value
				}
				list = append(list, m)
			}
			text, err := json.Marshal(map[string]any{"kind": "Thing", "spec": map[string]any{"rules": list}})
			if err != nil {
				t.Fatal(err)
			}
			op := event.Updated
			if version == 1 {
				op = event.Created
			}
			row := row(op, fmt.Sprint(version), before, string(text))
			row.Time, row.At = at(version), at(version)
			schema := ""
			if version <= 2 {
				schema = keyed("id")
			}
			p.add(schema, row)
			before = string(text)
		}
		lines := p.blame(at(100))
		for i, x := range rules {
			want := map[string]int{}
			for k, f := range x.to {
				want[k] = f.version
			}
			if l, ok := lines[fmt.Sprintf("spec.rules[%d].id", i)]; !ok || !slices.ContainsFunc(append(x.moved, x.born), func(v int) bool { return l.Blame.Time.Equal(at(v)) }) {
				t.Errorf("seed %d: rule %d: %+v, want version %d or one of %v", seed, i, l.Blame, x.born, x.moved)
			}
			for k, version := range want {
				path := fmt.Sprintf("spec.rules[%d].%s", i, k)
				if l, ok := lines[path]; !ok || !l.Blame.Time.Equal(at(version)) {
					t.Errorf("seed %d: %s: %+v, want version %d", seed, path, l.Blame, version)
				}
			}
		}
	}
}
