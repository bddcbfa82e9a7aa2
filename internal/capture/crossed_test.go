package capture

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// labelledBy is an object with labels, each last written by its manager at a time.
func labelledBy(labels map[string]string, managers map[string]string, at time.Time) map[string]any {
	var entries []any
	for label, manager := range managers {
		entries = append(entries, map[string]any{
			"manager": manager, "operation": "Update", "time": at.UTC().Format(time.RFC3339), "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:" + label: map[string]any{}}}},
		})
	}
	set := map[string]any{}
	for k, v := range labels {
		set[k] = v
	}
	return map[string]any{"metadata": map[string]any{
		"labels": set, "managedFields": append(entries, map[string]any{"manager": "creator", "operation": "Update", "time": "2000-01-01T00:00:00Z"}),
	}}
}

// changesOf returns the changes of all batches so far.
func (r *rig) changesOf() (all []Version) {
	r.take()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range bytes.Split(r.dump.Bytes(), []byte("\n")) {
		var m struct{ Batch *Batch }
		if json.Unmarshal(line, &m) == nil && m.Batch != nil {
			all = append(all, m.Batch.Changes...)
		}
	}
	return all
}

// TestCrossing: an object enters and leaves a selection by the write that does it, at the time of that write.
func TestCrossing(t *testing.T) {
	type labels = map[string]string
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}, Labels: "app=web,!hold"}}}
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "n", "a", labelledBy(labels{"app": "other"}, labels{"app": "helm"}, time.Now()))
	}
	scenario(t, o, before, func(r *rig) {
		var want []Version
		put := func(op event.Op, manager string, set labels, managers labels) {
			r.pass(7 * time.Minute)
			r.pass(300 * time.Millisecond)
			at := time.Now()
			r.server.Put(cmGVR, "n", "a", labelledBy(set, managers, at))
			r.pass(0)
			v := Version{}
			v.Op, v.Manager, v.Time = op, manager, at.Truncate(time.Second)
			if manager == "?" {
				v.Time = at
			}
			want = append(want, v)
		}
		put(event.Entered, "kubectl-label", labels{"app": "web"}, labels{"app": "kubectl-label"})
		put(event.Left, "argocd", labels{"app": "db"}, labels{"app": "argocd"})
		put(event.Entered, "kubectl-label", labels{"app": "web"}, labels{"app": "kubectl-label"})
		put(event.Left, "?", labels{}, labels{})
		put(event.Entered, "kubectl-edit", labels{"app": "web"}, labels{"app": "kubectl-edit"})
		put(event.Left, "pause", labels{"app": "web", "hold": "x"}, labels{"hold": "pause"})
		got := r.changesOf()
		if len(got) != len(want) {
			t.Fatalf("%d changes, want %d", len(got), len(want))
		}
		for i, w := range want {
			if v := got[i]; v.Op != w.Op || v.Manager != w.Manager || !v.Time.Equal(w.Time) {
				t.Errorf("change %d: %s by %s at %v, want %s by %s at %v", i, v.Op, v.Manager, v.Time, w.Op, w.Manager, w.Time)
			}
		}
	})
}

// TestCrossingTwice: changes within a second are not dated in reverse.
func TestCrossingTwice(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}, Labels: "app=web"}}}
	before := func(s *informertest.Server) { s.Put(cmGVR, "n", "a", labelled("web")) }
	scenario(t, o, before, func(r *rig) {
		r.pass(time.Hour + 500*time.Millisecond)
		r.server.Put(cmGVR, "n", "a", labelledBy(nil, nil, time.Now()))
		r.pass(100 * time.Millisecond)
		r.server.Put(cmGVR, "n", "a", labelledBy(map[string]string{"app": "web"}, map[string]string{"app": "kubectl"}, time.Now()))
		r.pass(0)
		got := r.changesOf()
		if len(got) != 2 || got[0].Op != event.Left || got[1].Op != event.Entered || got[1].Time.Before(got[0].Time) {
			t.Errorf("got %+v", got)
		}
	})
}
