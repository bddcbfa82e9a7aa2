package journal

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// TestEpochs: after a server's history was replaced, the same version of the same object is another change, and so is the gap
// between the same versions.
func TestEpochs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	in := func(r Row, epoch int64) Row {
		r.Epoch = epoch
		return r
	}
	gap := pod(event.Gap, 3)
	gap.Name, gap.UID, gap.ResourceVersion = "", "", ""
	gap.Before, gap.Gap = nil, &event.GapInfo{From: "2", To: "3", Reason: "history-changed"}
	for _, tc := range []struct {
		why  string
		rows []Row
		want Appended
	}{
		{"the first history", []Row{pod(event.Created, 1), in(pod(event.Updated, 2), 1), in(gap, 1)}, Appended{Rows: 3, Last: 3}},
		{"the first history again: epochs 0 and 1 are the same", []Row{in(pod(event.Created, 1), 1), pod(event.Updated, 2), gap}, Appended{Duplicates: 3, Last: 3}},
		{"the second", []Row{in(gap, 2), in(pod(event.Updated, 2), 2)}, Appended{Rows: 2, Last: 5}},
		{"the second again", []Row{in(gap, 2), in(pod(event.Updated, 2), 2)}, Appended{Duplicates: 2, Last: 5}},
		{"the third", []Row{in(pod(event.Updated, 2), 3)}, Appended{Rows: 1, Last: 6}},
	} {
		if got := add(t, j, tc.rows...); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ids := map[string]bool{}
	var epochs []int64
	for e, err := range r.Rows(t.Context(), Query{OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = true
		epochs = append(epochs, e.Epoch)
		if found, err := r.ByID(t.Context(), e.ID); err != nil || found.Seq != e.Seq {
			t.Errorf("%s is change %d, not %d: %v", e.ID, found.Seq, e.Seq, err)
		}
	}
	if d := cmp.Diff([]int64{0, 0, 0, 2, 2, 3}, epochs); d != "" || len(ids) != len(epochs) {
		t.Errorf("%d ids; epochs (-want +got):\n%s", len(ids), d)
	}
}

// TestHighestEpochs: Epochs has the highest of each kind of a cluster, also of a stream that was forgotten.
func TestHighestEpochs(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for s, n := range map[Stream]int64{
		{GroupResource: "pods"}: 1, {GroupResource: "pods", Namespace: "shop"}: 3, {GroupResource: "widgets.example.com"}: 7,
		{GroupResource: "pods", Cluster: "staging"}: 9,
	} {
		_, err := j.Append(t.Context(), []Batch{{Stream: s, Head: Head{Epoch: n, At: epoch}}})
		must(t, err)
	}
	must(t, j.Forget(t.Context(), Stream{GroupResource: "pods", Namespace: "shop"}))
	for cluster, want := range map[string]map[string]int64{
		"": {"pods": 3, "widgets.example.com": 7}, "staging": {"pods": 9}, "other": {},
	} {
		got, err := j.Epochs(t.Context(), cluster)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q (-want +got): %v\n%s", cluster, err, d)
		}
	}
}

// TestOneIDPerVersion: a version of an object is one change, however it was found, and so is its deletion. An object that
// is gone, or back, is news although the journal has such a change.
func TestOneIDPerVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	for _, tc := range []struct {
		why     string
		op      event.Op
		version int
		news    bool
	}{
		{"created", event.Created, 1, true},
		{"found by a list, too", event.Snapshot, 1, false},
		{"updated", event.Updated, 2, true},
		{"found by the list of another selection", event.Entered, 2, false},
		{"left: the last known version", event.Left, 2, true},
		{"once", event.Left, 2, false},
		{"back", event.Entered, 3, true},
		{"deleted", event.Deleted, 4, true},
		{"a deletion that was missed is the same", event.Deleted, 3, false},
		{"back in a version that was seen", event.Snapshot, 3, true},
		{"once", event.Updated, 3, false},
		{"gone again", event.Deleted, 3, true},
		{"once", event.Deleted, 5, false},
		{"back again", event.Created, 3, true},
		{"gone for the third time", event.Deleted, 3, true},
	} {
		row := pod(tc.op, tc.version)
		want := Appended{Duplicates: 1}
		if tc.news {
			want = Appended{Rows: 1}
		}
		got := add(t, j, row)
		if want.Last = got.Last; got != want {
			t.Errorf("%s: %+v, want %+v", tc.why, got, want)
		}
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	ids := map[string]bool{}
	for e, err := range r.Rows(t.Context(), Query{OldestFirst: true, Snapshots: true}) {
		must(t, err)
		if ids[e.ID] {
			t.Errorf("change %d has the id of another", e.Seq)
		}
		ids[e.ID] = true
		if found, err := r.ByID(t.Context(), e.ID); err != nil || found.Seq != e.Seq {
			t.Errorf("%s is change %d, not %d: %v", e.ID, found.Seq, e.Seq, err)
		}
	}
	if len(ids) != 9 {
		t.Errorf("%d changes", len(ids))
	}
}
