package journal

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// in returns a change of pod web in a cluster; the empty name is the cluster that the journal is named after.
func in(cluster string, op event.Op, version int) Row {
	r := pod(op, version)
	r.Kind.Cluster = cluster
	return r
}

// addIn appends rows of one cluster.
func addIn(t *testing.T, j *Journal, cluster string, rows ...Row) Appended {
	t.Helper()
	s := pods
	s.Cluster = cluster
	a, err := j.Append(t.Context(), []Batch{{
		Stream: s, Head: Head{Version: "9", At: epoch, Live: true, EverLive: true, Identity: "id of " + cluster}, Rows: rows,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestClusters records an object with the same name, UID and versions in two clusters.
func TestClusters(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	j := open(t, path)
	addIn(t, j, "", in("", event.Created, 1), in("", event.Updated, 2))
	if a := addIn(t, j, "staging", in("staging", event.Created, 1), in("staging", event.Updated, 2), in("staging", event.Updated, 3)); a.Duplicates != 0 || a.Rows != 3 {
		t.Errorf("the other cluster: %+v", a)
	}
	if a := addIn(t, j, "staging", in("staging", event.Updated, 3)); a.Duplicates != 1 {
		t.Errorf("again: %+v", a)
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := func(q Query) (all []string) {
		t.Helper()
		q.OldestFirst = true
		for e, err := range r.Rows(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e.Kind.ClusterOr(r.Cluster())+" "+e.ResourceVersion)
		}
		return all
	}
	all := []string{"prod 1", "prod 2", "staging 1", "staging 2", "staging 3"}
	for _, tc := range []struct {
		why  string
		q    Query
		want []string
	}{
		{"all clusters", Query{}, all},
		{"the one that the journal is named after", Query{Clusters: []string{"prod"}}, all[:2]},
		{"the other", Query{Clusters: []string{"staging"}}, all[2:]},
		{"both", Query{Clusters: []string{"staging", "prod"}}, all},
		{"an unknown one", Query{Clusters: []string{"dev"}}, nil},
		{"a kind of one", Query{Clusters: []string{"staging"}, Resources: []string{"pods"}}, all[2:]},
		{"a kind of all", Query{Resources: []string{"pods"}}, all},
		{"a name in one", Query{Clusters: []string{"prod"}, Resources: []string{"pods"}, Names: []string{"web"}}, all[:2]},
		{"a name of any kind in one", Query{Clusters: []string{"staging"}, Names: []string{"web"}}, all[2:]},
		{"a name in all", Query{Names: []string{"web"}, Namespaces: []string{"shop"}}, all},
		{"a UID in one", Query{Clusters: []string{"prod"}, UID: "u1"}, all[:2]},
	} {
		if got := rows(tc.q); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
	var states []string
	for s, err := range r.At(t.Context(), Query{Names: []string{"web"}}, epoch.Add(time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s.Kind.ClusterOr(r.Cluster())+" "+string(s.JSON))
	}
	if want := []string{`prod {"kind":"Pod","version":2}`, `staging {"kind":"Pod","version":3}`}; !slices.Equal(states, want) {
		t.Errorf("states %q", states)
	}
	counts, err := r.Counts(t.Context(), Query{Since: epoch, Until: epoch.Add(time.Hour), Clusters: []string{"staging"}}, time.Hour)
	n := 0
	for _, s := range counts {
		for _, c := range s.Counts {
			n += c
		}
	}
	if err != nil || n != 3 {
		t.Errorf("%d counted, %v", n, err)
	}
	if names, err := r.Clusters(t.Context()); err != nil || !slices.Equal(names, []string{"prod", "staging"}) {
		t.Errorf("clusters %q, %v", names, err)
	}
	ids := map[string]bool{}
	for e, err := range r.Rows(t.Context(), Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = true
		if found, err := r.ByID(t.Context(), e.ID); err != nil || found.Kind != e.Kind || found.Seq != e.Seq {
			t.Errorf("%s: %+v, %v", e.ID, found, err)
		}
	}
	if len(ids) != len(all) {
		t.Errorf("%d ids", len(ids))
	}
	if rep, err := r.Verify(t.Context(), Verifying{}); err != nil || rep.Damaged != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestClustersResume: streams, absences, identities and forgetting of one cluster leave those of another alone.
func TestClustersResume(t *testing.T) {
	j := open(t, t.TempDir()+"/journal.db")
	addIn(t, j, "", in("", event.Created, 1))
	other := pods
	other.Cluster = "staging"
	if from, h, err := j.Resume(t.Context(), other); err != nil || from != OriginNone || h.Epoch != 0 {
		t.Errorf("a new cluster takes nothing over: %v %+v %v", from, h, err)
	}
	addIn(t, j, "staging", in("staging", event.Created, 1))
	for cluster, s := range map[string]Stream{"": pods, "staging": other} {
		if from, h, err := j.Resume(t.Context(), s); err != nil || from != OriginOwn || h.Identity != "id of "+cluster {
			t.Errorf("%q: %v %+v %v", cluster, from, h, err)
		}
		if id, err := j.Identity(t.Context(), cluster); err != nil || id != "id of "+cluster {
			t.Errorf("%q: identity %q, %v", cluster, id, err)
		}
	}
	if err := j.NoteAbsent(t.Context(), "staging", epoch.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]time.Time{"": epoch, "staging": epoch.Add(time.Minute)} {
		if since, err := j.AbsentSince(t.Context(), cluster); err != nil || !since.Equal(want) {
			t.Errorf("%q: absent since %v, %v", cluster, since, err)
		}
	}
	if err := j.Forget(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	live := 0
	for _, err := range j.Objects(t.Context(), pods) {
		if live++; err != nil {
			t.Error(err)
		}
	}
	if live != 1 {
		t.Errorf("%d objects are left of the cluster that was not forgotten", live)
	}
	for o, err := range j.Objects(t.Context(), other) {
		t.Errorf("forgotten: %+v, %v", o, err)
	}
}

// TestClusterNames: kinds and streams are read back, whatever their cluster is called. The own one has no name in them, even
// if it was written with it.
func TestClusterNames(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	j := open(t, path)
	all := []string{"", "admin@prod", "arn:aws:eks:eu-west-1:1:cluster/x", strings.Repeat("x", 300)}
	for _, cluster := range append(all, "prod") {
		row := in(cluster, event.Created, 1)
		row.Kind.Group, row.Kind.Resource = "apps", "deployments"
		s := Stream{GroupResource: "deployments.apps", Cluster: cluster}
		_, err := j.Append(t.Context(), []Batch{{Stream: s, Head: Head{Version: "1", At: epoch}, Rows: []Row{row}, ShortNames: []string{"deploy", "on-" + cluster}}})
		must(t, err)
	}
	streams, err := j.Streams(t.Context())
	must(t, err)
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	kinds, err := r.Kinds(t.Context())
	must(t, err)
	short, err := r.ShortNames(t.Context())
	must(t, err)
	for i, cluster := range all {
		if len(streams) != len(all) || streams[i].Stream != (Stream{GroupResource: "deployments.apps", Cluster: cluster}) {
			t.Errorf("%q: streams %+v", cluster, streams)
		}
		if len(kinds) != len(all) || kinds[i].Cluster != cluster || kinds[i].GroupResource() != "deployments.apps" {
			t.Errorf("%q: kinds %+v", cluster, kinds)
		}
	}
	if want := []string{"deploy", "on-prod", "on-admin@prod"}; !slices.Equal(short["deployments.apps"][:3], want) {
		t.Errorf("short names %q", short)
	}
}

// TestPurgeCluster removes old changes of one cluster, although another one has an object with the same name and UID. An
// interrupted purge is finished by one that removes as much.
func TestPurgeCluster(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	j := open(t, path)
	for _, cluster := range []string{"", "staging"} {
		addIn(t, j, cluster, in(cluster, event.Created, 1), in(cluster, event.Updated, 2), in(cluster, event.Updated, 3))
	}
	must(t, j.SetCursor(t.Context(), "hook", 1))
	until := epoch.Add(2500 * time.Millisecond)
	for _, tc := range []struct {
		cluster string
		want    []string
		missed  int64
	}{
		{"staging", []string{
			`1 created  -> {"kind":"Pod","version":1}`, `2 updated {"kind":"Pod","version":1} -> {"kind":"Pod","version":2}`,
			`3 updated {"kind":"Pod","version":2} -> {"kind":"Pod","version":3}`, `6 updated (purged) -> {"kind":"Pod","version":3}`,
		}, 2},
		{"prod", []string{`3 updated (purged) -> {"kind":"Pod","version":3}`, `6 updated (purged) -> {"kind":"Pod","version":3}`}, 1},
	} {
		purge := Purge{Until: until, Cluster: tc.cluster}
		plan, err := j.PlanPurge(t.Context(), purge)
		if err != nil || plan.Changes != 2 || plan.Cut != 1 || len(plan.Missed) != 1 || plan.Missed[0].Changes != tc.missed {
			t.Errorf("%s: %+v, %v", tc.cluster, plan, err)
		}
		must(t, j.Purge(t.Context(), purge, nil))
		if got := contents(t, path); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.cluster, got, tc.want)
		}
		if plan, err := j.PlanPurge(t.Context(), purge); err != nil || !plan.None() {
			t.Errorf("%s again: %+v, %v", tc.cluster, plan, err)
		}
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	if rep, err := r.Verify(t.Context(), Verifying{}); err != nil || rep.Damaged != 0 {
		t.Errorf("%+v, %v", rep, err)
	}

	var unknown *UnknownClusterError
	if err := j.Purge(t.Context(), Purge{Until: until, Cluster: "dev"}, nil); !errors.As(err, &unknown) || !strings.HasSuffix(err.Error(), `: the journal has no cluster "dev": it has prod, staging`) {
		t.Errorf("an unknown cluster: %v", err)
	}
	if err := j.Purge(t.Context(), Purge{OtherRules: true, Cluster: "prod"}, nil); err == nil {
		t.Error("a purge of other rules is limited to a cluster")
	}

	begun := Purge{Until: until, Cluster: "staging"}
	must(t, j.write(t.Context(), "write", func() error { return j.db.exec("INSERT INTO meta VALUES (?, ?)", purging, begun.note()) }))
	for _, other := range []Purge{{Until: until, Cluster: "prod"}, {Until: until.Add(-time.Second), Cluster: "staging"}} {
		var unfinished *UnfinishedPurgeError
		if err := j.Purge(t.Context(), other, nil); !errors.As(err, &unfinished) || !strings.HasSuffix(err.Error(), `--cluster "staging"`) {
			t.Errorf("%s, instead of the interrupted one: %v", &other, err)
		}
	}
	must(t, j.Purge(t.Context(), Purge{Until: until}, nil)) // of all clusters
}
