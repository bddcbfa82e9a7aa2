package journal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
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
		objects := map[key][]*modelRow{}
		for i := range h.rows {
			if row := &h.rows[i]; row.Op.HasObject() {
				k := key{row.Kind.GroupResource(), uidKey(&row.Meta)}
				objects[k] = append(objects[k], row)
			}
		}
		begin := h.rows[0].At
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
			for k, rows := range objects {
				json, presence := stateAt(rows, at)
				if presence == Present && since(rows[0]).After(at) && at.Before(begin) {
					presence, json = Unknown, nil // the journal does not reach back so far
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
		if compared < 1000 {
			t.Errorf("only %d states were compared", compared)
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
