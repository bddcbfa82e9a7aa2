package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestCandidates: Objects and WithID yield everything that Names and ByID choose from, page by page.
func TestCandidates(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	j, err := Open(t.Context(), path, Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	k := Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	var rows []Row
	const many = 3 * namesPage
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
	for _, tc := range []struct {
		resources         []string
		namespace, prefix string
		want              int
	}{{nil, "", "", many}, {[]string{"configmaps"}, "ns1", "", many / 2}, {nil, "", "cm-1", 0}, {nil, "nowhere", "", 0}, {[]string{"pods"}, "", "", 0}} {
		var got []ObjectName
		for o, err := range r.Objects(t.Context(), tc.resources, tc.namespace, tc.prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, o)
		}
		names, err := r.Names(t.Context(), tc.resources, tc.namespace, tc.prefix, many)
		if err != nil {
			t.Fatal(err)
		}
		var distinct []string
		for _, o := range got {
			distinct = append(distinct, o.Name)
		}
		if distinct = slices.Compact(distinct); !slices.Equal(distinct, names) {
			t.Errorf("%+v: %d names, Names has %d", tc, len(distinct), len(names))
		}
		if tc.want > 0 && len(got) != tc.want || !slices.IsSortedFunc(got, func(a, b ObjectName) int { return compareNames(a, b) }) {
			t.Errorf("%+v: %d objects, or not in order", tc, len(got))
		}
	}
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
		for e, err := range r.WithID(t.Context(), prefix) {
			if err != nil || e.ID[:len(prefix)] != prefix {
				t.Fatalf("%q: %s, %v", prefix, e.ID, err)
			}
			n++
		}
		if n != want {
			t.Errorf("%d changes begin with %q, want %d", n, prefix, want)
		}
	}
	for e, err := range r.WithID(t.Context(), "NO!") {
		t.Errorf("found %s, %v", e.ID, err)
	}
}

func compareNames(a, b ObjectName) int {
	if a.Name < b.Name {
		return -1
	}
	if a.Name > b.Name {
		return 1
	}
	return 0
}
