package rbac

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// serve starts an API server with some kinds, and returns a kubeconfig for it.
func serve(t *testing.T) string {
	t.Helper()
	s := informertest.NewServer()
	for name, kind := range map[string]string{
		"/pods": "Pod", "/secrets": "Secret", "/configmaps": "ConfigMap", "/nodes": "Node", "/events": "Event", "/namespaces": "Namespace",
		"apps/deployments": "Deployment", "example.com/widgets": "Widget", "example.com/gadgets": "Gadget",
		"apiextensions.k8s.io/customresourcedefinitions": "CustomResourceDefinition",
	} {
		group, resource, _ := strings.Cut(name, "/")
		gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
		s.Serve(gvr, kind)
		s.Describe(gvr, kind == "Node" || kind == "Namespace" || group == "apiextensions.k8s.io", nil, nil)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod,
		contexts: [{name: prod, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}`, h.URL))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(&terminal.IO{Out: &out, Err: &out}, kinds.Tattler())
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// read decodes what was printed with the API's own types, and returns a line for each rule and binding.
func read(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for _, doc := range strings.Split(text, "---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		switch head.Kind {
		case "ClusterRole", "Role":
			var r rbacv1.ClusterRole // which has all that a Role has
			strict(t, doc, &r)
			for _, x := range r.Rules {
				if len(x.NonResourceURLs) > 0 {
					lines = append(lines, fmt.Sprintf("%s %s/%s: %s %s", head.Kind, r.Namespace, r.Name, strings.Join(x.Verbs, ","), strings.Join(x.NonResourceURLs, " ")))
					continue
				}
				line := fmt.Sprintf("%s %s/%s: %s %s", head.Kind, r.Namespace, r.Name, x.APIGroups, x.Resources)
				if len(x.ResourceNames) > 0 {
					line += " " + fmt.Sprint(x.ResourceNames)
				}
				lines = append(lines, line+" "+strings.Join(x.Verbs, ","))
			}
		case "ClusterRoleBinding", "RoleBinding":
			var b rbacv1.ClusterRoleBinding
			strict(t, doc, &b)
			lines = append(lines, fmt.Sprintf("%s %s/%s: %s %s to %s %s:%s", head.Kind, b.Namespace, b.Name,
				b.RoleRef.Kind, b.RoleRef.Name, b.Subjects[0].Kind, b.Subjects[0].Namespace, b.Subjects[0].Name))
		default:
			t.Fatalf("a %q in\n%s", head.Kind, text)
		}
	}
	return lines
}

func strict(t *testing.T, doc string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
}

func TestRBAC(t *testing.T) {
	kubeconfig := serve(t)
	const all = "get,list,watch"
	bound := []string{"ClusterRoleBinding /tattler: ClusterRole tattler to ServiceAccount tattler:tattler"}
	for _, tc := range []struct {
		why  string
		text string // of a file; empty: flags alone
		args []string
		want []string
	}{
		{"everything but noise, kind by kind; namespaces are read anyhow", "", nil, append([]string{
			"ClusterRole /tattler: [] [configmaps namespaces nodes pods] " + all,
			"ClusterRole /tattler: [] [secrets] " + all,
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] " + all,
			"ClusterRole /tattler: [apps] [deployments] " + all,
			"ClusterRole /tattler: [example.com] [gadgets widgets] " + all,
		}, bound...)},
		{"kinds that come later, without get: it would open pods/exec", "watch:\n- resources: {exclude: [secrets, \"*.example.com\", namespaces]}\n", []string{"--wildcard"}, append([]string{
			"ClusterRole /tattler: [] [configmaps nodes pods] " + all,
			"ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [*] [*] list,watch",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] " + all,
			"ClusterRole /tattler: [apps] [deployments] " + all,
		}, bound...)},
		{"names of kinds in two namespaces: roles there, and no wildcard", "", []string{"pods,deployments,nodes", "-n", "shop,pay", "--wildcard", "--name", "x", "--serviceaccount", "ops:spy"}, []string{
			"ClusterRole /x: [] [nodes] " + all,
			"ClusterRole /x: [] [namespaces] [pay shop] get",
			"ClusterRole /x: [] [namespaces] [kube-system] get",
			"ClusterRoleBinding /x: ClusterRole x to ServiceAccount ops:spy",
			"Role pay/x: [] [pods] " + all, "Role pay/x: [apps] [deployments] " + all,
			"RoleBinding pay/x: Role x to ServiceAccount ops:spy",
			"Role shop/x: [] [pods] " + all, "Role shop/x: [apps] [deployments] " + all,
			"RoleBinding shop/x: Role x to ServiceAccount ops:spy",
		}},
		{"objects by name, and by a selector of one name", "watch:\n- resources: {include: [secrets]}\n  fieldSelector: metadata.name=db\n", nil, append([]string{
			"ClusterRole /tattler: [] [namespaces] [kube-system] get", "ClusterRole /tattler: [] [secrets] [db] " + all,
		}, bound...)},
		{"two names", "", []string{"pods/b", "pod/a"}, append([]string{
			"ClusterRole /tattler: [] [pods] [a b] " + all, "ClusterRole /tattler: [] [namespaces] [kube-system] get",
		}, bound...)},
		{"a glob of a group takes the group", "watch:\n- resources: {include: [\"*.example.com\"]}\n  namespaces: {include: [shop]}\n", nil, append(append([]string{
			"ClusterRole /tattler: [] [namespaces] [shop] get", "ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] list,watch",
		}, bound...), "Role shop/tattler: [example.com] [*] "+all, "RoleBinding shop/tattler: Role tattler to ServiceAccount tattler:tattler")},
		{"a glob of a part of it does not", "watch:\n- resources: {include: [\"wid*.example.com\"]}\n", nil, append([]string{
			"ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] list,watch",
			"ClusterRole /tattler: [example.com] [widgets] " + all,
		}, bound...)},
		{"nor one of a group of Kubernetes, which has pods/exec and its like", "watch:\n- resources: {include: [\"*.apps\", \"*.apiextensions.k8s.io\"]}\n", nil, append([]string{
			"ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] " + all,
			"ClusterRole /tattler: [apps] [deployments] " + all,
		}, bound...)},
		{"nor one of which another element has a part", "watch:\n- resources: {include: [widgets]}\n  namespaces: {include: [shop]}\n- resources: {include: [\"*.example.com\"]}\n", nil, append(append([]string{
			"ClusterRole /tattler: [] [namespaces] [shop] get", "ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] list,watch",
			"ClusterRole /tattler: [example.com] [gadgets] " + all,
		}, bound...), "Role shop/tattler: [example.com] [widgets] "+all, "RoleBinding shop/tattler: Role tattler to ServiceAccount tattler:tattler")},
		{"nor one that leaves out some", "watch:\n- resources: {include: [\"*.example.com\"], exclude: [widgets]}\n", nil, append([]string{
			"ClusterRole /tattler: [] [namespaces] [kube-system] get",
			"ClusterRole /tattler: [apiextensions.k8s.io] [customresourcedefinitions] list,watch",
			"ClusterRole /tattler: [example.com] [gadgets] " + all,
		}, bound...)},
	} {
		t.Run(tc.why, func(t *testing.T) {
			args := append([]string{"--kubeconfig", kubeconfig}, tc.args...)
			if tc.text != "" {
				args = append(args, "-c", write(t, "c.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+tc.text))
			}
			out, err := run(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, read(t, out)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, out)
			}
			for line := range strings.Lines(out) {
				if len(line) > 120 {
					t.Errorf("a line of %d characters: %s", len(line), line)
				}
			}
			if strings.Contains(out, "[secrets]") != strings.Contains(out, "# Secrets: ") {
				t.Errorf("Secrets without a comment, or a comment without Secrets:\n%s", out)
			}
		})
	}
}

func TestWrongUsage(t *testing.T) {
	kubeconfig := serve(t)
	for _, tc := range []struct {
		why, args, want string
		usage           bool
	}{
		{"an invalid role name", "--name A_b", `--name: "A_b" is not a valid role name`, true},
		{"an account without its namespace", "--serviceaccount tattler", `"tattler" is not NAMESPACE:NAME`, true},
		{"one that would end the YAML", "--serviceaccount a:b}", "is not NAMESPACE:NAME", true},
		{"a file and flags", "-c x -A", "leave out TYPE", true},
		{"an unknown kind", "podz", `no resource type "podz"; did you mean "pods"?`, false},
	} {
		_, err := run(t, append([]string{"--kubeconfig", kubeconfig}, strings.Fields(tc.args)...)...)
		var wrong *usage.Error
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &wrong) != tc.usage {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// TestText: what YAML would take for something else is in quotes.
func TestText(t *testing.T) {
	for _, s := range []string{"", "*", "no", "on", "12", "1e3", "null", "true", "a:b", "pods", "x.y.z"} {
		var got []any
		if err := yaml.Unmarshal([]byte(list([]string{s, "pods"})), &got); err != nil || len(got) != 2 || got[0] != s {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
