package journal

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// TestOwnedObjects: a cycle of owners ends, and indirectly owned objects are found.
func TestOwnedObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	owned := func(ns, name, owner string) Row {
		r := pod(event.Created, 1)
		r.Namespace, r.Name, r.UID = ns, name, ns+"-"+name
		if owner != "" {
			r.Owner = &event.Owner{Kind: r.Kind.Kind, Name: owner, UID: ns + "-" + owner}
		}
		return r
	}
	add(t, j,
		owned("shop", "web", ""), owned("shop", "web-1", "web"), owned("shop", "web-1-a", "web-1"), // 1, 2, 3
		owned("pay", "web-1-b", "web-1"),                     // 4: of web-1 in another namespace
		owned("shop", "x", "we"), owned("shop", "y", "web-"), // 5, 6: of neither
		owned("shop", "a", "b"), owned("shop", "b", "a"), owned("pay", "web-2", "web"), // 7, 8, 9
	)
	must(t, j.Close())
	self := map[string][]string{pod(event.Created, 1).Kind.GroupResource(): {pod(event.Created, 1).Kind.GroupResource()}}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for _, tc := range []struct {
		name string
		in   []string
		want []int64
	}{
		{"web", []string{"shop"}, []int64{1, 2, 3}},
		{"web", nil, []int64{1, 2, 3, 9}},
		{"a", nil, []int64{7, 8}},
		{"web-1", []string{"pay"}, []int64{4}}, // the owner itself is not recorded
	} {
		var got []int64
		q := Query{Names: []string{tc.name}, Resources: []string{pod(event.Created, 1).Kind.GroupResource()}, Namespaces: tc.in, Owned: self, OldestFirst: true}
		for e, err := range r.Rows(t.Context(), q) {
			must(t, err)
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s in %v: %v, want %v", tc.name, tc.in, got, tc.want)
		}
	}
}
