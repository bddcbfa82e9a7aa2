package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/devcluster"
)

// fakeMetrics serves resource metrics in which every pod uses 100m of CPU.
func fakeMetrics(t *testing.T, client func() kubernetes.Interface) *url.URL {
	t.Helper()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "metrics.k8s.io/v1beta1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}})
	})
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) {
		pods, err := client().CoreV1().Pods(r.PathValue("namespace")).List(r.Context(), metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		items := []any{}
		for i := range pods.Items {
			items = append(items, map[string]any{
				"metadata": map[string]any{"name": pods.Items[i].Name, "namespace": pods.Items[i].Namespace}, "window": "1s",
				"timestamp":  time.Now().UTC().Format(time.RFC3339),
				"containers": []any{map[string]any{"name": "app", "usage": map[string]any{"cpu": "100m", "memory": "10Mi"}}},
			})
		}
		answer(w, map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// scaled has a Deployment, its autoscaler, and the API of its metrics.
const scaled = `
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: default}
spec: {type: ExternalName, externalName: localhost, ports: [{port: %[1]s}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics, namespace: default, port: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: "shop/app:1", resources: {requests: {cpu: 100m}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  minReplicas: 1
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`

// TestScaledByFakeMetrics lets the real autoscaler scale a Deployment by fake metrics, and compares the output
// of tattler log with the cluster's objects.
func TestScaledByFakeMetrics(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, err := devcluster.Start(ctx, devcluster.Options{Out: os.Stderr, Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := clientOf(t, own)
	metrics := fakeMetrics(t, func() kubernetes.Interface { return client })
	w := startObserver(t, own)
	journal := filepath.Join(t.TempDir(), "journal.db")
	daemon := start(t, own, "run", "deploy,rs,po,hpa", "-n", "default", "--journal", journal)
	daemon.wait(t, daemon.err, "msg=recording")
	manifest := filepath.Join(t.TempDir(), "scaled.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, scaled, metrics.Port()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runKubectl("", own.Kubeconfig(), "apply", "-f", manifest); err != nil {
		t.Fatal(err, out)
	}
	for began := time.Now(); ; pause() {
		web, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if web.Status.ReadyReplicas == 3 && web.Status.UpdatedReplicas == 3 {
			break
		}
		if time.Since(began) > 3*patience {
			hpa, _ := client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(ctx, "web", metav1.GetOptions{})
			t.Fatalf("not scaled: %+v", hpa.Status)
		}
	}
	wait(3 * time.Second)
	daemon.interrupt(t)
	cmd := exec.Command(tattler(t), "log", "deploy", "--limit", "0", "--journal", journal)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	(&truth{t, w, "default"}).check(string(out))
	said := squeezed(string(out))
	golden(t, "autoscaler", "default", screensOf(t, own.Kubeconfig(), "log", "deploy", "--limit", "0", "--journal", journal), goldenOptions{keep: 10})
	var last *metav1.Time
	for began := time.Now(); last == nil; pause() {
		hpa, err := client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if last = hpa.Status.LastScaleTime; last == nil && time.Since(began) > patience {
			t.Fatalf("never scaled: %+v", hpa.Status)
		}
	}
	lines := regexp.MustCompile(`(\S+Z) ~ default deploy/web kube-controller-manager \(scale\)\nspec.replicas: (\d) → (\d)`).FindAllStringSubmatch(said, -1)
	if len(lines) == 0 || lines[len(lines)-1][3] != "3" {
		t.Fatalf("scaled at %v, but not in\n%s", last, out)
	}
	if at, err := time.Parse(time.RFC3339, lines[len(lines)-1][1]); err != nil || at.Sub(last.Time).Abs() > near {
		t.Errorf("scaled at %v, but the log says %v (%v)", last, at, err)
	}
	if !regexp.MustCompile(`deploy/web scaled \d → 3 (in|within) \d+ s: 3/3 ready`).MatchString(said) {
		t.Errorf("no end of the scaling in\n%s", out)
	}
}
