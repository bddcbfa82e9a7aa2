package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var packer compact.Packer

// pack packs a server's bytes.
func pack(f wire.Format, uid, rv string, raw []byte) *compact.Version {
	return packer.PackSummed(f, uid, rv, wire.Sum(f, raw), raw)
}

// known reports whether the store has a change's version.
func known(s *Store, c Change) bool { return s.Known(c.Key, *seen(c.V)) }

// put makes a change of "name/uid" to a version. The content equals the version, unless given.
func put(name, uid, rv string, content ...string) Change {
	raw := fmt.Sprintf(`{"v":%q}`, rv+strings.Join(content, ""))
	return Change{Key: Key{Name: name}, V: pack(wire.JSON, uid, rv, []byte(raw))}
}

func del(name, uid, rv string) Change {
	c := put(name, uid, rv)
	c.Delete = true
	return c
}

func keep(name string) Change { return keepOther(name, "") }

func keepOther(name, uid string) Change {
	return Change{Key: Key{Name: name}, UID: uid, Keep: true}
}

// text describes a batch on one line.
func text(b Batch) string {
	var s []string
	if b.Gap != nil {
		s = append(s, fmt.Sprintf("!%s %s-%s", b.Gap.Reason, b.Gap.From, b.Gap.To))
	}
	for _, d := range b.Deltas {
		op := map[Op]string{Added: "+", Updated: "~", Deleted: "-"}[d.Op]
		s = append(s, fmt.Sprintf("%s%s/%s %s>%s", op, d.Key.Name, d.UID(), d.Old.RV(), d.New.RV()))
		if d.Initial {
			s[len(s)-1] += "i"
		}
		if d.Relisted {
			s[len(s)-1] += "r"
		}
	}
	if b.Phase == Live {
		s = append(s, "="+b.Version)
	}
	return strings.Join(s, " ")
}

// drain takes everything queued.
func drain(t *testing.T, q *Queue) string {
	t.Helper()
	var s []string
	for {
		b, ok, err := q.take()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return strings.Join(s, " | ")
		}
		s = append(s, text(b))
	}
}

// listed returns a store with a1 (version 1) and b1 (2), and a queue that knows it.
func listed(t *testing.T, budget int64) (*Store, *Queue) {
	t.Helper()
	s, q := New(0), NewQueue(1, QueueOptions{Budget: budget})
	s.Subscribe(q, time.Time{})
	s.Begin(false, 0)
	s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2")}, Version: "2", Sweep: true})
	if got, want := drain(t, q), "+a/a1 >1i +b/b1 >2i =2"; got != want {
		t.Fatalf("first list: %s, want %s", got, want)
	}
	return s, q
}

func TestWatched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change Change
		want   string
		drops  Drops
	}{
		{"an update", put("a", "a1", "5"), "~a/a1 1>5 =5", Drops{}},
		{"a new object", put("c", "c1", "5"), "+c/c1 >5 =5", Drops{}},
		{"a deletion keeps the last known version as Old", del("a", "a1", "5"), "-a/a1 1> =5", Drops{}},
		{"another UID is a delete and an add", put("a", "a2", "5"), "-a/a1 1> +a/a2 >5 =5", Drops{}},
		{"a version from the past", put("b", "b1", "1"), "", Drops{Past: 1}},
		{"a version of an earlier object of the name", put("b", "b0", "1"), "", Drops{Past: 1}},
		{"a deletion from the past", del("b", "b1", "1"), "", Drops{Past: 1}},
		{"the same version again", put("b", "b1", "2"), "", Drops{Same: 1}},
		{"a deletion without a version", Change{Key: Key{Name: "a"}, UID: "a1", RV: "5", Delete: true}, "-a/a1 1> =5", Drops{}},
		{"a deletion of what is unknown moves only the version", del("x", "x1", "5"), "=5", Drops{}},
		{"a version that is no number is new if it differs", put("a", "a1", "x"), "~a/a1 1>x =x", Drops{}},
		{"without versions, content decides: other", put("a", "a1", "", "other"), "~a/a1 1> ", Drops{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q := listed(t, 1<<20)
			drops := s.Commit(Commit{Changes: []Change{c.change}, Version: c.change.rv()})
			want := strings.TrimSpace(c.want)
			if c.change.rv() == "" {
				want += " =2"
			}
			if got := drain(t, q); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if drops != c.drops {
				t.Errorf("dropped %+v, want %+v", drops, c.drops)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	s := New(0)
	at := func(ns, name string) Change {
		c := put(name, name, "1")
		c.Key.Namespace = ns
		return c
	}
	s.Commit(Commit{Changes: []Change{at("x", "a"), at("x", "b"), at("y", "a")}})
	for ns, want := range map[string]int{"": 3, "x": 2, "y": 1, "z": 0} {
		items := s.Snapshot(ns)
		for _, it := range items {
			if ns != "" && it.Key.Namespace != ns || s.Get(it.Key) != it.V {
				t.Errorf("namespace %q has %v", ns, it)
			}
		}
		if len(items) != want {
			t.Errorf("namespace %q has %d objects, want %d", ns, len(items), want)
		}
	}
	gone := at("y", "a")
	gone.Delete = true
	s.Commit(Commit{Changes: []Change{gone}})
	if len(s.table.spaces) != 1 {
		t.Errorf("%d namespaces; an empty one must go", len(s.table.spaces))
	}
}
