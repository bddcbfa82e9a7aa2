package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestStoryIsBounded: the size of an object does not decide how much a story keeps.
func TestStoryIsBounded(t *testing.T) {
	var conditions, finalizers []any
	for i := range 20_000 {
		conditions = append(conditions, obj{"type": fmt.Sprint("C", i), "status": "False", "message": strings.Repeat("m", 2000)})
		finalizers = append(finalizers, strings.Repeat("f", 1000))
	}
	huge := func() obj {
		return obj{"kind": "Deployment", "metadata": obj{"name": "web", "generation": int64(2), "finalizers": finalizers, "labels": obj{"a": strings.Repeat("l", 1<<20)}},
			"spec": obj{"replicas": int64(3), "template": obj{"spec": strings.Repeat("t", 1<<20)}}, "status": obj{"conditions": conditions}}
	}
	s := (*Story)(nil).Follow(change.Change{Meta: change.Meta{Op: event.Updated, Kind: resources["Deployment"].ID(), At: morning}, Names: resources["Deployment"].Names(), Before: huge(), After: huge()}, false)
	for name, o := range map[string]obj{"origin": s.fold.origin, "from": s.fold.from, "to": s.fold.to} {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 2*digestBytes {
			t.Errorf("%s keeps %d bytes", name, len(text))
		}
		if wanted(o) != 3 {
			t.Errorf("%s wants %d replicas", name, wanted(o))
		}
	}
	_ = s.Text() // ends
}

// TestStoryNeverChanges: a story stays the same after others continue it.
func TestStoryNeverChanges(t *testing.T) {
	web := func(generation, updated, ready int64) obj {
		return obj{"kind": "Deployment", "metadata": obj{"name": "web", "generation": generation},
			"spec":   obj{"replicas": int64(3), "template": obj{"image": generation}},
			"status": obj{"observedGeneration": generation, "replicas": int64(3), "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}}
	}
	at := func(seconds int, before, after obj, paths ...string) change.Change {
		c := change.Change{Meta: change.Meta{Op: event.Updated, Kind: resources["Deployment"].ID(), Name: "web", UID: "u", At: morning.Add(time.Duration(seconds) * time.Second)}, Names: resources["Deployment"].Names(), Before: before, After: after}
		for _, p := range paths {
			c.Fields = append(c.Fields, change.FieldChange{Change: fieldChange(t, p)})
		}
		return c
	}
	begun := (*Story)(nil).Follow(at(0, web(1, 3, 3), web(2, 1, 2), "spec.template", "status.updatedReplicas"), false)
	const rolling = "rolling out: 1/3 updated, 2/3 ready"
	if got := begun.Text(); got != rolling || !begun.Moving() {
		t.Fatalf("got %q", got)
	}
	for range 2 {
		done := begun.Follow(at(13, web(2, 1, 2), web(2, 3, 3), "status.readyReplicas"), true)
		if got := done.Text(); got != "rolled out in 13 s: 3/3 ready" || done.Moving() || done.Severity() != event.Recovery {
			t.Errorf("got %q, %s", got, done.Severity())
		}
		if got := begun.Text(); got != rolling {
			t.Errorf("the story before is now %q", got)
		}
	}
	if gone := begun.Follow(change.Change{Meta: change.Meta{Op: event.Deleted}, Before: web(2, 1, 2)}, false); gone != nil {
		t.Error("a story of what is gone")
	}
	if blind := (*Story)(nil).Follow(change.Change{Meta: change.Meta{Op: event.Updated}, Blind: true, After: web(2, 1, 2)}, false); blind != nil {
		t.Error("a story of which nobody knows the beginning")
	}
}

func fieldChange(t *testing.T, path string) diff.Change {
	p, err := diff.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	return diff.Change{Op: diff.Replace, Path: p}
}
