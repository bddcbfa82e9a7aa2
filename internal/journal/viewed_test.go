package journal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestCandidates: WithID yields everything that ByID chooses from, page by page, up to its bound.
func TestCandidates(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	j, err := Open(t.Context(), path, Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	k := Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	var rows []Row
	const many = 1500
	for i := range many {
		at := time.Date(2026, 3, 1, 10, 0, i, 0, time.UTC)
		name := fmt.Sprintf("cm-%d", i/2)
		rows = append(rows, Row{After: []byte(`{}`), Meta: Meta{Op: event.Created, Kind: k, Namespace: fmt.Sprint("ns", i%2), Name: name,
			UID: fmt.Sprint(i), ResourceVersion: fmt.Sprint(i), Time: at, At: at}})
	}
	if _, err := j.Append(t.Context(), []Batch{{Stream: Stream{GroupResource: "configmaps"}, Head: Head{Version: "1", At: time.Now()}, Rows: rows}}); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ids := map[string]int{}
	for e, err := range r.Rows(t.Context(), Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 26} {
			ids[e.ID[:n]]++
		}
	}
	for prefix, want := range ids {
		n := 0
		for e, err := range r.WithID(t.Context(), nil, prefix, many) {
			if err != nil || e.ID[:len(prefix)] != prefix {
				t.Fatalf("%q: %s, %v", prefix, e.ID, err)
			}
			n++
		}
		if n != want {
			t.Errorf("%d changes begin with %q, want %d", n, prefix, want)
		}
	}
	for e, err := range r.WithID(t.Context(), nil, "NO!", many) {
		t.Errorf("found %s, %v", e.ID, err)
	}
	n := 0
	for _, err := range r.WithID(t.Context(), nil, "", 100) {
		if n++; err != nil && (!errors.Is(err, ErrShortID) || n != 101) {
			t.Errorf("after %d changes: %v", n, err)
		}
	}
	if n != 101 {
		t.Errorf("%d changes beyond the bound", n)
	}
}
