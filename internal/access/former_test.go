package access

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// formerTenant records a namespace whose second tenant came at the tenth minute. Names of the first one's objects begin with h.
func formerTenant(t *testing.T) (s *Source, reader *journal.Reader, came time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	version := 0
	row := func(op event.Op, k journal.Kind, name string, created, at time.Time) journal.Row {
		version++
		uid := k.Resource + "-" + name
		object := fmt.Appendf(nil, `{"metadata":{"creationTimestamp":%q,"name":%q,"n":%d}}`, created.Format(time.RFC3339), name, version)
		r := journal.Row{Meta: journal.Meta{Op: op, Kind: k, Namespace: "shop", Name: name, UID: uid, ResourceVersion: fmt.Sprint(version), Time: at, At: at, Manager: "m"}}
		if op != event.Created && op != event.Entered {
			r.Before = object
		}
		if op != event.Deleted {
			r.After = object
		}
		if k == pods {
			r.Owner = &event.Owner{Kind: "ReplicaSet", Name: name, UID: "replicasets-" + name}
		}
		return r
	}
	late := row(event.Deleted, deployments, "h-late", minute(1), minute(20)) // a list found that it is gone
	late.Since, late.Net = minute(3), true
	gap := journal.Row{Meta: journal.Meta{Op: event.Gap, Kind: deployments, Namespace: "shop", Time: minute(4), At: minute(4), Since: minute(3), Gap: &event.GapInfo{From: "1", To: "2", Reason: "h-reason"}}}
	var batches []journal.Batch
	for _, r := range []journal.Row{
		row(event.Created, deployments, "h-web", minute(1), minute(1)), row(event.Updated, deployments, "h-web", minute(1), minute(2)),
		row(event.Created, deployments, "h-late", minute(1), minute(1)), row(event.Entered, deployments, "h-entered", minute(1), minute(12)),
		row(event.Created, pods, "h-pod", minute(1), minute(1)), row(event.Created, secrets, "h-key", minute(1), minute(1)),
		gap, row(event.Deleted, deployments, "h-web", minute(1), minute(5)), row(event.Deleted, secrets, "h-key", minute(1), minute(5)),
		row(event.Created, deployments, "web", minute(10), minute(10)), row(event.Created, pods, "web", minute(11), minute(11)),
		late, row(event.Updated, deployments, "web", minute(10), minute(21)), row(event.Updated, deployments, "h-entered", minute(1), minute(22)),
	} {
		batches = append(batches, journal.Batch{Stream: journal.Stream{GroupResource: r.Kind.GroupResource()}, Head: journal.Head{Version: "1", At: start}, Rows: []journal.Row{r}})
	}
	if _, err := j.Append(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if reader, err = journal.OpenReader(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s = New(reader)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, reader, minute(10)
}

// tenant may see some kinds of the namespace shop, which was created at a time.
func tenant(created time.Time) *some {
	return &some{created: map[Namespace]time.Time{{"", "shop"}: created}, allowed: map[Target]bool{
		TargetOf(deployments, "shop"): true, TargetOf(pods, "shop"): true, TargetOf(secrets, "shop"): true,
	}}
}

// TestFormerTenant: who may see a namespace that was created anew sees nothing of the earlier one. Its objects need a right to
// the kind in the whole cluster.
func TestFormerTenant(t *testing.T) {
	s, _, came := formerTenant(t)
	var ids []string
	for e, err := range s.Journal.Rows(t.Context(), journal.Query{Quiet: true, Snapshots: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	queries := []journal.Query{
		{}, {Quiet: true, Snapshots: true, OldestFirst: true}, {Namespaces: []string{"shop"}}, {Namespaces: []string{"sh*"}}, {Resources: []string{"deployments.apps"}},
		{Names: []string{"h-web", "h-pod", "h-late", "web"}}, {UID: "deployments-h-web"}, {Ops: []event.Op{event.Gap}}, {Ops: []event.Op{event.Deleted}},
		{Names: []string{"h-pod", "web"}, Owned: map[string][]string{"replicasets.apps": {"pods"}}, Namespaces: []string{"shop"}},
		{Since: start, Until: start.Add(time.Hour)}, {After: 1, Before: 8, Quiet: true, Snapshots: true},
	}
	say := func(v *some) string {
		return strings.Join(answers(With(t.Context(), v), t, s, queries, ids), "\n")
	}
	now := say(tenant(came))
	if strings.Contains(now, "h-") {
		t.Errorf("something of the earlier namespace came out:\n%s", now)
	}
	if !strings.Contains(now, "Name:web") {
		t.Errorf("the present namespace is not shown:\n%s", now)
	}
	if all := say(tenant(start)); !strings.Contains(all, "h-web") || !strings.Contains(all, "h-reason") || !strings.Contains(all, "h-late") {
		t.Errorf("a viewer of the namespace, which was never created anew, sees too little:\n%s", all)
	}
	wide := tenant(came)
	for _, k := range kinds {
		wide.allowed[TargetOf(k, "")] = true
	}
	if all := say(wide); !strings.Contains(all, "h-web") || !strings.Contains(all, "h-reason") || !strings.Contains(all, "h-key") {
		t.Errorf("a viewer of the whole cluster sees too little:\n%s", all)
	}
	if none := say(tenant(time.Time{})); strings.Contains(none, "web") {
		t.Errorf("a namespace that does not exist is shown:\n%s", none)
	}
	unknown := tenant(came)
	unknown.err = errors.New("the API server does not answer")
	if err := drain(s.Rows(With(t.Context(), unknown), journal.Query{})); !errors.As(err, new(*CheckError)) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestFormerTenantCounts: charts count what is shown, also where a deletion of the earlier namespace was noticed late.
func TestFormerTenantCounts(t *testing.T) {
	s, _, came := formerTenant(t)
	for what, v := range map[string]*some{"the tenant": tenant(came), "one of both": tenant(start)} {
		ctx := With(t.Context(), v)
		want, got := map[string]int{}, map[string]int{}
		for e, err := range s.Rows(ctx, journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			want[string(e.Op)+" "+e.Kind.Resource]++
		}
		all, err := s.Counts(ctx, journal.Query{Since: start, Until: start.Add(time.Hour)}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range all {
			for _, n := range series.Counts {
				if got[string(series.Op)+" "+series.Kind.Resource] += n; n < 0 {
					t.Errorf("%s: %d changes", what, n)
				}
			}
		}
		for k := range got {
			if got[k] == 0 {
				delete(got, k)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
			t.Errorf("%s: counted %v, shown are %v", what, got, want)
		}
	}
}

// TestFormerTenantNoOracle: names of the earlier namespace cannot be found by the work of an answer.
func TestFormerTenantNoOracle(t *testing.T) {
	s, r, came := formerTenant(t)
	v := tenant(came)
	work := func(ask func(ctx context.Context) error) string {
		v.asked = 0
		before := r.Looked()
		if err := ask(With(t.Context(), v)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d reviews, %d rows", v.asked, r.Looked()-before)
	}
	var hits, misses []string
	for _, name := range []string{"h-web", "x-web"} {
		all := []string{
			work(func(ctx context.Context) error { return second(s.Names(ctx, nil, "shop", name[:3], 10)) }),
			work(func(ctx context.Context) error { return all(s.Rows(ctx, journal.Query{Names: []string{name}})) }),
			work(func(ctx context.Context) error { return all(s.At(ctx, journal.Query{Names: []string{name}}, came)) }),
			work(func(ctx context.Context) error { return all(s.Rows(ctx, journal.Query{UID: "deployments-" + name})) }),
		}
		if name[0] == 'h' {
			hits = all
		} else {
			misses = all
		}
	}
	if !slices.Equal(hits, misses) {
		t.Errorf("%q if something hidden matches, else %q", hits, misses)
	}
}
