package daemon

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/rights"
	"github.com/tattler-dev/tattler/internal/where"
)

var namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// pair is two servers that give their objects the same names, UIDs and versions, apart from their identities.
func pair(t *testing.T) (a, b *rig) {
	t.Helper()
	a, b = newRig(t), newRig(t)
	for i, r := range []*rig{a, b} {
		r.server.Serve(namespaceKind, "Namespace")
		if i == 0 {
			r.server.Put(namespaceKind, "", "kube-system", nil)
			r.server.Put(namespaceKind, "", "shop", nil)
		} else {
			r.server.Put(namespaceKind, "", "shop", nil)
			r.server.Put(namespaceKind, "", "kube-system", nil)
		}
	}
	return a, b
}

// cluster is the daemon's form of a server.
func cluster(name string, r *rig) Cluster {
	return Cluster{
		Name: name, Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
		Connect: func() (*rest.Config, error) { return r.server.Config(), nil },
	}
}

// recordedIn returns the changes of a journal, as cluster, operation and name.
func recordedIn(t *testing.T, path string, q journal.Query) (all []string) {
	t.Helper()
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q.OldestFirst, q.Snapshots, q.Quiet = true, true, true
	for e, err := range r.Rows(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		line := e.Kind.ClusterOr(r.Cluster()) + " " + string(e.Op)
		if e.Op == event.Absent {
			line += " " + e.Absence.Reason
		}
		all = append(all, strings.TrimSpace(line+" "+e.Name))
	}
	return all
}

// TestTwoClusters records two clusters with equal objects. One goes away, and then one cannot be reached at the start.
func TestTwoClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		dir, got, ofB := t.TempDir(), &sent{}, &sent{}
		only, err := where.Compile(`cluster == "b"`)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "journal.db")
		start := func(clusters ...Cluster) *running {
			return a.daemon(dir, Options{Clusters: clusters, Sinks: []deliver.Options{{Name: "x", Sink: got}, {Name: "b", Sink: ofB, Where: only}}})
		}
		d := start(cluster("a", a), cluster("b", b))
		d.pass(5 * time.Second)
		a.put("settings", "1")
		b.put("settings", "1")
		d.pass(5 * time.Second)
		want := []string{"a created settings", "b created settings"}
		if all := recordedIn(t, path, journal.Query{}); !slices.Equal(all, want) && !slices.Equal(all, []string{want[1], want[0]}) {
			t.Errorf("recorded %q", all)
		}
		if len(got.lines) != 2 {
			t.Errorf("delivered %q", got.lines)
		}
		if len(ofB.lines) != 1 {
			t.Errorf("the sink of one cluster got %q", ofB.lines)
		}

		b.server.SetDown(true)
		d.pass(30 * time.Second)
		s := d.status()
		if i := slices.IndexFunc(s.Clusters, func(c control.Cluster) bool { return c.Name == "b" }); i < 0 || s.Clusters[i].Away == "" || !s.Clusters[i].Settled || s.Clusters[1-i].Away != "" || !s.Settled {
			t.Errorf("while b is away: %+v", s.Clusters)
		}
		states := map[string]control.StreamState{}
		for _, st := range s.Streams {
			states[st.Cluster] = st.State
		}
		if states["a"] != control.Live || states["b"] != control.Waiting {
			t.Errorf("streams while b is away: %v", states)
		}
		a.put("settings", "2")
		b.put("settings", "2")
		d.pass(time.Second)
		if len(got.lines) != 3 {
			t.Errorf("b delays a: delivered %q", got.lines)
		}
		b.server.SetDown(false)
		d.pass(time.Minute)
		want = []string{"b created settings", "b updated settings", "b absent unreachable"}
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"b"}}); !slices.Equal(all, want) {
			t.Errorf("b recorded %q", all)
		}
		d.stop()

		a.put("settings", "3")
		b.put("settings", "3")
		b.server.SetDown(true)
		d = start(cluster("b", b), cluster("a", a)) // in another order
		d.pass(time.Minute)
		a.put("settings", "4")
		d.pass(5 * time.Second)
		want = []string{"a created settings", "a updated settings", "a updated settings", "a absent stopped", "a updated settings"}
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"a"}}); !slices.Equal(all, want) {
			t.Errorf("a, which b must not delay, recorded %q", all)
		}
		if s := d.status(); !s.Settled || s.Clusters[0].Settled || s.Clusters[0].Away == "" || s.Clusters[1].Away != "" {
			t.Errorf("b cannot be reached at the start: %+v", s.Clusters)
		}
		b.server.SetDown(false)
		d.pass(2 * time.Minute)
		d.stop()
		for _, gap := range recordedIn(t, path, journal.Query{Ops: []event.Op{event.Gap, event.Deleted, event.Snapshot}}) {
			t.Errorf("unnecessary: %s", gap)
		}
		want = []string{"b created settings", "b updated settings", "b absent unreachable", "b updated settings", "b absent stopped"}
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"b"}}); !slices.Equal(all, want) {
			t.Errorf("b recorded %q after the restart", all)
		}
		if !strings.Contains(d.log.String(), "cluster=b") {
			t.Errorf("the log does not name the cluster:\n%s", d.log.String())
		}
	})
}

// TestClusterAlone: a journal of one cluster gets a second one, and keeps the first one's streams; a daemon of one of two
// clusters then records that one.
func TestClusterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		dir := t.TempDir()
		path := filepath.Join(dir, "journal.db")
		a.put("settings", "1")
		b.put("settings", "1")
		d := a.daemon(dir, Options{}) // as "test"
		d.pass(5 * time.Second)
		d.stop()
		d = a.daemon(dir, Options{Clusters: []Cluster{cluster("b", b), cluster("test", a)}})
		d.pass(5 * time.Second)
		a.put("settings", "2")
		b.put("settings", "2")
		d.pass(5 * time.Second)
		d.stop()
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"test"}}); !slices.Equal(all, []string{"test snapshot settings", "test absent stopped", "test updated settings"}) {
			t.Errorf("recorded %q", all)
		}
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"b"}}); !slices.Equal(all, []string{"b snapshot settings", "b updated settings"}) {
			t.Errorf("recorded %q", all)
		}
		a.put("settings", "3")
		d = a.daemon(dir, Options{})
		d.pass(5 * time.Minute)
		d.stop()
		if all := recordedIn(t, path, journal.Query{Clusters: []string{"test"}, Ops: []event.Op{event.Updated}}); len(all) != 2 {
			t.Errorf("recorded %q", all)
		}
	})
}

// TestExchangedContexts: a cluster under the name of another would be recorded twice, or as deleted.
func TestExchangedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		dir := t.TempDir()
		path := filepath.Join(dir, "journal.db")
		a.put("of-a", "1")
		b.put("of-b", "1")
		d := a.daemon(dir, Options{Clusters: []Cluster{cluster("a", a), cluster("b", b)}})
		d.pass(5 * time.Second)
		d.stop()
		before := recordedIn(t, path, journal.Query{})
		d = a.daemon(dir, Options{Clusters: []Cluster{cluster("a", b), cluster("b", a)}})
		d.pass(time.Minute)
		s := d.status()
		d.stop()
		for i, other := range []string{"b", "a"} {
			if c := s.Clusters[i]; c.Settled || !strings.Contains(c.Away, `that the journal records as "`+other+`"`) {
				t.Errorf("%+v", c)
			}
		}
		if after := recordedIn(t, path, journal.Query{}); !slices.Equal(after, before) {
			t.Errorf("recorded %q, before %q", after, before)
		}
		d = a.daemon(t.TempDir(), Options{Clusters: []Cluster{cluster("a", a), cluster("again", a)}})
		d.pass(time.Minute)
		s = d.status()
		d.stop()
		refused := 0
		for _, c := range s.Clusters {
			if strings.Contains(c.Away, "the same cluster as") || strings.Contains(c.Away, "that the journal records as") {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("one cluster under two names: %+v", s.Clusters)
		}
	})
}

// TestContextAppears: a cluster whose context does not exist is retried, and recorded once it does.
func TestContextAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		dir := t.TempDir()
		var there atomic.Bool
		late := cluster("b", b)
		late.Connect = func() (*rest.Config, error) {
			if !there.Load() {
				return nil, errors.New("no such context")
			}
			return b.server.Config(), nil
		}
		a.put("settings", "1")
		b.put("settings", "1")
		d := a.daemon(dir, Options{Clusters: []Cluster{late, cluster("a", a)}, Log: slog.New(slog.DiscardHandler)})
		d.pass(2 * time.Minute)
		if s := d.status(); s.Clusters[0].Away != "no such context" || !s.Clusters[1].Settled {
			t.Errorf("%+v", s.Clusters)
		}
		if n := strings.Count(d.log.String(), "no such context"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		there.Store(true)
		d.pass(time.Minute)
		if s := d.status(); s.Clusters[0].Away != "" || !s.Clusters[0].Settled {
			t.Errorf("%+v", s.Clusters)
		}
		d.stop()
		if all := recordedIn(t, filepath.Join(dir, "journal.db"), journal.Query{Clusters: []string{"b"}}); !slices.Equal(all, []string{"b snapshot settings"}) {
			t.Errorf("recorded %q", all)
		}
	})
}

// TestRightsOfClusters: each cluster's rights are reviewed there, and a missing one names its cluster.
func TestRightsOfClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		ofA, ofB := &roles{}, &roles{}
		a.server.Intercept(ofA.intercept)
		b.server.Intercept(ofB.intercept)
		page := cluster("b", b)
		page.Rights = []rights.Right{{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}}}
		ofA.deny("get configmaps", "create subjectaccessreviews") // the latter is needed in b only
		ofB.deny("watch configmaps")
		d := a.daemon(t.TempDir(), Options{Clusters: []Cluster{cluster("a", a), page}})
		missing := func(unknown string) []string {
			d.pass(5 * time.Second)
			d.status() // which makes the next review come soon
			d.pass(5 * time.Second)
			s := d.status()
			if got, _, _ := strings.Cut(s.RightsError, ":"); got != unknown {
				t.Errorf("%q, want those of %q unknown", s.RightsError, unknown)
			}
			var all []string
			for i := range s.MissingRights {
				all = append(all, s.MissingRights[i].Text())
			}
			return all
		}
		if got, want := missing(""), []string{"a: configmaps: may not get", "b: configmaps: may not watch"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		ofA.deny()
		ofB.deny("create subjectaccessreviews")
		if got, want := missing(""), []string{"b: subjectaccessreviews.authorization.k8s.io: may not create"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		b.server.SetDown(true) // its last review stays
		if got, want := len(missing("b")), 1; got != want {
			t.Errorf("%d missing rights, want %d", got, want)
		}
		d.stop()
		if log := d.log.String(); strings.Count(log, "rights are missing") != 3 || !strings.Contains(log, "cluster=b") {
			t.Error(log)
		}
	})
}
