package journal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// converted returns a conversion of pod web at a version.
func converted(version int, form uint64) Row {
	r := pod(event.Converted, version)
	r.Quiet, r.Manager = true, "?"
	r.Before, r.After = r.After, fmt.Appendf(nil, `{"kind":"Pod","version":%d,"form":%d}`, version, form)
	r.Form, r.Sum = form, form
	return r
}

// TestConversions: one version of an object can be served in several forms. Each is a change with its own id, as is the write
// that made the version; a repeated one is a duplicate.
func TestConversions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	update := pod(event.Updated, 5)
	update.Sum = 1 << 63
	for _, tc := range []struct {
		why  string
		row  Row
		want Appended
		sum  uint64
	}{
		{"a write", update, Appended{Rows: 1, Last: 1}, 1 << 63},
		{"the same version in another form", converted(5, 7), Appended{Rows: 1, Quiet: 1, Last: 2}, 7},
		{"again", converted(5, 7), Appended{Duplicates: 1, Last: 2}, 7},
		{"in a third form", converted(5, 1<<63+8), Appended{Rows: 1, Quiet: 1, Last: 3}, 1<<63 + 8},
		{"again", converted(5, 1<<63+8), Appended{Duplicates: 1, Last: 3}, 1<<63 + 8},
		{"the write again", update, Appended{Duplicates: 1, Last: 3}, 1 << 63},
		{"the next one", pod(event.Updated, 6), Appended{Rows: 1, Last: 4}, 0},
	} {
		if got := add(t, j, tc.row); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
		if got := sums(t, j); got[0] != tc.sum {
			t.Errorf("%s: the state has the sum %x, want %x", tc.why, got, tc.sum)
		}
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	ids, forms := map[string]bool{}, []uint64{}
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, OldestFirst: true}) {
		must(t, err)
		ids[e.ID], forms = true, append(forms, e.Form)
		if found, err := r.ByID(t.Context(), e.ID); err != nil || found.Seq != e.Seq {
			t.Errorf("%s is change %d, not %d: %v", e.ID, found.Seq, e.Seq, err)
		}
	}
	if d := cmp.Diff([]uint64{0, 7, 1<<63 + 8, 0}, forms); d != "" || len(ids) != len(forms) {
		t.Errorf("%d ids; forms (-want +got):\n%s", len(ids), d)
	}
	var ops []event.Op
	for e, err := range r.Rows(t.Context(), Query{}) {
		must(t, err)
		ops = append(ops, e.Op)
	}
	if d := cmp.Diff([]event.Op{event.Updated, event.Updated}, ops); d != "" {
		t.Errorf("what is not quiet (-want +got):\n%s", d)
	}
	if _, err := j.Append(t.Context(), []Batch{{Stream: pods, Rows: []Row{converted(7, 0)}}}); err == nil {
		t.Error("a conversion without a form was written")
	}
	must(t, j.Close())
	verify(t, path)
}

// TestSums: only sums of another key are dropped.
func TestSums(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	row := pod(event.Created, 1)
	row.Sum = 5
	for _, tc := range []struct {
		key  string
		want uint64
	}{{"first", 0}, {"first", 5}, {"second", 0}, {"second", 5}, {"first", 0}} {
		must(t, j.Sums(t.Context(), tc.key))
		if got := sums(t, j); len(got) > 0 && got[0] != tc.want {
			t.Errorf("with the %s key: %v, want %d", tc.key, got, tc.want)
		}
		add(t, j, row)
	}
}

// sums returns the sums of the pods' states.
func sums(t *testing.T, j *Journal) (all []uint64) {
	t.Helper()
	for o, err := range j.Objects(t.Context(), pods) {
		must(t, err)
		all = append(all, o.Sum)
	}
	return all
}
