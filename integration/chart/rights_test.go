package chart

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// objects returns the objects in a manifest of a kind, decoded strictly, by namespace and name.
func objects[T any](t *testing.T, manifest, kind string) map[string]*T {
	t.Helper()
	all := map[string]*T{}
	for _, doc := range strings.Split("\n"+manifest, "\n---") {
		var head struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if head.Kind == kind {
			one := new(T)
			if err := yaml.UnmarshalStrict([]byte(doc), one); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			all[head.Metadata.Namespace+"/"+head.Metadata.Name] = one
		}
	}
	return all
}

// rules returns the rules of a manifest's roles.
func rules(t *testing.T, manifest string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	all := map[string][]rbacv1.PolicyRule{}
	for name, r := range objects[rbacv1.ClusterRole](t, manifest, "ClusterRole") {
		all["ClusterRole "+name] = r.Rules
	}
	for name, r := range objects[rbacv1.Role](t, manifest, "Role") {
		all["Role "+name] = r.Rules
	}
	return all
}

// TestRights compares the chart's roles with what tattler rbac prints for the configuration that the chart renders. Their
// names begin with the namespace.
func TestRights(t *testing.T) {
	const namespaced = `{config: {watch: [{resources: {include: [configmaps, deployments.apps]}, namespaces: {include: [shop, pay]}}]},`
	for _, tc := range []struct{ why, values string }{
		{"the default", "{}"},
		{"a page with tokens", "web: {enabled: true}"},
		{"a page with client certificates only", "{web: {enabled: true, clientCA: {existingConfigMap: ca}}, config: {web: {tokens: false}}}"},
		{"an open page on loopback", "config: {web: {address: '127.0.0.1:8081'}}"},
		{"rights of namespaces, as printed", namespaced + ` rbac: {
			rules: [{apiGroups: [""], resources: [namespaces], resourceNames: [pay, shop], verbs: [get]}, {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}],
			namespaceRules: {shop: &r [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}, {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}], pay: *r}}}`},
	} {
		t.Run(tc.why, func(t *testing.T) {
			manifest, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			config := write(t, t.TempDir(), "config.yaml", configIn(t, manifest))
			cmd := exec.CommandContext(t.Context(), program(t), "rbac", "--name", "tattler.tattler", "-c", config)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			printed, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			less := func(a, b rbacv1.PolicyRule) bool { return a.String() < b.String() }
			if diff := cmp.Diff(standard(rules(t, string(printed))), rules(t, manifest), cmpopts.SortSlices(less)); diff != "" {
				t.Errorf("(-tattler rbac +chart):\n%s", diff)
			}
		})
	}
}

// standard leaves out the rules of the custom resources that other tests define.
func standard(all map[string][]rbacv1.PolicyRule) map[string][]rbacv1.PolicyRule {
	for name, list := range all {
		all[name] = slices.DeleteFunc(list, func(r rbacv1.PolicyRule) bool {
			return len(r.APIGroups) > 0 && slices.ContainsFunc([]string{"gateway.networking.k8s.io", "monitoring.coreos.com", "cert-manager.io"}, func(g string) bool { return r.APIGroups[0] == g })
		})
	}
	return all
}

// configIn returns the configuration in a manifest.
func configIn(t *testing.T, manifest string) string {
	t.Helper()
	c := objects[corev1.ConfigMap](t, manifest, "ConfigMap")["tattler/tattler"]
	if c == nil {
		t.Fatal("the manifest has no ConfigMap tattler")
	}
	return c.Data["config.yaml"]
}

// TestCopies: the chart's copies of files equal their sources, because a chart cannot read files outside of its folder.
func TestCopies(t *testing.T) {
	_, after, _ := strings.Cut(string(read(t, repository+"/deploy/tattler.yaml")), "kind: ClusterRole\nmetadata: {name: tattler}\nrules:\n")
	list, _, _ := strings.Cut(after, "---\n")
	for file, want := range map[string]string{
		"rules.yaml":  "# The rights of the default configuration, as in deploy/tattler.yaml: `go test . -run TestCopies -update` in integration/chart.\n" + list,
		"alerts.yaml": string(read(t, repository+"/deploy/prometheus/alerts.yaml")),
	} {
		file = chartDir + "/files/" + file
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if string(read(t, file)) != want {
			t.Errorf("%s differs from its source (-update writes it)", file)
		}
	}
}
