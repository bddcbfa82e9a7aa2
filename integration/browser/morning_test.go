package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// managers of the morning's objects.
const (
	controllers = "kube-controller-manager"
	kubelet     = "kubelet"
)

// dawn is when the morning begins.
var dawn = time.Date(2026, 11, 24, 8, 41, 12, 0, time.UTC)

// app is a Deployment of the morning.
type app struct {
	w                      *writer
	namespace, name, image string
	replicas, ready        int
	generation, hash       int
	pods                   []string
}

// morning records a plausible morning of a cluster, and returns the journal's path.
func morning(t *testing.T) string {
	t.Helper()
	w := newWriter(t, dawn)
	for i := range 3 {
		w.node(i, false, kubelet)
	}
	w.settings("info", "30s", "helm", true)
	web := w.app("shop", "web", "registry.example.com/shop/web:1.4.2", 3)
	cart := w.app("shop", "cart", "registry.example.com/shop/cart:0.9.1", 2)
	api := w.app("pay", "api", "registry.example.com/pay/api:7.1", 2)
	w.app("pay", "ledger", "registry.example.com/pay/ledger:3.0", 2)
	w.password("hidden #4e1f77a0c2d95b13")

	w.wait(11*time.Minute + 8*time.Second)
	w.settings("debug", "5s", "kubectl-edit", false)
	w.wait(6 * time.Minute)
	web.rollOut("registry.example.com/shop/web:1.5.0", "kubectl-set")
	w.wait(7 * time.Minute)
	cart.scale(4, "horizontal-pod-autoscaler")
	w.wait(9 * time.Minute)
	w.password("hidden #9c20be41d07f6a58")
	w.wait(2 * time.Minute)
	api.breakDown("registry.example.com/pay/api:7.2", "argocd-controller")
	w.wait(4 * time.Minute)
	api.rollOut("registry.example.com/pay/api:7.1", "kubectl-rollout")
	w.wait(5 * time.Minute)
	w.node(2, true, "kubectl-cordon")
	w.wait(3 * time.Minute)
	w.absence(2 * time.Minute)
	w.wait(6 * time.Minute)
	w.node(2, false, "kubectl-uncordon")
	w.wait(8 * time.Minute)
	cart.scale(2, "horizontal-pod-autoscaler")
	w.wait(12 * time.Minute)
	w.settings("info", "10s", "helm", false)
	web.rollOut("registry.example.com/shop/web:1.5.1", "helm")
	w.wait(9 * time.Minute)
	w.settings("warn", "10s", "kubectl-edit", false)
	w.wait(3 * time.Minute)
	return w.close()
}

// settings writes a ConfigMap.
func (w *writer) settings(level, timeout, manager string, first bool) {
	w.put(configMapKind, "shop", "web-settings", manager, meta{labels: obj{"app": "web"}, first: first}, obj{"data": obj{
		"LOG_LEVEL":      level,
		"app.properties": "cache.size=64\nhttp.timeout=" + timeout + "\nhttp.retries=3\nfeature.checkout=true\n",
	}})
}

// password writes a Secret, as redaction leaves it.
func (w *writer) password(hidden string) {
	first := w.objects["secrets/pay/ledger-db"] == nil
	w.put(secretKind, "pay", "ledger-db", "external-secrets", meta{labels: obj{"app": "ledger"}, first: first}, obj{
		"type": "Opaque", "data": obj{"user": "hidden #12a97f3e55d0c86b", "password": hidden},
	})
}

func (w *writer) node(i int, cordoned bool, manager string) {
	name := fmt.Sprint("node-", i)
	spec := obj{"podCIDR": fmt.Sprintf("10.244.%d.0/24", i), "providerID": "kind://prod/" + name}
	if cordoned {
		spec["unschedulable"] = true
		spec["taints"] = []any{obj{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}
	}
	status := obj{
		"capacity":   obj{"cpu": "8", "memory": "32Gi", "pods": "110"},
		"conditions": []any{obj{"type": "Ready", "status": "True", "reason": "KubeletReady"}},
	}
	w.put(nodeKind, "", name, manager, meta{labels: obj{"kubernetes.io/hostname": name}, first: w.objects["nodes//"+name] == nil}, obj{"spec": spec, "status": status})
}

// app records a Deployment that exists at dawn.
func (w *writer) app(namespace, name, image string, replicas int) *app {
	a := &app{w: w, namespace: namespace, name: name, image: image, replicas: replicas, ready: replicas, generation: 4, hash: len(name) + len(image)}
	a.deployment("helm", replicas)
	a.replicaSet(replicas)
	for range replicas {
		a.pods = append(a.pods, a.newPod())
		a.pod(len(a.pods)-1, "Running", 0)
	}
	w.put(serviceKind, namespace, name, "helm", meta{labels: obj{"app": name}, first: true}, obj{
		"spec": obj{"selector": obj{"app": name}, "ports": []any{obj{"name": "http", "port": 80, "targetPort": "http"}}, "type": "ClusterIP"},
	})
	return a
}

func (a *app) first() bool { return a.w.at.Equal(dawn) }

// template is the pods' spec.
func (a *app) template() obj {
	return obj{
		"serviceAccountName": a.name,
		"containers": []any{obj{
			"name": "app", "image": a.image, "args": []any{"serve", "--config=/etc/app/app.properties"},
			"envFrom":        []any{obj{"configMapRef": obj{"name": a.name + "-settings"}}},
			"ports":          []any{obj{"name": "http", "containerPort": 8080}},
			"readinessProbe": obj{"httpGet": obj{"path": "/healthz", "port": "http"}, "periodSeconds": 5},
			"resources":      obj{"requests": obj{"cpu": "100m", "memory": "128Mi"}, "limits": obj{"memory": "256Mi"}},
		}},
	}
}

func (a *app) deployment(manager string, updated int) {
	available := "True"
	if a.ready < a.replicas {
		available = "False"
	}
	a.w.put(deployKind, a.namespace, a.name, manager, meta{labels: obj{"app": a.name}, generation: a.generation, first: a.first()}, obj{
		"spec": obj{
			"replicas": a.replicas, "selector": obj{"matchLabels": obj{"app": a.name}},
			"strategy": obj{"type": "RollingUpdate", "rollingUpdate": obj{"maxSurge": "25%", "maxUnavailable": "25%"}},
			"template": obj{"metadata": obj{"labels": obj{"app": a.name}}, "spec": a.template()},
		},
		"status": obj{
			"observedGeneration": a.generation, "replicas": a.replicas, "updatedReplicas": updated, "readyReplicas": a.ready, "availableReplicas": a.ready,
			"conditions": []any{
				obj{"type": "Available", "status": available, "reason": "MinimumReplicasAvailable"},
				obj{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		},
	})
}

func (a *app) set() string {
	return fmt.Sprintf("%s-%x", a.name, 0x5d8c7b94f^a.hash*0x9e3779b1&0xfffffffff)
}

func (a *app) replicaSet(replicas int) {
	a.scaledSet(a.set(), a.template(), replicas, replicas)
}

func (a *app) scaledSet(name string, template obj, replicas, ready int) {
	owner := &event.Owner{Kind: "Deployment", Name: a.name, UID: uid(deployKind, a.namespace, a.name)}
	a.w.put(replicaKind, a.namespace, name, controllers, meta{labels: obj{"app": a.name}, owner: owner, first: a.first()}, obj{
		"spec":   obj{"replicas": replicas, "template": obj{"spec": template}},
		"status": obj{"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready},
	})
}

func (a *app) newPod() string {
	a.w.version++
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := ""
	for i, n := 0, uint32(a.w.version)*2654435761; i < 5; i, n = i+1, n/27 {
		suffix += string(letters[n%27])
	}
	return a.set() + "-" + suffix
}

// pod records a state of a pod.
func (a *app) pod(i int, phase string, restarts int) {
	name := a.pods[i]
	waiting := ""
	if phase != "Running" && phase != "Pending" {
		waiting, phase = phase, "Running"
	}
	state, ready := obj{"running": obj{"startedAt": a.w.at.Format(time.RFC3339)}}, "True"
	if waiting != "" {
		state, ready = obj{"waiting": obj{"reason": waiting}}, "False"
	}
	status := obj{"phase": phase}
	if phase != "Pending" {
		container := obj{"name": "app", "image": a.image, "restartCount": restarts, "ready": ready == "True", "state": state}
		if restarts > 0 {
			container["lastState"] = obj{"terminated": obj{"exitCode": 1, "reason": "Error"}}
		}
		status = obj{
			"phase": phase, "podIP": fmt.Sprintf("10.244.%d.%d", i%3, 10+a.w.version%200), "containerStatuses": []any{container},
			"conditions": []any{obj{"type": "Ready", "status": ready}},
		}
	}
	spec := a.template()
	spec["nodeName"] = fmt.Sprint("node-", i%3)
	manager := kubelet
	if phase == "Pending" {
		manager = controllers
	}
	a.w.put(podKind, a.namespace, name, manager, meta{labels: obj{"app": a.name}, owner: a.podOwner(a.set()), first: a.first()}, obj{"spec": spec, "status": status})
}

func (a *app) podOwner(set string) *event.Owner {
	return &event.Owner{Kind: "ReplicaSet", Name: set, UID: uid(replicaKind, a.namespace, set)}
}

// rollOut replaces the pods one by one.
func (a *app) rollOut(image, manager string) {
	old, oldSet, oldTemplate := slices.Clone(a.pods), a.set(), a.template()
	a.image, a.hash = image, a.hash+7
	a.generation++
	a.deployment(manager, 0)
	a.w.wait(200 * time.Millisecond)
	for i := range a.replicas {
		a.scaledSet(a.set(), a.template(), i+1, i)
		a.pods[i] = a.newPod()
		a.pod(i, "Pending", 0)
		a.w.wait(2 * time.Second)
		a.pod(i, "Running", 0)
		a.replicaSet(i + 1)
		a.ready = a.replicas
		a.scaledSet(oldSet, oldTemplate, a.replicas-i-1, a.replicas-i-1)
		a.w.remove(podKind, a.namespace, old[i], a.podOwner(oldSet))
		a.w.wait(time.Second)
		a.deployment(controllers, i+1)
	}
	a.deployment(controllers, a.replicas)
}

// breakDown begins a rollout whose first pod fails again and again.
func (a *app) breakDown(image, manager string) {
	a.image, a.hash = image, a.hash+7
	a.generation++
	a.deployment(manager, 0)
	a.scaledSet(a.set(), a.template(), 1, 0)
	a.pods[0] = a.newPod()
	a.pod(0, "Pending", 0)
	a.ready--
	for n := range 4 {
		a.w.wait(time.Duration(4+10*n) * time.Second)
		a.pod(0, "CrashLoopBackOff", n+1)
	}
	a.deployment(controllers, 1)
}

// scale adds or removes pods.
func (a *app) scale(replicas int, manager string) {
	a.replicas = replicas
	a.generation++
	a.deployment(manager, len(a.pods))
	a.replicaSet(replicas)
	for len(a.pods) > replicas {
		last := a.pods[len(a.pods)-1]
		a.pods = a.pods[:len(a.pods)-1]
		a.w.remove(podKind, a.namespace, last, a.podOwner(a.set()))
	}
	for len(a.pods) < replicas {
		a.pods = append(a.pods, a.newPod())
		a.pod(len(a.pods)-1, "Pending", 0)
		a.w.wait(2 * time.Second)
		a.pod(len(a.pods)-1, "Running", 0)
	}
	a.w.wait(time.Second)
	a.ready = replicas
	a.deployment(controllers, replicas)
}
