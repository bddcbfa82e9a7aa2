package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type obj = map[string]any

var (
	morning     = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	podKind     = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	cmKind      = journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	deployKind  = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	replicaKind = journal.Kind{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	nodeKind    = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
)

// book writes a journal as a daemon would.
type book struct {
	t       testing.TB
	j       *journal.Journal
	path    string
	at      time.Time
	version int
	objects map[string]obj
}

func newBook(t testing.TB, path string) *book {
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return &book{t: t, j: j, path: path, at: morning, objects: map[string]obj{}}
}

func (b *book) wait(d time.Duration) { b.at = b.at.Add(d) }

// set writes an object; nil deletes it. manager wrote it.
func (b *book) set(k journal.Kind, namespace, name, manager string, o obj, owner *event.Owner) {
	b.t.Helper()
	key := k.Cluster + k.Resource + "/" + namespace + "/" + name
	old := b.objects[key]
	b.version++
	m := journal.Meta{
		Op: event.Updated, Kind: k, Namespace: namespace, Name: name, UID: "uid-" + key, ResourceVersion: fmt.Sprint(b.version),
		Time: b.at, At: b.at, Manager: manager, Owner: owner,
	}
	switch {
	case o == nil:
		m.Op, m.Manager = event.Deleted, "?"
		delete(b.objects, key)
	case old == nil:
		m.Op = event.Created
	}
	if o != nil {
		o["apiVersion"], o["kind"] = strings.TrimPrefix(k.Group+"/"+k.Version, "/"), k.Kind
		created := any(b.at.Format(time.RFC3339))
		if old != nil {
			created = old["metadata"].(obj)["creationTimestamp"]
		}
		meta := obj{"name": name, "uid": m.UID, "resourceVersion": m.ResourceVersion, "creationTimestamp": created}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		if owner != nil {
			meta["ownerReferences"] = []any{obj{"apiVersion": "apps/v1", "kind": owner.Kind, "name": owner.Name, "uid": owner.UID, "controller": true}}
		}
		if g, ok := o["generation"]; ok {
			meta["generation"] = g
			delete(o, "generation")
		}
		fields := obj{}
		for name := range o {
			if name != "apiVersion" && name != "kind" && name != "metadata" {
				fields["f:"+name] = obj{}
			}
		}
		meta["managedFields"] = []any{obj{"manager": manager, "operation": "Update", "time": b.at.Format(time.RFC3339), "fieldsType": "FieldsV1", "fieldsV1": fields}}
		o["metadata"] = meta
		b.objects[key] = o
	}
	b.append(journal.Row{Meta: m, Before: b.raw(old), After: b.raw(o)})
}

func (b *book) raw(o obj) []byte {
	if o == nil {
		return nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

func (b *book) append(rows ...journal.Row) {
	b.t.Helper()
	historytest.Judge(rows)
	batch := journal.Batch{
		Stream: journal.Stream{GroupResource: rows[0].Kind.GroupResource(), Cluster: rows[0].Kind.Cluster}, Rows: rows,
		Head: journal.Head{Version: fmt.Sprint(b.version), Epoch: 1, Live: true, EverLive: true, At: b.at},
	}
	if rows[0].Op == event.Absent {
		batch.Stream = journal.Stream{}
	}
	if _, err := b.j.Append(b.t.Context(), []journal.Batch{batch}); err != nil {
		b.t.Fatal(err)
	}
}

// gap records that versions of a kind were missed.
func (b *book) gap(k journal.Kind) {
	b.append(journal.Row{Meta: journal.Meta{
		Op: event.Gap, Kind: k, Time: b.at, At: b.at, Since: b.at.Add(-30 * time.Second), Gap: &event.GapInfo{From: "17", To: "23", Reason: "expired"},
	}})
}

// absence records that the daemon did not run for a while.
func (b *book) absence(d time.Duration) {
	since := b.at
	b.wait(d)
	b.append(journal.Row{Meta: journal.Meta{Op: event.Absent, Kind: journal.AbsenceKind, Time: b.at, At: b.at, Since: since, Absence: &event.Absence{Reason: event.AbsenceStopped, Changes: 3}}})
}

func configMap(lines ...string) obj {
	data := obj{}
	for i := 0; i < len(lines); i += 2 {
		data[lines[i]] = lines[i+1]
	}
	return obj{"data": data}
}

func deployment(image string, generation, replicas, updated, ready int) obj {
	available := "True"
	if ready < replicas {
		available = "False"
	}
	return obj{
		"generation": generation,
		"spec": obj{"replicas": replicas, "selector": obj{"matchLabels": obj{"app": "web"}}, "template": obj{
			"metadata": obj{"labels": obj{"app": "web"}},
			"spec":     obj{"containers": []any{obj{"name": "app", "image": image, "ports": []any{obj{"containerPort": 8080}}}}},
		}},
		"status": obj{
			"observedGeneration": generation, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready,
			"conditions": []any{
				obj{"type": "Available", "status": available, "reason": "MinimumReplicasAvailable"},
				obj{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		},
	}
}

func pod(image, phase, waiting string, restarts int) obj {
	state := obj{"running": obj{"startedAt": morning.Format(time.RFC3339)}}
	ready := phase == "Running" && waiting == ""
	if waiting != "" {
		state = obj{"waiting": obj{"reason": waiting}}
	}
	status := obj{"name": "app", "image": image, "restartCount": restarts, "ready": ready, "state": state}
	if restarts > 0 {
		status["lastState"] = obj{"terminated": obj{"exitCode": 1, "reason": "Error"}}
	}
	return obj{
		"spec": obj{"nodeName": "node-a", "containers": []any{obj{"name": "app", "image": image}}},
		"status": obj{
			"phase": phase, "containerStatuses": []any{status},
			"conditions": []any{obj{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[ready]}},
		},
	}
}

// morningOf records a morning: a rollout, an outage, edits, a gap, an absence, and objects with hostile names.
func (b *book) morningOf() {
	const kubectl, controller, kubelet = "kubectl-client-side-apply", "kube-controller-manager", "kubelet"
	web := &event.Owner{Kind: "Deployment", Name: "web", UID: "uid-deployments/shop/web"}
	set := func(n int) *event.Owner {
		return &event.Owner{Kind: "ReplicaSet", Name: fmt.Sprint("web-", n), UID: fmt.Sprint("uid-replicasets/shop/web-", n)}
	}
	b.set(nodeKind, "", "node-a", kubelet, obj{"status": obj{"conditions": []any{obj{"type": "Ready", "status": "True"}}}}, nil)
	b.set(cmKind, "shop", "settings", "helm", configMap("app.properties", "cache.size=64\nhttp.timeout=30s\nhttp.retries=3\n", "level", "info"), nil)
	b.set(deployKind, "shop", "web", "helm", deployment("registry.example.com/shop/web:1.4", 1, 3, 3, 3), nil)
	b.set(replicaKind, "shop", "web-1", controller, obj{"spec": obj{"replicas": 3}, "status": obj{"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3}}, web)
	for i := range 3 {
		b.set(podKind, "shop", fmt.Sprint("web-1-", i), kubelet, pod("web:1.4", "Running", "", 0), set(1))
	}
	b.wait(20 * time.Minute)
	b.set(cmKind, "shop", "settings", "kubectl-edit", configMap("app.properties", "cache.size=64\nhttp.timeout=5s\nhttp.retries=3\n", "level", "debug"), nil)
	b.wait(5 * time.Minute)
	// A rollout.
	b.set(deployKind, "shop", "web", kubectl, deployment("registry.example.com/shop/web:1.5", 2, 3, 0, 3), nil)
	b.wait(300 * time.Millisecond)
	b.set(replicaKind, "shop", "web-2", controller, obj{"spec": obj{"replicas": 1}}, web)
	for i := range 3 {
		name := fmt.Sprint("web-2-", i)
		b.set(podKind, "shop", name, controller, pod("web:1.5", "Pending", "", 0), set(2))
		b.wait(2 * time.Second)
		b.set(podKind, "shop", name, kubelet, pod("web:1.5", "Running", "", 0), set(2))
		b.set(deployKind, "shop", "web", controller, deployment("registry.example.com/shop/web:1.5", 2, 3, i+1, 3), nil)
		b.set(podKind, "shop", fmt.Sprint("web-1-", i), "", nil, set(1))
		b.wait(time.Second)
	}
	b.wait(10 * time.Minute)
	b.gap(podKind)
	b.wait(2 * time.Minute)
	// An outage of another workload.
	api := &event.Owner{Kind: "StatefulSet", Name: "api", UID: "uid-api"}
	b.set(podKind, "pay", "api-0", "kube-controller-manager", pod("api:7", "Running", "", 0), api)
	for i := range 4 {
		b.wait(15 * time.Second)
		b.set(podKind, "pay", "api-0", kubelet, pod("api:7", "Running", "CrashLoopBackOff", i+1), api)
	}
	b.wait(3 * time.Minute)
	b.set(podKind, "pay", "api-0", kubelet, pod("api:7", "Running", "", 5), api)
	b.wait(5 * time.Minute)
	b.absence(4 * time.Minute)
	b.set(cmKind, "shop", hostileName, "<script>alert(2)</script>", configMap("k", "<b>bold</b>\u202egpj.exe", "\u202ekey", "\x1b[31mred"), nil)
	b.wait(time.Minute)
	b.set(cmKind, "shop", hostileName, "<script>alert(2)</script>", configMap("k", "</td></tr></table><img src=x onerror=alert(1)>", "\u202ekey", "\x1b[32mgreen"), nil)
	b.set(cmKind, "shop", "settings", "", nil, nil)
	b.wait(30 * time.Second)
}

// hostileName is a name that the API server would refuse, but another writer of the journal's file may use.
const hostileName = "<img src=x onerror=alert(1)>\u202ecod.exe\x1b[31m"

// endless is the patience of tests: no search is cut short, however slow the machine is.
const endless = 100_000

// page serves a journal. now is the end of what is recorded, unless it is changed.
type page struct {
	*Page
	t   testing.TB
	now time.Time
}

func newPage(t testing.TB, path string, now time.Time) *page {
	t.Helper()
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	p := &page{t: t, now: now}
	p.Page, err = New(Options{Source: r, Now: func() time.Time { return p.now }})
	if err != nil {
		t.Fatal(err)
	}
	p.patience = endless
	return p
}

// recorded returns the page of a morning.
func recorded(t testing.TB) *page {
	t.Helper()
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.morningOf()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	return newPage(t, b.path, b.at)
}

// get returns an answer.
func (p *page) get(url string, header ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}
