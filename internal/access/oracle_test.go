package access

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestNoOracle: how much work an answer takes does not depend on whether something hidden matches. So its time tells no name,
// letter by letter. Work is the reviews, and the objects and changes that are read.
func TestNoOracle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	version := 0
	var batches []journal.Batch
	record := func(k journal.Kind, ns, name, manager string, owner *event.Owner) {
		version++
		at := start.Add(time.Duration(version) * time.Second)
		r := journal.Row{After: fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name), Meta: journal.Meta{Op: event.Created, Kind: k, Namespace: ns, Name: name,
			UID: "uid-" + k.Resource + name, ResourceVersion: fmt.Sprint(version), Time: at, At: at, Manager: manager, Owner: owner}}
		batches = append(batches, journal.Batch{Stream: journal.Stream{GroupResource: k.GroupResource()}, Head: journal.Head{Version: fmt.Sprint(version), At: at}, Rows: []journal.Row{r}})
	}
	for i := range 300 {
		for _, ns := range []string{"a", "b", "c"} {
			record(deployments, ns, fmt.Sprint("web-", i), "helm", nil)
			record(pods, ns, fmt.Sprint("pod-", i), "kubelet", nil)
			record(secrets, ns, fmt.Sprint("key-", i), "argo", nil)
		}
	}
	record(deployments, "b", "launch", "pilot", nil)
	record(replicaSets, "b", "launch-1", "pilot", &event.Owner{Kind: "Deployment", Name: "launch", UID: "uid-deploymentslaunch"})
	record(secrets, "a", "merger", "lawyer", nil)
	record(secrets, "secret-project", "merger", "lawyer", nil)
	record(nodes, "", "gpu-1", "cloud", nil)
	if _, err := j.Append(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for who, allowed := range map[string]map[Target]bool{
		"of nothing":       nil,
		"of one namespace": {TargetOf(deployments, "a"): true, TargetOf(pods, "a"): true, TargetOf(replicaSets, "a"): true},
		"of pods":          {TargetOf(pods, ""): true, TargetOf(deployments, "a"): true},
	} {
		r, err := journal.OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		viewer, looked := &some{allowed: allowed}, 0
		hiddenID := map[string]string{}
		for e, err := range r.Rows(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			hiddenID[e.Kind.Resource] = e.ID
		}
		s := New(r)
		work := func(ask func(ctx context.Context) error) string {
			viewer.asked, looked = 0, -r.Looked()
			if err := ask(With(t.Context(), viewer)); err != nil {
				t.Fatalf("%s: %v", who, err)
			}
			return fmt.Sprintf("%d reviews, %d rows", viewer.asked, r.Looked()+looked)
		}
		rows := func(q journal.Query) func(context.Context) error {
			return func(ctx context.Context) error { return all(s.Rows(ctx, q)) }
		}
		at := func(q journal.Query) func(context.Context) error {
			return func(ctx context.Context) error { return all(s.At(ctx, q, start.Add(time.Hour))) }
		}
		between := func(q journal.Query) func(context.Context) error {
			q.Since, q.Until = start, start.Add(time.Hour)
			return func(ctx context.Context) error { return all(s.Between(ctx, q)) }
		}
		names := func(resources []string, prefix string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.Names(ctx, resources, "", prefix, 10)
				return err
			}
		}
		ids := func(id string) func(context.Context) error {
			return func(ctx context.Context) error {
				before := r.Looked()
				if _, err := s.ByID(ctx, id); !errors.Is(err, journal.ErrNotFound) {
					return fmt.Errorf("found: %w", err)
				}
				looked -= r.Looked() - before // the change itself: an id is no name
				return nil
			}
		}
		for _, tc := range []struct {
			why       string
			hit, miss func(context.Context) error
		}{
			{"suggestions", names(nil, "m"), names(nil, "x")},
			{"suggestions of a kind", names([]string{"secrets"}, "merg"), names([]string{"secrets"}, "merx")},
			{"suggestions of a cluster-scoped kind", names([]string{"nodes"}, "g"), names([]string{"nodes"}, "x")},
			{"changes of a name", rows(journal.Query{Names: []string{"merger"}}), rows(journal.Query{Names: []string{"merges"}})},
			{"changes of a name in a namespace", rows(journal.Query{Names: []string{"merger"}, Namespaces: []string{"a"}}), rows(journal.Query{Names: []string{"merges"}, Namespaces: []string{"a"}})},
			{"changes of an owner", rows(journal.Query{Resources: []string{"deployments.apps"}, Names: []string{"launch"}, Owned: owns}), rows(journal.Query{Resources: []string{"deployments.apps"}, Names: []string{"lauxch"}, Owned: owns})},
			{"changes of a UID", rows(journal.Query{UID: "uid-secretsmerger"}), rows(journal.Query{UID: "uid-secretsmerges"})},
			{"changes of a manager", rows(journal.Query{Managers: []string{"lawyer"}}), rows(journal.Query{Managers: []string{"lawyex"}})},
			{"changes of managers", rows(journal.Query{Managers: []string{"law*"}}), rows(journal.Query{Managers: []string{"lax*"}})},
			{"changes by a field selector", rows(journal.Query{Fields: []selection.Field{{Value: "merger"}}}), rows(journal.Query{Fields: []selection.Field{{Value: "merges"}}})},
			{"a namespace", rows(journal.Query{Namespaces: []string{"secret-project"}}), rows(journal.Query{Namespaces: []string{"secret-projecx"}})},
			{"namespaces", rows(journal.Query{Namespaces: []string{"secret*"}}), rows(journal.Query{Namespaces: []string{"secrex*"}})},
			{"excluded namespaces", rows(journal.Query{Without: []string{"secret*"}}), rows(journal.Query{Without: []string{"secrex*"}})},
			{"states of a name", at(journal.Query{Names: []string{"merger"}}), at(journal.Query{Names: []string{"merges"}})},
			{"states of a namespace", at(journal.Query{Namespaces: []string{"secret*"}}), at(journal.Query{Namespaces: []string{"secrex*"}})},
			{"an id", ids(hiddenID["secrets"]), ids("aaaaaaaaaaaaaaaaaaaaaaaaaa")},
			{"an id of a cluster-scoped kind", ids(hiddenID["nodes"]), ids("aaaaaaaaaaaaaaaaaaaaaaaaab")},
			{"differences of a name", between(journal.Query{Names: []string{"merger"}}), between(journal.Query{Names: []string{"merges"}})},
		} {
			if hit, miss := work(tc.hit), work(tc.miss); hit != miss {
				t.Errorf("a viewer %s, %s: %s if something hidden matches, else %s", who, tc.why, hit, miss)
			}
		}
	}
}

// all reads a sequence to its end.
func all[T any](in iter.Seq2[T, error]) error {
	for _, err := range in {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestLiveChecksFewPlaces: a live page, which reads the newest changes again and again, checks the rights to these only; also
// where its filter selects others.
func TestLiveChecksFewPlaces(t *testing.T) {
	w := newWorld(4)
	w.viewer.allowed = map[Target]bool{TargetOf(pods, "a"): true}
	w.fill()
	s := w.open(t, 0)
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for what, q := range map[string]journal.Query{"all": {}, "names": {Names: []string{"web1"}}, "kinds": {Ops: []event.Op{event.Deleted}}} {
		q.After, q.Before = last-5, last+1
		w.viewer.asked = 0
		if err := all(s.Rows(With(t.Context(), w.viewer), q)); err != nil {
			t.Fatal(err)
		}
		asked[what] = w.viewer.asked
	}
	if most := len(kinds) + 5; asked["all"] > most || asked["names"] != asked["all"] || asked["kinds"] != asked["all"] {
		t.Errorf("reviews: %v, want the same, and at most %d", asked, most)
	}
	w.viewer.asked = 0
	if err := all(s.Rows(With(t.Context(), w.viewer), journal.Query{})); err != nil || w.viewer.asked < 12 {
		t.Errorf("all changes took %d reviews, %v", w.viewer.asked, err)
	}
}
