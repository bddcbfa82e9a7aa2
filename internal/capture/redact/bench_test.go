package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// benchObjects are a typical pod without secrets; one with a password; a program's settings in a ConfigMap; and
// the definition of a custom resource, which contains much prose.
func benchObjects() map[string]string {
	pod := func(variables string) string {
		var containers, statuses []string
		for i := range 3 {
			containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example.com/shop/web:1.%d","args":["serve","--v=2","--addr=:80","--config=/etc/app/config.yaml"],
				"env":[{"name":"LOG_LEVEL","value":"info"},%s{"name":"DB_URL","value":"postgres://db:5432/shop"},{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}},
				{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m"}},
				"volumeMounts":[{"name":"config","mountPath":"/etc/app"},{"name":"kube-api-access-x7x2k","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
				"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}`, i, i, variables))
			statuses = append(statuses, fmt.Sprintf(`{"name":"c%d","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}},"ready":true,"restartCount":0,"image":"registry.example.com/shop/web:1.%d",
				"imageID":"docker-pullable://registry.example.com/shop/web@sha256:4f0a1c7d1f6e0f4c1f9b0c2d3e4f5061728394a5b6c7d8e9f00112233445566","containerID":"containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","started":true}`, i, i))
		}
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-6d4cf56db6-x7x2k","namespace":"shop","uid":"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0","labels":{"app":"web","pod-template-hash":"6d4cf56db6"},
			"annotations":{"prometheus.io/scrape":"true"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"u"}],
			"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c0\"}":{".":{},"f:env":{"k:{\"name\":\"DB_PASSWORD\"}":{".":{},"f:name":{}}}}}}}}]},
			"spec":{"serviceAccountName":"web","nodeName":"node-1","volumes":[{"name":"config","configMap":{"name":"web"}},{"name":"kube-api-access-x7x2k","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
			{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"containers":[` +
			strings.Join(containers, ",") + `]},"status":{"phase":"Running","hostIP":"10.0.0.1","podIP":"10.1.0.1","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],"containerStatuses":[` + strings.Join(statuses, ",") + `]}}`
	}
	var settings strings.Builder
	for i := range 200 {
		fmt.Fprintf(&settings, "server.%d.host=app-%d.example.com\nserver.%d.timeout=30s\n", i, i, i)
	}
	settings.WriteString("db.password=x7x2k\n")
	words := strings.Repeat("The name of the Secret in the same namespace that holds the token of the API server. It is an error if the key is not there. ", 4)
	var properties []string
	for i := range 60 {
		properties = append(properties, fmt.Sprintf(`"field%d":{"description":%q,"type":"string"}`, i, words))
	}
	return map[string]string{
		"pod": pod(""), "pod with a password": pod(`{"name":"API_TOKEN","value":"x7x2k9"},`),
		"configmap": fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"app.properties":%q}}`, settings.String()),
		"crd":       `{"kind":"CustomResourceDefinition","metadata":{"name":"a","uid":"u"},"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{` + strings.Join(properties, ",") + `}}}}]}}`,
	}
}

var benchResources = map[string]string{
	"pod": "pods", "pod with a password": "pods", "configmap": "configmaps", "crd": "customresourcedefinitions.apiextensions.k8s.io",
}

// BenchmarkRedact checks objects as capture does, as text, and decoded objects.
func BenchmarkRedact(b *testing.B) {
	r := redactor(b)
	for name, raw := range benchObjects() {
		resource := benchResources[name]
		compact := []byte(encode(b, decode(b, raw)))
		b.Run(name+"/Redact", func(b *testing.B) {
			b.SetBytes(int64(len(compact)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Redact(resource, compact); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/Apply", func(b *testing.B) {
			b.SetBytes(int64(len(compact)))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				var obj map[string]any
				if err := json.Unmarshal(compact, &obj); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := r.Apply(resource, obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
