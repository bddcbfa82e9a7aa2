package cli

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestLogFollowsOwners: log deploy/web shows the same objects as watch deploy/web, by their owner references.
func TestLogFollowsOwners(t *testing.T) {
	home(t)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	s := informertest.NewServer()
	for gvr, k := range map[schema.GroupVersionResource][]string{deployments: {"Deployment", "deploy"}, replicaSets: {"ReplicaSet", "rs"}, pods: {"Pod", "po"}} {
		s.Serve(gvr, k[0])
		s.Describe(gvr, false, k[1:], nil)
	}
	put := func(gvr schema.GroupVersionResource, name, owner, ownerName string) {
		fields := map[string]any{"spec": map[string]any{"a": "1"}}
		if owner != "" {
			fields["metadata"] = map[string]any{"ownerReferences": []any{map[string]any{
				"apiVersion": "apps/v1", "kind": owner, "name": ownerName, "uid": uidOf(t, s, owner, ownerName), "controller": true,
			}}}
		}
		s.Put(gvr, "default", name, fields)
	}
	for _, app := range []string{"web", "other"} {
		put(deployments, app, "", "")
		put(replicaSets, app+"-1", "Deployment", app)
		put(pods, app+"-1-a", "ReplicaSet", app+"-1")
	}
	config := kubeconfig(t, serve(t, s.ServeHTTP))
	record(t, func() { s.Delete(pods, "default", "web-1-a") }, "deploy,rs,pods", "--kubeconfig", config)
	record(t, nil, "deploy,rs,pods", "--kubeconfig", config)

	_, logged, said := tattler(t.Context(), "tattler", "log", "deploy/web", "--op", "snapshot,deleted", "-o", "oneline", "--kubeconfig", config)
	if got, want := objects(logged), []string{"deploy/web", "pod/web-1-a", "pod/web-1-a", "rs/web-1"}; !slices.Equal(got, want) {
		t.Errorf("log: %q, want %q; %s", got, want, said)
	}
	put(pods, "web-1-a", "ReplicaSet", "web-1")
	_, watched, _ := tattler(t.Context(), "tattler", "watch", "deploy/web", "--initial", "--limit", "3", "--kubeconfig", config)
	if got, want := objects(watched), []string{"deploy/web", "pod/web-1-a", "rs/web-1"}; !slices.Equal(got, want) {
		t.Errorf("watch: %q, want %q", got, want)
	}
}

// uidOf returns the UID of an object, found by the name of its kind.
func uidOf(t *testing.T, s *informertest.Server, kind, name string) string {
	t.Helper()
	plural := map[string]string{"Deployment": "deployments", "ReplicaSet": "replicasets"}[kind]
	for _, o := range s.Objects(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: plural}) {
		if meta, _ := o["metadata"].(map[string]any); meta["name"] == name {
			uid, _ := meta["uid"].(string)
			return uid
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return ""
}

// objects returns the objects of lines, sorted.
func objects(out string) (all []string) {
	for line := range strings.Lines(out) {
		for _, word := range strings.Fields(line) {
			if kind, _, ok := strings.Cut(word, "/"); ok && slices.Contains([]string{"deploy", "rs", "pod"}, kind) {
				all = append(all, word)
			}
		}
	}
	slices.Sort(all)
	return all
}
