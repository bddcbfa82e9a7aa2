package journal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// since returns from when on a row's state is known. A snapshot has the time of the object's creation, but shows the object as it
// was seen.
func since(r *modelRow) time.Time {
	if r.Op == "snapshot" {
		return r.At
	}
	return r.Time
}

// stateAt is what At means, for one object of a model: its rows, the oldest first.
func stateAt(rows []*modelRow, t time.Time) (json []byte, p Presence) {
	for _, r := range slices.Backward(rows) {
		if !since(r).After(t) {
			if len(r.After) == 0 {
				return nil, Absent
			}
			return r.After, Present
		}
	}
	first := rows[0]
	switch first.Op {
	case "created", "entered":
		return nil, Absent
	case "snapshot":
		return nil, Unknown
	}
	return first.Before, Present
}

// precedes reports whether an object, by its rows, was created before another one.
func precedes(a, b []*modelRow) bool {
	if c := createdOf(&a[0].Row).Compare(createdOf(&b[0].Row)); c != 0 {
		return c < 0
	}
	return a[0].seq < b[0].seq
}

// taken reports whether a name belongs at t to an object that was created later than the one with some rows. rivals are
// the rows of all objects of that name, and there says which of them existed then by their rows.
func taken(rows []*modelRow, rivals [][]*modelRow, there func([]*modelRow) bool, t time.Time) bool {
	return slices.ContainsFunc(rivals, func(other []*modelRow) bool {
		return precedes(rows, other) && !createdOf(&other[0].Row).After(t) && there(other)
	})
}

// TestAt compares the states of random histories, at random times, with what a model of them says.
func TestAt(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		path := filepath.Join(t.TempDir(), "journal.db")
		h := newHistory(seed)
		j := open(t, path)
		for range 250 {
			batches, _ := h.next()
			if _, err := j.Append(t.Context(), batches); err != nil {
				t.Fatal(err)
			}
		}
		r, err := OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		type key struct{ resource, uid string }
		objects, rivals := map[key][]*modelRow{}, map[key][][]*modelRow{} // rivals by kind and name
		for i := range h.rows {
			if row := &h.rows[i]; row.Op.HasObject() {
				k := key{row.Kind.GroupResource(), uidKey(&row.Meta)}
				objects[k] = append(objects[k], row)
			}
		}
		for k, rows := range objects {
			k.uid = rows[0].Name
			rivals[k] = append(rivals[k], rows)
		}
		begin := h.rows[0].At
		successors := 0
		compared := 0
		for range 60 {
			at := h.rows[h.IntN(len(h.rows))].Time.Add(time.Duration(h.IntN(3)-1) * time.Millisecond)
			found := map[key]State{}
			for s, err := range r.At(t.Context(), Query{}, at) {
				if err != nil {
					t.Fatal(err)
				}
				m := Meta{Namespace: s.Namespace, Name: s.Name, UID: s.UID}
				found[key{s.Kind.GroupResource(), uidKey(&m)}] = s
			}
			recorded := func(rows []*modelRow) ([]byte, Presence) {
				json, presence := stateAt(rows, at)
				if presence == Present && since(rows[0]).After(at) && at.Before(begin) {
					presence, json = Unknown, nil // the journal does not reach back so far
				}
				return json, presence
			}
			there := func(rows []*modelRow) bool {
				_, presence := recorded(rows)
				return presence == Present || presence == Unknown && rows[0].Op == event.Snapshot
			}
			for k, rows := range objects {
				json, presence := recorded(rows)
				if presence != Absent && taken(rows, rivals[key{k.resource, rows[0].Name}], there, at) {
					presence, json = Absent, nil
					successors++
				}
				s := found[k]
				if s.Kind.Resource == "" {
					s.Presence = Absent
				}
				compared++
				if s.Presence != presence || !bytes.Equal(s.JSON, json) {
					t.Errorf("%v at %v: presence %d, %s; want %d, %s", k, at, s.Presence, s.JSON, presence, json)
				}
			}
			if t.Failed() {
				t.Fatalf("replay with JOURNAL_SEED=%d", seed)
			}
		}
		if compared < 1000 || successors < 10 {
			t.Errorf("only %d states were compared, %d of them of objects whose name was taken", compared, successors)
		}
		r.Close()
	}
}

// TestHistory compares the history of each object with the contents of its changes, read one by one.
func TestHistory(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		path := filepath.Join(t.TempDir(), "journal.db")
		h := newHistory(seed)
		j := open(t, path)
		for range 250 {
			batches, _ := h.next()
			if _, err := j.Append(t.Context(), batches); err != nil {
				t.Fatal(err)
			}
		}
		r, err := OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for range 8 {
			at := h.rows[h.IntN(len(h.rows))].Time
			for s, err := range r.At(t.Context(), Query{}, at) {
				if err != nil {
					t.Fatal(err)
				}
				if s.Last == nil {
					continue
				}
				next := s.Last.Seq + 1
				for step, err := range r.History(t.Context(), &s) {
					if err != nil {
						t.Fatal(err)
					}
					before, after, err := step.Contents(t.Context())
					if step.Seq >= next || err != nil || !bytes.Equal(before, step.Before) || !bytes.Equal(after, step.After) {
						t.Errorf("change %d after %d: %v, %s, %s; want %s, %s", step.Seq, next, err, step.Before, step.After, before, after)
					}
					next = step.Seq
					compared++
				}
				first := slices.IndexFunc(h.rows, func(row modelRow) bool {
					return row.Op.HasObject() && uidKey(&row.Meta) == uidKey(&s.Last.Meta) && row.Kind.GroupResource() == s.Kind.GroupResource()
				})
				if next != h.rows[first].seq {
					t.Errorf("the history of %s/%s ends with change %d, not %d", s.Namespace, s.Name, next, h.rows[first].seq)
				}
			}
		}
		if compared < 100 {
			t.Errorf("only %d changes were compared", compared)
		}
		if t.Failed() {
			t.Fatalf("replay with JOURNAL_SEED=%d", seed)
		}
		r.Close()
	}
}

// TestAtRemoved: while objects are read, one is removed, and another one gets its number. It is not shown under the name, nor
// with the rights, of the removed one.
func TestAtRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	row := func(op event.Op, second int, namespace, name string, before, after []byte) Row {
		at := epoch.Add(time.Duration(second) * time.Second)
		return Row{Before: before, After: after, Meta: Meta{Op: op, Kind: podKind, Namespace: namespace, Name: name, UID: name, ResourceVersion: "1", Time: at, At: at}}
	}
	for i := range statesPage {
		add(t, j, row(event.Created, 0, "a", fmt.Sprint("first-", i), nil, []byte(`{"kind":"Pod"}`)))
	}
	public, secret := []byte(`{"kind":"Pod","public":true}`), []byte(`{"kind":"Pod","secret":true}`)
	add(t, j, row(event.Created, 1, "z", "public", nil, public))
	add(t, j, row(event.Deleted, 2, "z", "public", public, nil))
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	seen := 0
	for s, err := range r.At(t.Context(), Query{}, epoch.Add(time.Second)) {
		must(t, err)
		if seen++; seen == 1 {
			must(t, j.Purge(t.Context(), Purge{Until: epoch.Add(3 * time.Second)}, nil))
			add(t, j, row(event.Created, 1, "hidden", "secret", nil, secret))
		}
		if s.Namespace == "z" && bytes.Contains(s.JSON, []byte("secret")) {
			t.Errorf("%s/%s is shown as %s", s.Namespace, s.Name, s.JSON)
		}
	}
	if seen < statesPage {
		t.Errorf("only %d objects", seen)
	}
}

// TestAtSuccessor: an object was deleted and made again under its name. The creation is dated at its whole second, or the
// deletion was missed, so their times overlap. The name belongs to the later object from its creation on.
func TestAtSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	row := func(op event.Op, ms int, name, uid, version string, before, after []byte) Row {
		return Row{Before: before, After: after, Meta: Meta{Op: op, Kind: podKind, Namespace: "shop", Name: name, UID: uid, ResourceVersion: version, Time: at(ms), At: at(9000)}}
	}
	first, changed, second := []byte(`{"v":1}`), []byte(`{"v":2}`), []byte(`{"v":3}`)
	add(t, j, row(event.Created, 0, "db-0", "a", "1", nil, first))
	add(t, j, row(event.Created, 0, "db-1", "c", "2", nil, first))
	add(t, j, row(event.Updated, 4300, "db-0", "a", "3", first, changed))
	add(t, j, row(event.Deleted, 4485, "db-0", "a", "4", changed, nil))
	add(t, j, row(event.Created, 4000, "db-0", "b", "5", nil, second))
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for _, tc := range []struct {
		ms   int
		uid  string
		want string
	}{
		{3999, "", `a {"v":1}`},
		{4000, "", `b {"v":3}`}, // the two overlap
		{4300, "", `b {"v":3}`},
		{4484, "", `b {"v":3}`},
		{4485, "", `b {"v":3}`},
		{4300, "a", ""}, // whoever asks for the earlier object gets the same answer
		{4300, "b", `b {"v":3}`},
	} {
		var got []string
		for s, err := range r.At(t.Context(), Query{Names: []string{"db-0"}, UID: tc.uid}, at(tc.ms)) {
			must(t, err)
			got = append(got, fmt.Sprintf("%s %s", s.UID, s.JSON))
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("at %d ms, with UID %q: %s; want %s", tc.ms, tc.uid, text, tc.want)
		}
	}
	for _, tc := range []struct {
		since, until int
		want         string
	}{
		{1000, 3999, ""},
		{1000, 4000, `a {"v":1} to  by deleted, b  to {"v":3} by created`}, // although the deletion is dated after that
		{1000, 4350, `a {"v":1} to  by deleted, b  to {"v":3} by created`},
		{1000, 5000, `a {"v":1} to  by deleted, b  to {"v":3} by created`},
		{4000, 4350, `a  to  by deleted`}, // neither moment had it
		{4000, 5000, `a  to  by deleted`},
		{5000, 6000, ""},
	} {
		var got []string
		for both, err := range r.Between(t.Context(), Query{Names: []string{"db-0"}, Since: at(tc.since), Until: at(tc.until)}) {
			must(t, err)
			got = append(got, fmt.Sprintf("%s %s to %s by %s", both[0].UID, both[0].JSON, both[1].JSON, both[1].Last.Op))
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("from %d to %d ms: %s; want %s", tc.since, tc.until, text, tc.want)
		}
	}
}
