package journal

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestFirstSeen: an object that was there before the journal has the time of its creation. What it was between that and
// the snapshot in which it was first seen is unknown, and never the snapshot's state.
func TestFirstSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	first := pod(event.Snapshot, 1)
	first.After = []byte(`{"kind":"Pod","version":1,"metadata":{"creationTimestamp":"` + first.Time.Format(time.RFC3339) + `"}}`)
	first.At = epoch.Add(10 * time.Second)
	second := pod(event.Updated, 20)
	second.Before = first.After
	add(t, j, first, second)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at := func(second int) (states []State) {
		for s, err := range r.At(t.Context(), Query{}, epoch.Add(time.Duration(second)*time.Second)) {
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, s)
		}
		return states
	}
	if s := at(0); len(s) != 0 {
		t.Errorf("before its creation: %+v", s)
	}
	if s := at(5); len(s) != 1 || s[0].Presence != Unknown || s[0].JSON != nil || s[0].Next != nil || !s[0].From.Equal(first.At) {
		t.Errorf("after its creation, before the snapshot: %+v", s)
	}
	if s := at(10); len(s) != 1 || s[0].Presence != Present || !bytes.Equal(s[0].JSON, first.After) {
		t.Errorf("at the snapshot: %+v", s)
	}
	var all [][2]State
	for both, err := range r.Between(t.Context(), Query{Since: epoch.Add(5 * time.Second), Until: epoch.Add(30 * time.Second)}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, both)
	}
	if len(all) != 1 || !bytes.Equal(all[0][0].JSON, first.After) || !all[0][0].From.Equal(first.At) || !bytes.Equal(all[0][1].JSON, second.After) {
		t.Errorf("a difference begins with the snapshot, and says so: %+v", all)
	}
}
