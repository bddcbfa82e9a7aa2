package sinks

import (
	"testing"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/internal/deliver"
)

// TestChanges: changes have about 1 KB, and unique ids.
func TestChanges(t *testing.T) {
	seen := map[string]bool{}
	for _, from := range []int{0, 1_000_000, 2_000_000} {
		for _, item := range changes(from, 2*fleet) {
			body, err := item.Event().MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if len(body) < 950 || len(body) > 1250 {
				t.Fatalf("a change has %d bytes: %s", len(body), body)
			}
			if seen[item.Event().ID] {
				t.Fatalf("the id of version %s is not unique", item.Event().Data.Resource.ResourceVersion)
			}
			seen[item.Event().ID] = true
		}
	}
}

// TestSingle: each read yields one change, and no change is lost.
func TestSingle(t *testing.T) {
	st := &Store{single: true}
	st.Add(changes(0, 3)...)
	var seqs []int64
	for after := int64(0); ; {
		var got []deliver.Item
		for item, err := range st.Read(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item)
		}
		if len(got) == 0 {
			break
		}
		if len(got) > 1 {
			t.Fatalf("a read yields %d changes", len(got))
		}
		after = got[0].Seq
		seqs = append(seqs, after)
	}
	if len(seqs) != 3 || seqs[2] != 3 {
		t.Errorf("the changes are %v", seqs)
	}
}

// TestMissing: a kind whose program is missing yields an empty sample and no error.
func TestMissing(t *testing.T) {
	k := Kind{Name: "x", Needs: "/nonexistent/program"}
	if s, err := k.measure(t.Context(), harness.Input{Dir: t.TempDir()}); err != nil || len(s) > 0 {
		t.Errorf("measured %v, %v", s, err)
	}
}
