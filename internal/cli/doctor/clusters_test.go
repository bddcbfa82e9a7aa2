package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
)

// clusters are three clusters: one that is healthy, one of which nothing may be watched, and one that no context reaches.
const clusters = "clusters:\n- {name: east, context: prod}\n- name: west\n  context: prod\n  watch: [{resources: {include: [configmaps]}}]\n- {name: lost, context: nowhere}\n"

// TestOneOfSeveralClusters: --cluster names the cluster to examine, whose watch, context and rights count.
func TestOneOfSeveralClusters(t *testing.T) {
	s := serve(t)
	s.denied["list configmaps"] = true
	for _, tc := range []struct{ cluster, want, without string }{
		{"other", `the configuration has no cluster "other"`, ""},
		{"lost", "nowhere", ""},
		{"east", "2 kinds may be listed and watched", "nothing of this may be watched"},
		{"west", "nothing of this may be watched", "2 kinds"},
	} {
		o, out := s.options(t, clusters)
		o.Setup.Cluster = tc.cluster
		err := Run(t.Context(), o)
		text := out.String()
		switch {
		case err == nil:
			t.Errorf("%q: no finding: %s", tc.cluster, text)
		case !errors.Is(err, ErrFindings):
			text += err.Error()
		}
		if !strings.Contains(text, tc.want) || tc.without != "" && strings.Contains(text, tc.without) {
			t.Errorf("%q: %s", tc.cluster, text)
		}
		var wrong *usage.Error
		if tc.cluster == "other" && !errors.As(err, &wrong) {
			t.Errorf("%T: %v", err, err)
		}
	}
}

// TestSeveralClusters: without --cluster, all clusters are examined, in the order of the file. A cluster that cannot be reached
// hides nothing of the others.
func TestSeveralClusters(t *testing.T) {
	s := serve(t)
	s.denied["list configmaps"] = true
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	away := s.write(t, "away", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: away, contexts: [{name: away, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, silent.URL))
	text := strings.Replace(clusters, "clusters:\n", "clusters:\n- {name: silent, context: away, kubeconfig: "+away+"}\n", 1)
	o, out := s.options(t, text)
	o.limit(checkReach, "silent", 50*time.Millisecond)
	if err := Run(t.Context(), o); !errors.Is(err, ErrFindings) {
		t.Fatalf("%v\n%s", err, out)
	}
	at := 0
	for _, heading := range []string{"Configuration", "API server of silent", "API server of east", "Rights of east", "API server of west", "Rights of west", "API server of lost", "Journal", "Memory"} {
		i := strings.Index(out.String()[at:], heading+"\n")
		if i < 0 {
			t.Fatalf("no %q after %q", heading, out.String()[:at])
		}
		at += i
	}

	out.Reset()
	o.Output = "json"
	if err := Run(t.Context(), o); !errors.Is(err, ErrFindings) {
		t.Fatalf("%v\n%s", err, out)
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		cluster, check string
		level          Level
		title          string
	}{
		{"silent", "server.reachable", Error, "does not answer"},
		{"east", "server.reachable", OK, "Kubernetes v1.36.3"},
		{"east", "rights.watch", OK, "2 kinds may be listed and watched"},
		{"west", "rights.watch", Error, "nothing of this may be watched"},
		{"lost", "server.reachable", Error, "nowhere"},
		{"", "memory.limit", Note, "the objects were not counted"},
		{"", "journal.writable", OK, "can be written"},
	} {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Cluster == want.cluster && f.Check == want.check && f.Level == want.level && strings.Contains(f.Title, want.title)
		}) {
			t.Errorf("no finding %+v in %s", want, out)
		}
	}
	for _, f := range r.Findings {
		if (f.Cluster == "") == (f.Section == Server || f.Section == Rights) {
			t.Errorf("the cluster of a finding: %+v", f)
		}
		if (f.Level == Warning || f.Level == Error) && f.Action == "" {
			t.Errorf("it does not say what to do: %+v", f)
		}
	}
}

// TestClusterDeadline: all checks of one of several clusters have a deadline in common, after which the next one is examined.
func TestClusterDeadline(t *testing.T) {
	s := serve(t)
	s.hangs = true
	o, _ := s.options(t, "clusters:\n- {name: east, context: prod}\n- {name: west, context: prod}\n")
	o.host.deadline = func(c check, _ string, _ time.Duration) time.Duration {
		if c == checkCluster {
			return 50 * time.Millisecond
		}
		return time.Hour
	}
	x := s.examine(t, o)
	var got []string
	for _, f := range x.findings {
		if f.Section == Server {
			got = append(got, f.Cluster+" "+string(f.Level))
		}
	}
	if want := []string{"east error", "west error"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestObjectsOfClusters: estimates count the objects of all clusters.
func TestObjectsOfClusters(t *testing.T) {
	s := serve(t)
	count := func(more string) int64 {
		o, _ := s.options(t, more)
		return s.examine(t, o).objects
	}
	one := count("")
	if both := count("clusters:\n- {name: east, context: prod}\n- {name: west, context: prod}\n"); one < 3 || both != 2*one {
		t.Errorf("%d objects, and %d in two clusters", one, both)
	}
}

// TestDaemonOfClusters: findings about a daemon of several clusters name the cluster.
func TestDaemonOfClusters(t *testing.T) {
	x := &examination{status: &control.Status{
		Away: "refused", Clusters: []control.Cluster{{Name: "east"}, {Name: "west", Away: "refused"}},
		MissingRights: []control.Lack{{Cluster: "east", Resource: "secrets", Verbs: []string{"list"}}},
	}}
	x.daemon()
	var got []string
	for _, f := range x.findings {
		got = append(got, f.Cluster+" "+f.Check+" "+f.Title)
	}
	want := []string{"daemon.away the daemon cannot reach west: refused", "daemon.rights the daemon lacks a right: east: secrets: may not list"}
	if len(got) != 3 || got[1] != "west "+want[0] || got[2] != "east "+want[1] {
		t.Errorf("%q", got)
	}
}

// TestManyClusters: each cluster has the findings of its own trouble, and they delay no other. One has the wrong credentials,
// one has no credentials, one may watch nothing, one is away, one hangs, and two contexts lead to the same server.
func TestManyClusters(t *testing.T) {
	s, hangs := serve(t), serve(t)
	for _, one := range []*api{s, hangs} {
		one.Put(core("namespaces"), "", "kube-system", nil)
	}
	hangs.afterVersion = true
	refusing := func(code int32, reason metav1.StatusReason, versionToo bool) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" && !versionToo {
				fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
				return
			}
			informertest.Refuse(w, code, reason, "no")
		}))
		t.Cleanup(server.Close)
		return server
	}
	poor := serve(t)
	for _, right := range []string{"list configmaps", "list secrets", "list namespaces", "get namespaces/kube-system"} {
		poor.denied[right] = true
	}
	var text strings.Builder
	text.WriteString("clusters:\n")
	for _, c := range []struct{ name, url string }{
		{"good", s.http.URL}, {"wrong", refusing(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, true).URL},
		{"anonymous", refusing(http.StatusForbidden, metav1.StatusReasonForbidden, false).URL},
		{"poor", poor.http.URL}, {"away", "http://" + closed(t)}, {"hangs", hangs.http.URL}, {"again", s.http.URL},
	} {
		file := s.write(t, c.name+".kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
			clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: geheim}}]}`, c.url))
		fmt.Fprintf(&text, "- {name: %s, kubeconfig: %q}\n", c.name, file)
	}
	o, out := s.options(t, text.String())
	o.limit(checkKinds, "hangs", 50*time.Millisecond)
	o.Output = "json"
	err := Run(t.Context(), o)
	if !errors.Is(err, ErrFindings) {
		t.Fatalf("%v\n%s", err, out)
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		cluster, check string
		level          Level
		title, action  string
	}{
		{"good", "rights.watch", OK, "3 kinds", ""},
		{"wrong", "server.reachable", Error, "refused the credentials", "Renew the credentials"},
		{"anonymous", "server.kinds", Error, "system:discovery", "cluster role system:discovery"},
		{"poor", "rights.watch", Error, "nothing of this may be watched", "tattler rbac --cluster poor "},
		{"away", "server.reachable", Error, "cannot reach", "Check the address"},
		{"hangs", "server.kinds", Error, "does not answer", "Check the address"},
		{"again", "server.identity", Error, `this is the same cluster as "good"`, "remove it from clusters"},
		{"again", "rights.watch", OK, "3 kinds", ""},
	} {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Cluster == want.cluster && f.Check == want.check && f.Level == want.level && strings.Contains(f.Title, want.title) && strings.Contains(f.Action, want.action)
		}) {
			t.Errorf("no finding %+v in %s", want, out)
		}
	}
	if n := strings.Count(out.String(), "server.identity"); n != 1 {
		t.Errorf("%d findings about identities", n)
	}
	for _, f := range r.Findings {
		if f.Cluster != "" && f.Level == Error && (strings.Contains(f.Meaning, "does not start") || strings.Contains(f.Meaning, "Nothing can be recorded")) {
			t.Errorf("the other clusters are recorded: %+v", f)
		}
	}
	if strings.Contains(out.String(), "geheim") {
		t.Error("a token is shown")
	}
}

// TestSwappedClusters: a cluster that the journal has under another name is an error, because the daemon refuses it. A cluster
// that was made again under its name is accepted.
func TestSwappedClusters(t *testing.T) {
	s, other, again := serve(t), serve(t), serve(t)
	identities := map[*api]string{}
	for i, one := range []*api{s, other, again} {
		for n := range i { // so that the UIDs differ
			one.Put(core("namespaces"), "", fmt.Sprint("n", n), nil)
		}
		one.Put(core("namespaces"), "", "kube-system", nil)
		resp, err := http.Get(one.http.URL + "/api/v1/namespaces/kube-system")
		if err != nil {
			t.Fatal(err)
		}
		var m metav1.PartialObjectMetadata
		err = json.NewDecoder(resp.Body).Decode(&m)
		resp.Body.Close()
		if err != nil || m.UID == "" {
			t.Fatal(m, err)
		}
		identities[one] = string(m.UID)
	}
	if identities[s] == identities[other] || identities[other] == identities[again] {
		t.Fatalf("%v", identities)
	}
	s.point(t, s.http.URL)
	o, _ := s.options(t, "")
	j, err := journal.Open(t.Context(), filepath.Join(s.dir, "journal.db"), journal.Options{Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []struct {
		cluster, identity string
		ago               time.Duration
	}{{"", "an older one", time.Hour}, {"", identities[s], 0}, {"west", identities[other], 0}} {
		stream := journal.Stream{GroupResource: "configmaps", Cluster: h.cluster, Selection: h.ago.String()}
		if _, err := j.Append(t.Context(), []journal.Batch{{Stream: stream, Head: journal.Head{Version: "1", Identity: h.identity, At: time.Now().Add(-h.ago)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why  string
		east *api
		west *api
		name string // of west
		want []string
	}{
		{"as recorded", s, other, "west", nil},
		{"swapped", other, s, "west", []string{`east: this is the cluster that the journal records as "west"`, `west: this is the cluster that the journal records as "east"`}},
		{"renamed", s, other, "north", []string{`north: this is the cluster that the journal records as "west"`}},
		{"made again", again, other, "west", nil},
		{"a new one", s, again, "north", nil},
	} {
		text := "clusters:\n"
		for name, one := range map[string]*api{"east": tc.east, tc.name: tc.west} {
			file := s.write(t, name+".kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, one.http.URL))
			text += fmt.Sprintf("- {name: %s, kubeconfig: %q}\n", name, file)
		}
		o.Setup.File = s.file(t, text)
		var got []string
		for _, f := range s.examine(t, o).findings {
			if f.Check == "server.identity" {
				got = append(got, f.Cluster+": "+f.Title)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
}
