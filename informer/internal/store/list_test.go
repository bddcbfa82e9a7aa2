package store

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func TestRelist(t *testing.T) {
	for _, c := range []struct {
		name    string
		compare bool
		epochs  int64
		list    []Change
		want    string
	}{
		{"nothing changed", false, 0, []Change{put("a", "a1", "1"), put("b", "b1", "2")}, "=9"},
		{"one updated, one gone", false, 0, []Change{put("a", "a1", "7")}, "~a/a1 1>7r -b/b1 2>r =9"},
		{"recreated", false, 0, []Change{put("a", "a2", "7"), put("b", "b1", "2")}, "-a/a1 1>r +a/a2 >7r =9"},
		{"added", false, 0, []Change{put("a", "a1", "1"), put("b", "b1", "2"), put("c", "c1", "3")}, "+c/c1 >3r =9"},
		{"everything gone", false, 0, nil, "-a/a1 1>r -b/b1 2>r =9"},
		{"an unreadable object is not deleted", false, 0, []Change{keep("a"), put("b", "b1", "2")}, "=9"},
		{"what could not be read is another object than the one that is known", false, 0,
			[]Change{keepOther("a", "a2"), put("b", "b1", "2")}, "-a/a1 1>r =9"},
		{"what could not be read is the object that is known", false, 0,
			[]Change{keepOther("a", "a1"), put("b", "b1", "2")}, "=9"},
		{"compared: the same content", true, 0, []Change{put("a", "a1", "1"), put("b", "b1", "2")}, "=9"},
		{"compared: the same version with other content", true, 0, []Change{put("a", "a1", "1", "!"), put("b", "b1", "2")}, "~a/a1 1>1r =9"},
		{"another history, the same content", false, 1, []Change{put("a", "a1", "1"), put("b", "b1", "2")}, "=9"},
		{"another history, the same version with other content", false, 1, []Change{put("a", "a1", "1", "!"), put("b", "b1", "2")}, "~a/a1 1>1r =9"},
		{"another history, an object twice: the last one counts", false, 1,
			[]Change{put("a", "a1", "1", "!"), put("a", "a1", "1"), put("b", "b1", "2")}, "~a/a1 1>1r ~a/a1 1>1 =9"},
		{"another history, an older version", false, 1, []Change{put("a", "a1", "1"), put("b", "b1", "1")}, "~b/b1 2>1r =9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q := listed(t, 1<<20)
			s.Begin(c.compare, s.Epoch()+c.epochs)
			s.Commit(Commit{Changes: c.list, Version: "9", Sweep: true})
			if got := drain(t, q); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKnownSparesWork(t *testing.T) {
	s, _ := listed(t, 1<<20)
	s.Begin(false, 0)
	if !known(s, put("a", "a1", "1")) {
		t.Error("the same version is not known")
	}
	if known(s, put("b", "b1", "3", "2")) || known(s, put("b", "b2", "2")) || known(s, put("b", "", "", "2")) {
		t.Error("another version, another UID or an empty UID is known")
	}
	if known(s, put("b", "b1", "2", "new default")) || s.Known(Key{Name: "b"}, Seen{UID: "b1", RV: "2", Format: wire.JSON}) {
		t.Error("other content at the same version, or content without a sum, is known")
	}
	if !s.Known(Key{Name: "a"}, Seen{UID: "a1", RV: "1", Format: wire.Protobuf, Sum: 1}) {
		t.Error("the same version in another format is not known")
	}
	if s.Ahead(Key{Name: "b"}, "b1", "2") || !s.Ahead(Key{Name: "b"}, "b1", "1") {
		t.Error("Ahead must be true for an older version only")
	}
	s.Commit(Commit{Version: "9", Sweep: true})
	if n, _ := s.Stat(); n != 1 {
		t.Errorf("%d objects; the known one must stay, the other must go", n)
	}
	s.Commit(Commit{Changes: []Change{put("b", "b1", "2")}, Version: "9"})
	s.Begin(true, 0)
	if known(s, put("a", "a1", "1")) || !s.Ahead(Key{Name: "b"}, "b1", "1") || s.Version() != "9" || s.Epoch() != 1 {
		t.Error("while contents are compared, an equal version must prove nothing, and an older one another history")
	}
	s.Begin(false, 2)
	if known(s, put("a", "a1", "1")) || s.Ahead(Key{Name: "b"}, "b1", "1") || s.Version() != "" || s.Epoch() != 2 {
		t.Error("versions must mean nothing in a new epoch")
	}
	s.Begin(false, 1)
	if s.Epoch() != 2 || s.Ahead(Key{Name: "b"}, "b1", "1") {
		t.Error("an epoch ended before its list was complete")
	}
}

func TestSameContent(t *testing.T) {
	for _, c := range []struct {
		name   string
		fa, fb wire.Format
		a, b   string
		same   bool
	}{
		{"the same bytes", wire.JSON, wire.JSON, `{"a":1}`, `{"a":1}`, true},
		{"another server's order", wire.JSON, wire.JSON, `{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"another value", wire.JSON, wire.JSON, `{"a":1}`, `{"a":2}`, false},
		{"invalid JSON is compared by its bytes", wire.JSON, wire.JSON, `{`, `{ `, false},
		{"protobuf: the same bytes", wire.Protobuf, wire.Protobuf, "\x0a\x00", "\x0a\x00", true},
		{"protobuf that would be equal JSON", wire.Protobuf, wire.Protobuf, `{"a":1,"b":2}`, `{"b":2,"a":1}`, false},
		{"formats that differ", wire.JSON, wire.Protobuf, `{}`, `{}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := packer.Pack(c.fa, "u", "1", []byte(c.a)), packer.Pack(c.fb, "u", "1", []byte(c.b))
			if got := sameContent(a, b); got != c.same {
				t.Errorf("same: %t, want %t", got, c.same)
			}
		})
	}
	if sameContent(nil, packer.Pack(wire.JSON, "", "", nil)) || !sameContent(nil, nil) {
		t.Error("nil must equal only nil")
	}
}

// TestFormatSwitch: a server stops serving protobuf. Within an epoch, a known UID and version identify the object, unless
// contents are compared: they cannot be in two formats.
func TestFormatSwitch(t *testing.T) {
	s, q := listed(t, 1<<20)
	again := func(name, uid, rv string) Change {
		return Change{Key: Key{Name: name}, V: pack(wire.Protobuf, uid, rv, []byte("b"))}
	}
	list := []Change{again("a", "a1", "1"), again("b", "b1", "2")}
	for _, c := range []struct {
		compare bool
		epochs  int64
		want    string
	}{{false, 0, "=9"}, {true, 0, "~a/a1 1>1r ~b/b1 2>2r =9"}, {false, 1, "=9"}} {
		s.Begin(c.compare, s.Epoch()+c.epochs)
		s.Commit(Commit{Changes: list, Version: "9", Sweep: true})
		if got := drain(t, q); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestListing: changes during a list, as in a streaming list. The previous list had a1 at 1 and b1 at 2, or there was
// none.
func TestListing(t *testing.T) {
	for _, c := range []struct {
		name  string
		first bool
		list  []Change
		want  string
	}{
		{"first: an object that is named twice is updated", true,
			[]Change{put("a", "a1", "1"), put("a", "a1", "3")}, "+a/a1 >1i ~a/a1 1>3 =9"},
		{"first: an object that goes again", true,
			[]Change{put("a", "a1", "1"), del("a", "a1", "3")}, "+a/a1 >1i -a/a1 1> =9"},
		{"first: an object that is replaced belongs to the state that the list ends with", true,
			[]Change{put("a", "a1", "1"), put("a", "a2", "3")}, "+a/a1 >1i -a/a1 1> +a/a2 >3i =9"},
		{"what the list has named is seen to change: nothing is derived", false,
			[]Change{put("a", "a1", "1"), put("a", "a1", "3"), put("b", "b1", "2"), del("b", "b1", "4")},
			"~a/a1 1>3 -b/b1 2> =9"},
		{"what changed before the list is derived, what follows is not", false,
			[]Change{put("a", "a1", "3"), put("a", "a1", "4"), put("b", "b1", "2")}, "~a/a1 1>3r ~a/a1 3>4 =9"},
		{"a deletion of what the list has not named", false,
			[]Change{del("a", "a1", "4"), put("b", "b1", "2")}, "-a/a1 1>r =9"},
		{"a deletion of an unknown object", false,
			[]Change{del("x", "x1", "4"), put("a", "a1", "1"), put("b", "b1", "2")}, "=9"},
		{"deleted and there again", false,
			[]Change{put("a", "a1", "1"), put("b", "b1", "2"), del("b", "b1", "4"), put("b", "b2", "5")},
			"-b/b1 2> +b/b2 >5r =9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q := New(0), NewQueue(1, QueueOptions{Budget: 1 << 20})
			s.Subscribe(q, time.Time{})
			if !c.first {
				s, q = listed(t, 1<<20)
			}
			s.Begin(false, 0)
			s.Commit(Commit{Changes: c.list, Version: "9", Sweep: true})
			if got := drain(t, q); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestKeptInANewEpoch: an object could not be read in the list that began an epoch. Its version belongs to the old
// history and must not suppress new ones.
func TestKeptInANewEpoch(t *testing.T) {
	for _, c := range []struct {
		name string
		next func(*Store)
		want string
	}{
		{"an event with an older version counts", func(s *Store) {
			s.Commit(Commit{Changes: []Change{put("b", "b1", "1", "!")}, Version: "11"})
		}, "~b/b1 2>1r =11"},
		{"the same version may have another content", func(s *Store) {
			s.Begin(false, 0)
			if known(s, put("b", "b1", "2")) || s.Ahead(Key{Name: "b"}, "b1", "1") {
				t.Error("the old version is trusted")
			}
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2", "!")}, Version: "11", Sweep: true})
		}, "~b/b1 2>2r =11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q := listed(t, 1<<20)
			s.Begin(true, s.Epoch()+1)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), keep("b")}, Version: "10", Sweep: true})
			drain(t, q)
			c.next(s)
			if got := drain(t, q); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			s.Commit(Commit{Changes: []Change{put("b", "b1", "1", "late")}, Version: "12"})
			if v := s.Get(Key{Name: "b"}); v.RV() == "2" && drain(t, q) != "=12" {
				t.Error("once it was read, an older version must be dropped")
			}
		})
	}
}

// TestPieces: a list's commit lets readers in, and pushes its deltas, after each piece.
func TestPieces(t *testing.T) {
	s, q := New(0), NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.piece = 2
	s.Subscribe(q, time.Time{})
	s.Begin(false, 0)
	gap := &Gap{Reason: "test"}
	var list []Change
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		list = append(list, put(n, n, "1"))
	}
	s.Commit(Commit{Changes: list, Version: "2", Sweep: true, Gap: gap})
	if got, want := drain(t, q), "!test - +a/a >1i +b/b >1i | +c/c >1i +d/d >1i | +e/e >1i =2"; got != want {
		t.Errorf("list: %q, want %q", got, want)
	}
	s.Begin(false, 0)
	s.Commit(Commit{Version: "3", Sweep: true})
	if got, want := drain(t, q), "-a/a 1>r -b/b 1>r | -c/c 1>r -d/d 1>r | -e/e 1>r =3"; got != want {
		t.Errorf("sweep: %q, want %q", got, want)
	}
	s.Commit(Commit{Changes: list, Version: "4"})
	if got, want := drain(t, q), "+a/a >1 +b/b >1 +c/c >1 +d/d >1 +e/e >1 =4"; got != want {
		t.Errorf("live, a commit must be one step: %q, want %q", got, want)
	}
}
