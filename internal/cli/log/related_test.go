package log

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

var (
	services    = journal.Kind{Version: "v1", Resource: "services", Kind: "Service", Namespaced: true}
	secrets     = journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	coreEvents  = journal.Kind{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true}
	scalers     = journal.Kind{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}
	budgets     = journal.Kind{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}
	policies    = journal.Kind{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Kind: "NetworkPolicy", Namespaced: true}
	ingresses   = journal.Kind{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses", Kind: "Ingress", Namespaced: true}
	priorities  = journal.Kind{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Kind: "PriorityClass"}
	accounts    = journal.Kind{Version: "v1", Resource: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true}
	certificate = journal.Kind{Group: "cert-manager.io", Version: "v1", Resource: "certificates", Kind: "Certificate", Namespaced: true}
)

// writtenBy adds a managedFields entry for all of an object's fields.
func writtenBy(manager string, o obj) obj {
	fields := obj{}
	for key, v := range o {
		if key != "metadata" {
			fields["f:"+key] = fieldsOf(v)
		}
	}
	meta, _ := o["metadata"].(obj)
	meta = copyOf(meta)
	meta["managedFields"] = []any{obj{"manager": manager, "operation": "Update", "fieldsV1": fields}}
	o = copyOf(o)
	o["metadata"] = meta
	return o
}

func copyOf(o obj) obj {
	out := obj{}
	for k, v := range o {
		out[k] = v
	}
	return out
}

func fieldsOf(v any) obj {
	out := obj{}
	m, _ := v.(obj)
	for k, v := range m {
		out["f:"+k] = fieldsOf(v)
	}
	return out
}

// app is an object of an application: a pod or a workload that names a ConfigMap, a Secret and a PriorityClass.
func app(name, image, node string, owners ...any) obj {
	pod := obj{
		"priorityClassName": "high", "serviceAccountName": "default",
		"containers": []any{obj{"name": "app", "image": image, "envFrom": []any{obj{"configMapRef": obj{"name": "settings"}}}}},
		"volumes":    []any{obj{"name": "tls", "secret": obj{"secretName": "web-tls"}}, obj{"name": "ca", "projected": obj{"sources": []any{obj{"configMap": obj{"name": "kube-root-ca.crt"}}}}}},
	}
	meta := obj{"labels": obj{"app": name}, "ownerReferences": owners}
	if node == "" {
		return obj{"metadata": meta, "spec": obj{"replicas": int64(1), "template": obj{"metadata": obj{"labels": obj{"app": name}}, "spec": pod}}}
	}
	pod["nodeName"] = node
	return obj{"metadata": meta, "spec": pod, "status": obj{"phase": "Running"}}
}

func ownerRef(apiVersion, kind, name string) obj {
	return obj{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uidOf(kind, "shop", name), "controller": true}
}

// application writes a journal of two Deployments, web and api, that share a ConfigMap, a PriorityClass and a node.
func application(t *testing.T) string {
	b := newBook(t, start)
	manager := "helm"
	step := func(k journal.Kind, op event.Op, ns, name string, before, after obj, edits ...func(*journal.Row)) {
		if after != nil {
			after = writtenBy(manager, after)
		}
		b.at = b.at.Add(20 * time.Second)
		b.add(k, op, ns, name, before, after, edits...)
	}
	step(nodes, event.Snapshot, "", "n1", nil, obj{"spec": obj{}})
	step(priorities, event.Snapshot, "", "high", nil, obj{"value": int64(1)})
	step(maps, event.Snapshot, "shop", "settings", nil, obj{"data": obj{"color": "red"}})
	step(maps, event.Snapshot, "shop", "kube-root-ca.crt", nil, obj{"data": obj{"ca": "1"}})
	step(accounts, event.Snapshot, "shop", "default", nil, obj{})
	for _, name := range []string{"web", "api"} {
		step(deployments, event.Created, "shop", name, nil, app(name, name+":1", ""))
		step(replicaSets, event.Created, "shop", name+"-1", nil, app(name, name+":1", "", ownerRef("apps/v1", "Deployment", name)), ownedBy("Deployment", name))
		step(pods, event.Created, "shop", name+"-1-a", nil, app(name, name+":1", "n1", ownerRef("apps/v1", "ReplicaSet", name+"-1")), ownedBy("ReplicaSet", name+"-1"))
		step(services, event.Created, "shop", name, nil, obj{"spec": obj{"selector": obj{"app": name}}})
		scaler := func(most int64) obj {
			return obj{"spec": obj{"maxReplicas": most, "scaleTargetRef": obj{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}}
		}
		step(scalers, event.Created, "shop", name, nil, scaler(3))
		manager = "kubectl-edit"
		step(scalers, event.Updated, "shop", name, scaler(3), scaler(9))
		manager = "helm"
	}
	step(secrets, event.Created, "shop", "web-tls", nil, obj{"metadata": obj{"ownerReferences": []any{ownerRef("cert-manager.io/v1", "Certificate", "web")}}, "type": "tls"})
	step(certificate, event.Created, "shop", "web", nil, obj{"spec": obj{"secretName": "web-tls"}})
	step(budgets, event.Created, "shop", "web", nil, obj{"spec": obj{"minAvailable": int64(1), "selector": obj{"matchLabels": obj{"app": "web"}}}})
	step(policies, event.Created, "shop", "only-web", nil, obj{"spec": obj{"podSelector": obj{"matchExpressions": []any{obj{"key": "app", "operator": "In", "values": []any{"web"}}}}}})
	step(ingresses, event.Created, "shop", "front", nil, obj{"spec": obj{"rules": []any{obj{"http": obj{"paths": []any{obj{"backend": obj{"service": obj{"name": "web"}}}}}}}}})
	step(coreEvents, event.Created, "shop", "web.1", nil, obj{
		"involvedObject": obj{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web", "namespace": "shop"},
		"type":           "Warning", "reason": "FailedGetScale", "message": "no metrics",
	})
	manager = "kubectl-edit"
	step(maps, event.Updated, "shop", "settings", obj{"data": obj{"color": "red"}}, obj{"data": obj{"color": "blue"}})
	step(nodes, event.Updated, "", "n1", obj{"spec": obj{}}, obj{"spec": obj{"unschedulable": true}})
	step(services, event.Deleted, "shop", "web", obj{"spec": obj{"selector": obj{"app": "web"}}}, nil)
	step(maps, event.Updated, "pay", "settings", obj{"data": obj{"color": "red"}}, obj{"data": obj{"color": "blue"}})
	return b.close()
}

func console(width int) *terminal.IO {
	return &terminal.IO{OutTTY: true, Width: func() int { return width }}
}

// golden compares an output with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got)
}

// TestRelatedText: the story of a Deployment, as lines and as a tree, at 80 columns.
func TestRelatedText(t *testing.T) {
	path := application(t)
	for name, o := range map[string]Options{
		"related.txt":     {Related: true, Options: selection.Options{Types: []string{"deploy/web"}}},
		"tree.txt":        {Tree: true, Options: selection.Options{Types: []string{"deploy/web"}}},
		"tree-pod.txt":    {Tree: true, Options: selection.Options{Types: []string{"pod/web-1-a"}}},
		"tree-secret.txt": {Tree: true, Options: selection.Options{Types: []string{"secret/web-tls"}}, Flat: true},
		"stat.txt":        {Stat: true, Limit: 10},
		"stat-web.txt":    {Stat: true, Related: true, Options: selection.Options{Types: []string{"deploy/web"}}, Limit: 5},
	} {
		o.Output, o.IO = text, console(80)
		out, _, err := play(t, path, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		golden(t, name, out)
	}
}

// TestRelated: what belongs to an object, in the order of its changes.
func TestRelated(t *testing.T) {
	path := application(t)
	for _, tc := range []struct {
		why, object, want string
		o                 Options
	}{
		{"a ConfigMap: what names it, not what else those name", "cm/settings", "created web, created web-1, created web-1-a, created api, created api-1, created api-1-a, updated settings, updated settings", Options{}},
		{"in its namespace", "cm/settings", "updated settings", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"pay"}}}}},
		{"a node brings in no pods", "node/n1", "updated n1", Options{}},
		{"a Service: its pods and their owners, and what leads to it", "svc/web", "created web, created web-1, created web-1-a, created web, created front, deleted web", Options{}},
		{"an HPA: its target and its Events", "hpa/web", "created web, created web-1, created web, updated web, created web.1", Options{}},
		{"the range counts for relations as well", "pod/web-1-a", "updated settings, updated n1", Options{Options: selection.Options{Since: "10:07:50", Until: "10:08:30"}}},
		{"an account that all pods have", "sa/default", "", Options{}},
	} {
		tc.o.Related, tc.o.Types = true, []string{tc.object}
		out, said, err := play(t, path, tc.o)
		if got := summarizeEvents(t, out); got != tc.want || err != nil {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s %v", tc.why, got, tc.want, said, err)
		}
	}
}

// TestFlagsTogether: flags that exclude each other, and a selection without a name.
func TestFlagsTogether(t *testing.T) {
	path := recorded(t)
	for want, o := range map[string]Options{
		"need an object":           {Related: true, Output: text},
		"name one: TYPE/NAME":      {Related: true, Output: text, Options: selection.Options{Types: []string{"cm"}}},
		"--related and -f exclude": {Related: true, Follow: true, Options: selection.Options{Types: []string{"cm/a"}}},
		"with -o json, use":        {Tree: true, Options: selection.Options{Types: []string{"cm/a"}}},
		"leave out -f and -o":      {HTML: "-"},
		"--html and --tree":        {HTML: "-", Tree: true, Output: text, Options: selection.Options{Types: []string{"cm/a"}}},
		"--stat excludes -f":       {Stat: true, Follow: true},
		"--stat prints text":       {Stat: true, Output: oneline},
	} {
		if _, _, err := play(t, path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestStatJSON: the same numbers for programs, with quiet changes only if they are asked for.
func TestStatJSON(t *testing.T) {
	path := recorded(t)
	for noise, want := range map[bool]int{false: 4, true: 5} {
		out, _, err := play(t, path, Options{Options: selection.Options{Noise: noise}, Stat: true, Limit: 1})
		var s stat
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		if err != nil || s.Changes != want || s.Created != 2 || s.Deleted != 1 || len(s.Objects.Rows) != 1 || s.Objects.Rows[0].Name != "cm/a" || s.Objects.Cut != 1 || s.Objects.Distinct != 2 {
			t.Errorf("noise %v: %v\n%s", noise, err, out)
		}
	}
}

// TestTallyBounds: keys beyond the bound are counted together, and paths with any list element are one.
func TestTallyBounds(t *testing.T) {
	of := newTable()
	of.max = 1
	for _, key := range []string{"a", "b", "a", "c"} {
		of.add(key, event.Updated, start, start, func() tally { return tally{Name: key} })
	}
	if rows, cut := of.top(0); len(rows) != 1 || rows[0].Changes != 2 || cut != 0 || of.beyond != 2 {
		t.Errorf("%d rows, %d cut, %d beyond", len(rows), cut, of.beyond)
	}
	for path, want := range map[string]string{
		"spec.containers[name=app].ports[0].name": "spec.containers[*].ports[*].name", `data["a.b"]`: `data["a.b"]`, "spec.x": "spec.x",
		`metadata.finalizers[1]`: "metadata.finalizers[*]",
	} {
		p, err := diff.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := general(p); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
