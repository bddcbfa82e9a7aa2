package decode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// jsonPods returns n running pods in JSON, from a few templates, with the fields that the API server adds.
func jsonPods(n, templates int, seed uint64) (raws [][]byte) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	for i := range n {
		raw, err := json.Marshal(jsonPod(fmt.Sprintf("app-%d-%d", seed, rnd.IntN(templates)), i, rnd))
		if err != nil {
			panic(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

type (
	object = map[string]any
	list   = []any
)

// jsonPod returns a pod of an application. Values from i or rnd are unique to the pod.
func jsonPod(app string, i int, rnd *rand.Rand) object {
	name, ip := fmt.Sprintf("%s-7d9f8b6c5d-%05x", app, i), fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	uid := func() string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", rnd.Uint32(), rnd.Uint64N(1<<48)) }
	at := func() string {
		return fmt.Sprintf("2026-01-%02dT%02d:%02d:%02dZ", 1+i%28, i%24, rnd.IntN(60), rnd.IntN(60))
	}
	probe := object{"httpGet": object{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1}
	container := func(name string) object {
		return object{
			"name": name, "image": "registry.example.com/" + app + "/" + name + ":1.2.3", "imagePullPolicy": "IfNotPresent",
			"env": list{
				object{"name": "APP", "value": app}, object{"name": "LEVEL", "value": "a <quoted> \"text\""},
				object{"name": "POD_IP", "valueFrom": object{"fieldRef": object{"apiVersion": "v1", "fieldPath": "status.podIP"}}},
			},
			"ports":     list{object{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
			"resources": object{"limits": object{"cpu": "500m", "memory": "512Mi"}, "requests": object{"cpu": "100m", "memory": "256Mi"}},
			"volumeMounts": list{
				object{"name": "config", "mountPath": "/etc/app"},
				object{"name": fmt.Sprintf("kube-api-access-%05x", i), "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
			},
			"livenessProbe": probe, "readinessProbe": probe, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			"securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": list{"ALL"}}},
		}
	}
	condition := func(of string) object {
		return object{"type": of, "status": "True", "lastProbeTime": nil, "lastTransitionTime": at(), "observedGeneration": 1}
	}
	status := func(name string) object {
		return object{
			"name": name, "ready": true, "started": true, "restartCount": 0, "image": "registry.example.com/" + app + "/" + name + ":1.2.3",
			"imageID": "registry.example.com/" + app + "/" + name + "@sha256:" + strings.Repeat("0123456789abcdef", 4), "containerID": "containerd://" + uid() + uid(),
			"state": object{"running": object{"startedAt": at()}}, "lastState": object{},
		}
	}
	owned := func(extra ...string) object {
		f := object{".": object{}, "f:labels": object{".": object{}, "f:app": object{}, "f:version": object{}}, "f:containers": object{}}
		for _, c := range []string{"main", "proxy"} {
			f["k:{\"name\":\""+c+"\"}"] = object{".": object{}, "f:env": object{".": object{}, `k:{"name":"APP"}`: object{".": object{}, "f:name": object{}, "f:value": object{}}}, "f:image": object{}, "f:ports": object{`k:{"containerPort":8080,"protocol":"TCP"}`: object{"f:name": object{}}}}
		}
		for _, e := range extra {
			f[e] = object{".": object{}, "f:ip": object{}}
		}
		return object{"f:metadata": f, "f:status": object{"f:conditions": f}}
	}
	entry := func(manager string, fields object) object {
		return object{"manager": manager, "operation": "Update", "apiVersion": "v1", "time": at(), "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"name": name, "generateName": app + "-7d9f8b6c5d-", "namespace": "team-a", "uid": uid(), "resourceVersion": fmt.Sprint(1000000 + i), "generation": 1, "creationTimestamp": at(),
			"labels":          object{"app": app, "version": "v1", "pod-template-hash": "7d9f8b6c5d", "app.kubernetes.io/part-of": "shop"},
			"annotations":     object{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": strings.Repeat("0123456789abcdef", 4)},
			"ownerReferences": list{object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app + "-7d9f8b6c5d", "uid": "00000000-0000-4000-8000-000000000000", "controller": true, "blockOwnerDeletion": true}},
			"managedFields":   list{entry("kube-controller-manager", owned()), entry("kubelet", owned(`k:{"ip":"`+ip+`"}`))},
		},
		"spec": object{
			"volumes": list{
				object{"name": "config", "configMap": object{"name": app + "-config", "defaultMode": 420}},
				object{"name": fmt.Sprintf("kube-api-access-%05x", i), "projected": object{"defaultMode": 420, "sources": list{object{"serviceAccountToken": object{"expirationSeconds": 3607, "path": "token"}}, object{"configMap": object{"name": "kube-root-ca.crt", "items": list{object{"key": "ca.crt", "path": "ca.crt"}}}}}}},
			},
			"containers": list{container("main"), container("proxy")}, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
			"serviceAccountName": app, "nodeName": fmt.Sprint("node-", rnd.IntN(100)), "securityContext": object{"runAsNonRoot": true}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
			"tolerations": list{object{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, object{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}},
		},
		"status": object{
			"phase": "Running", "hostIP": "192.168.0.1", "podIP": ip, "podIPs": list{object{"ip": ip}}, "startTime": at(), "qosClass": "Burstable", "empty": object{},
			"conditions":        list{condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")},
			"containerStatuses": list{status("main"), status("proxy")},
		},
	}
}

// BenchmarkJSON decodes pods of 100 templates as util/json does, without a table and with one; B/pod is the live heap per
// pod, the table included. The peer is util/json of the same process.
func BenchmarkJSON(b *testing.B) {
	raws := jsonPods(2000, 100, 1)
	var table *Table
	for _, by := range []struct {
		name   string
		begin  func()
		decode func(raw []byte) (map[string]any, error)
	}{
		{"util-json", func() {}, func(raw []byte) (m map[string]any, err error) { err = utiljson.Unmarshal(raw, &m); return m, err }},
		{"own", func() {}, func(raw []byte) (map[string]any, error) { m, _, err := JSON(nil, raw); return m, err }},
		{"shared", func() { table = NewTable(64 << 20) }, func(raw []byte) (map[string]any, error) { m, _, err := JSON(table, raw); return m, err }},
	} {
		b.Run(by.name, func(b *testing.B) {
			all := make([]map[string]any, len(raws))
			before := heap()
			by.begin()
			b.ReportAllocs()
			n := 0
			for ; b.Loop() || n < len(all); n++ {
				m, err := by.decode(raws[n%len(raws)])
				if err != nil {
					b.Fatal(err)
				}
				all[n%len(all)] = m
			}
			b.ReportMetric(float64(heap()-before)/float64(len(all)), "B/pod")
			runtime.KeepAlive(all)
			runtime.KeepAlive(table)
			table = nil
		})
	}
}
