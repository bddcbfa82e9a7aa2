package chart

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKustomize applies an overlay of the base in another namespace. Its pod is admitted under restricted Pod Security, and
// its rights are those that tattler rbac prints for its configuration.
func TestKustomize(t *testing.T) {
	const overlay = "testdata/overlay"
	namespace := unique("kustomized")
	dir := t.TempDir()
	from, err := filepath.Abs(overlay)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(resolved, from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "kustomization.yaml", fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: %s\nresources: [%s]\n", namespace, path))
	manifest := kubectl(t, "kustomize", dir)
	file := write(t, dir, "all.yaml", manifest)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "--wait=false", "-f", file); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "apply", "--validate=strict", "-f", file)
	h := connect(t, namespace)
	n, err := h.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil || n.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("Pod Security is not enforced: %v %v", err, n.Labels)
	}
	p := h.pod(t)
	if got := p.Spec.Containers[0].Image; got != "ghcr.io/tattler-dev/tattler:v0.1.0" {
		t.Errorf("the image is %s", got)
	}
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			if _, err := h.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), v.ConfigMap.Name, metav1.GetOptions{}); err != nil || v.ConfigMap.Name == "tattler" {
				t.Errorf("the pod's ConfigMap %s: %v", v.ConfigMap.Name, err)
			}
		}
	}

	cmd := exec.CommandContext(t.Context(), program(t), "rbac", "-c", filepath.Join(overlay, "config.yaml"))
	cmd.Env = []string{"KUBECONFIG=" + cluster.Kubeconfig(), "HOME=" + dir}
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, want := rules(t, manifest), standard(rules(t, string(printed)))
	for _, r := range got["ClusterRole /tattler-reviews"] {
		if !slices.ContainsFunc(got["ClusterRole /tattler"], func(has rbacv1.PolicyRule) bool { return includes(&has, &r) }) {
			got["ClusterRole /tattler"] = append(got["ClusterRole /tattler"], r)
		}
	}
	delete(got, "ClusterRole /tattler-reviews")
	less := func(a, b rbacv1.PolicyRule) bool { return a.String() < b.String() }
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(less)); diff != "" {
		t.Errorf("(-tattler rbac +base):\n%s", diff)
	}
}

// includes reports whether a rule grants all that another one grants.
func includes(has, r *rbacv1.PolicyRule) bool {
	all := func(has, list []string) bool {
		return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(has, s) })
	}
	return all(has.APIGroups, r.APIGroups) && all(has.Resources, r.Resources) && all(has.Verbs, r.Verbs)
}
