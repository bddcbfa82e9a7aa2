package log

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

var (
	deployments = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	replicaSets = journal.Kind{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	sets        = journal.Kind{Group: "apps", Version: "v1", Resource: "statefulsets", Kind: "StatefulSet", Namespaced: true}
	pods        = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	cronJobs    = journal.Kind{Group: "batch", Version: "v1", Resource: "cronjobs", Kind: "CronJob", Namespaced: true}
	jobs        = journal.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true}
)

// ownedBy sets an object's controller.
func ownedBy(kind, name string) func(*journal.Row) {
	return func(r *journal.Row) {
		r.Owner = &event.Owner{Kind: kind, Name: name, UID: uidOf(kind, r.Namespace, name)}
	}
}

// workloads writes a journal with two Deployments, a StatefulSet and a CronJob, and their objects.
func workloads(t *testing.T) *journalWriter {
	b := newBook(t, start)
	add := func(k journal.Kind, ns, name string, edits ...func(*journal.Row)) {
		b.at = b.at.Add(time.Minute)
		b.add(k, event.Created, ns, name, nil, data("1"), edits...)
	}
	for _, of := range []struct{ ns, name string }{{"shop", "web"}, {"pay", "web"}, {"shop", "web-2"}} {
		add(deployments, of.ns, of.name)
		add(replicaSets, of.ns, of.name+"-abc", ownedBy("Deployment", of.name))
		add(pods, of.ns, of.name+"-abc-1", ownedBy("ReplicaSet", of.name+"-abc"))
	}
	add(pods, "shop", "web-abc-9") // named like an owned pod
	add(sets, "shop", "db")
	add(pods, "shop", "db-0", ownedBy("StatefulSet", "db"))
	add(maps, "shop", "db-map", ownedBy("StatefulSet", "db")) // watch does not show it either
	add(cronJobs, "shop", "tick")
	add(jobs, "shop", "tick-1", ownedBy("CronJob", "tick"))
	add(pods, "shop", "tick-1-x", ownedBy("Job", "tick-1"))
	b.at = b.at.Add(time.Minute)
	b.add(pods, event.Deleted, "shop", "web-abc-1", data("1"), nil, ownedBy("ReplicaSet", "web-abc"))
	return b
}

// TestOwned: a named workload includes its objects, as in watch.
func TestOwned(t *testing.T) {
	path := workloads(t).close()
	const web = "created web, created web-abc, created web-abc-1"
	for _, tc := range []struct {
		why, want string
		types     []string
		in        []string
	}{
		{"a Deployment: also the pod that is gone", web + ", deleted web-abc-1", []string{"deploy/web"}, []string{"shop"}},
		{"of every namespace", web + ", " + web + ", deleted web-abc-1", []string{"deploy", "web"}, nil},
		{"a ReplicaSet", "created web-abc, created web-abc-1, deleted web-abc-1", []string{"rs/web-abc"}, []string{"shop"}},
		{"a StatefulSet", "created db, created db-0", []string{"sts/db"}, nil},
		{"a CronJob", "created tick, created tick-1, created tick-1-x", []string{"cronjob/tick"}, nil},
		{"with another object", "created web-abc-9, created db, created db-0", []string{"sts/db", "pod/web-abc-9"}, nil},
		{"a name belongs to its kind, also for what it owns", "", []string{"deploy/db", "sts/web"}, nil},
		{"all of a kind: that kind", "created web, created web, created web-2", []string{"deploy"}, nil},
		{"a pod owns nothing", "created db-0", []string{"pod/db-0"}, nil},
	} {
		o := Options{Options: selection.Options{Types: tc.types}}
		o.Namespaces = tc.in
		out, said, err := play(t, path, o)
		if got := summarizeEvents(t, out); got != tc.want || err != nil {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s %v", tc.why, got, tc.want, said, err)
		}
	}
}

// TestOwnedRetained: a Deployment's objects are found after all changes of the Deployment itself are removed.
func TestOwnedRetained(t *testing.T) {
	b := newBook(t, start)
	b.add(deployments, event.Created, "shop", "other", nil, data("1"))
	b.add(replicaSets, event.Created, "shop", "web-abc", nil, data("1"), ownedBy("Deployment", "web"))
	b.add(pods, event.Created, "shop", "web-abc-1", nil, data("1"), ownedBy("ReplicaSet", "web-abc"))
	out, _, err := play(t, b.close(), Options{Options: selection.Options{Types: []string{"deploy/web"}}})
	if got, want := summarizeEvents(t, out), "created web-abc, created web-abc-1"; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
