package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
)

type obj = map[string]any

var (
	podKind       = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	configMapKind = journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	secretKind    = journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	nodeKind      = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	deployKind    = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	replicaKind   = journal.Kind{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	serviceKind   = journal.Kind{Version: "v1", Resource: "services", Kind: "Service", Namespaced: true}
)

// writer writes a journal as a daemon would, but also what no API server accepts.
type writer struct {
	t       *testing.T
	j       *journal.Journal
	path    string
	at      time.Time
	version int
	objects map[string]obj
	owners  map[string]string // managers of the objects' top-level fields
	writes  map[string]time.Time
}

func newWriter(t *testing.T, at time.Time) *writer {
	t.Helper()
	w := &writer{t: t, path: filepath.Join(t.TempDir(), "journal.db"), at: at, version: 41200, objects: map[string]obj{}, owners: map[string]string{}, writes: map[string]time.Time{}}
	var err error
	if w.j, err = journal.Open(t.Context(), w.path, journal.Options{Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	return w
}

// close ends the writing, and returns the journal's path.
func (w *writer) close() string {
	w.t.Helper()
	if err := w.j.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.path
}

func (w *writer) wait(d time.Duration) { w.at = w.at.Add(d) }

// meta is metadata of an object beyond its names.
type meta struct {
	labels, annotations obj
	generation          int
	owner               *event.Owner
	first               bool // the object existed before the journal
}

// put writes an object whose content is o, as a manager.
func (w *writer) put(k journal.Kind, namespace, name, manager string, m meta, o obj) {
	w.t.Helper()
	key := k.Resource + "/" + namespace + "/" + name
	old := w.objects[key]
	row := w.row(k, namespace, name, manager, m.owner)
	created := w.at
	if old == nil {
		if row.Op = event.Created; m.first {
			row.Op = event.Snapshot
			created = w.at.Add(-80 * time.Hour)
		}
	} else {
		created, _ = time.Parse(time.RFC3339, old["metadata"].(obj)["creationTimestamp"].(string))
	}
	metadata := obj{"name": name, "uid": row.UID, "resourceVersion": row.ResourceVersion, "creationTimestamp": created.Format(time.RFC3339)}
	for name, v := range map[string]any{"namespace": namespace, "labels": m.labels, "annotations": m.annotations, "generation": m.generation} {
		if s := fmt.Sprint(v); s != "" && s != "map[]" && s != "0" {
			metadata[name] = v
		}
	}
	if m.owner != nil {
		metadata["ownerReferences"] = []any{obj{"apiVersion": "apps/v1", "kind": m.owner.Kind, "name": m.owner.Name, "uid": m.owner.UID, "controller": true}}
	}
	metadata["managedFields"] = w.managers(key, manager, old, o)
	whole := obj{"apiVersion": strings.TrimPrefix(k.Group+"/"+k.Version, "/"), "kind": k.Kind, "metadata": metadata}
	for name, v := range o {
		whole[name] = v
	}
	w.objects[key] = whole
	row.Before, row.After = w.json(old), w.json(whole)
	w.append(row)
}

// managers returns the managed fields of an object: a manager owns those that it changed last.
func (w *writer) managers(key, manager string, old, now obj) (all []any) {
	w.writes[key+" "+manager] = w.at
	by := map[string]obj{}
	for name, v := range now {
		if owner := w.owners[key+" "+name]; owner == "" || string(w.json(obj{"v": old[name]})) != string(w.json(obj{"v": v})) {
			w.owners[key+" "+name] = manager
		}
		owner := w.owners[key+" "+name]
		if by[owner] == nil {
			by[owner] = obj{}
		}
		by[owner]["f:"+name] = obj{}
	}
	for _, owner := range slices.Sorted(maps.Keys(by)) {
		all = append(all, obj{
			"manager": owner, "operation": "Update", "apiVersion": "v1", "time": w.writes[key+" "+owner].Format(time.RFC3339), "fieldsType": "FieldsV1", "fieldsV1": by[owner],
		})
	}
	return all
}

// remove deletes an object.
func (w *writer) remove(k journal.Kind, namespace, name string, owner *event.Owner) {
	w.t.Helper()
	key := k.Resource + "/" + namespace + "/" + name
	row := w.row(k, namespace, name, "?", owner)
	row.Op, row.Before = event.Deleted, w.json(w.objects[key])
	delete(w.objects, key)
	w.append(row)
}

func (w *writer) row(k journal.Kind, namespace, name, manager string, owner *event.Owner) journal.Row {
	w.version += 3
	return journal.Row{Meta: journal.Meta{
		Op: event.Updated, Kind: k, Namespace: namespace, Name: name, UID: uid(k, namespace, name), ResourceVersion: fmt.Sprint(w.version),
		Time: w.at, At: w.at, Manager: manager, Owner: owner,
	}}
}

func uid(k journal.Kind, namespace, name string) string {
	var sum uint64 = 14695981039346656037
	for _, c := range k.Resource + "/" + namespace + "/" + name {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return fmt.Sprintf("%08x-%04x-4%03x-9%03x-%012x", sum>>32, sum>>16&0xffff, sum&0xfff, sum>>20&0xfff, sum&0xffffffffffff)
}

func (w *writer) json(o obj) []byte {
	w.t.Helper()
	if o == nil {
		return nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

func (w *writer) append(row journal.Row) {
	w.t.Helper()
	rows := []journal.Row{row}
	historytest.Judge(rows)
	batch := journal.Batch{
		Stream: journal.Stream{GroupResource: row.Kind.GroupResource()}, Rows: rows,
		Head: journal.Head{Version: fmt.Sprint(w.version), Epoch: 1, Live: true, EverLive: true, At: w.at},
	}
	if row.Op == event.Absent {
		batch.Stream = journal.Stream{}
	}
	if _, err := w.j.Append(w.t.Context(), []journal.Batch{batch}); err != nil {
		w.t.Fatal(err)
	}
}

// gap records that versions of a kind were missed.
func (w *writer) gap(k journal.Kind) {
	w.t.Helper()
	w.append(journal.Row{Meta: journal.Meta{
		Op: event.Gap, Kind: k, Time: w.at, At: w.at, Since: w.at.Add(-30 * time.Second), Gap: &event.GapInfo{From: "17", To: "23", Reason: "expired"},
	}})
}

// absence records that the daemon did not run for a while.
func (w *writer) absence(d time.Duration) {
	w.t.Helper()
	since := w.at
	w.wait(d)
	w.append(journal.Row{Meta: journal.Meta{
		Op: event.Absent, Kind: journal.AbsenceKind, Time: w.at, At: w.at, Since: since, Absence: &event.Absence{Reason: event.AbsenceStopped, Changes: 3},
	}})
}
