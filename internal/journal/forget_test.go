package journal

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// many returns the given operations on each of some pods.
func many(pods int, ops ...event.Op) (rows []Row) {
	for i := range pods {
		for v, op := range ops {
			r := pod(op, v+1)
			r.Name, r.UID = "web-"+strconv.Itoa(i), "uid-"+strconv.Itoa(i)
			rows = append(rows, r)
		}
	}
	return rows
}

// TestForgetInSteps: a stream that is forgotten in part cannot be resumed, and in the end its states are gone and its
// history is not.
func TestForgetInSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	const n = 2*forgetRows + 20
	head := Head{Version: "9", Live: true, EverLive: true, At: epoch}
	_, err := j.Append(t.Context(), []Batch{{Stream: pods, Head: head, Rows: many(n, event.Created, event.Updated)}})
	must(t, err)
	want := contents(t, path)
	must(t, j.write(t.Context(), "write", func() error {
		if done, err := j.forgetSome(pods); done || err != nil {
			t.Errorf("the first step: %t, %v", done, err)
		}
		return nil
	}))
	if h, ok, err := j.Head(t.Context(), pods); !ok || h.Live || h.EverLive || h.Version != "" || err != nil {
		t.Errorf("half forgotten: %+v, %t, %v", h, ok, err)
	}
	if left, err := j.db.integer("SELECT count(*) FROM live"); left != n-forgetRows || err != nil {
		t.Errorf("%d are live, %v", left, err)
	}
	shop := Stream{GroupResource: "pods", Namespace: "shop"}
	if from, _, err := j.Resume(t.Context(), shop); from != OriginOthers || err != nil {
		t.Fatalf("%v, %v", from, err)
	}
	if h, _, err := j.Head(t.Context(), shop); h.Live || h.Version != "" || err != nil {
		t.Errorf("a stream that adopts the rest must be listed: %+v, %v", h, err)
	}
	must(t, j.Forget(t.Context(), shop), j.Forget(t.Context(), pods))
	if all, err := j.Streams(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if states, err := j.db.integer("SELECT count(*) FROM live"); states != 0 || err != nil {
		t.Errorf("%d states are kept, %v", states, err)
	}
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	verify(t, path)
}

// verify runs Verify on a journal.
func verify(t *testing.T, path string) {
	t.Helper()
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	if rep, err := r.Verify(t.Context(), Verifying{Damage: func(d Damage) { t.Errorf("%s: %s", d.Part, d.Text) }}); err != nil || rep.Damaged != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}
