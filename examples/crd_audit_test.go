package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// reportCRDs are as small as they can be, of the kinds that the Kubernetes Policy Working Group defines.
const reportCRDs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: policyreports.wgpolicyk8s.io}
spec:
  group: wgpolicyk8s.io
  scope: Namespaced
  names: {kind: PolicyReport, plural: policyreports, singular: policyreport}
  versions:
    - name: v1alpha2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicyreports.wgpolicyk8s.io}
spec:
  group: wgpolicyk8s.io
  scope: Cluster
  names: {kind: ClusterPolicyReport, plural: clusterpolicyreports, singular: clusterpolicyreport}
  versions:
    - name: v1alpha2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// installing keeps two tests from creating the same CRDs at once.
var installing sync.Mutex

// installReports installs the CRDs of reports, for all tests.
func installReports(t *testing.T) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	kubectl(t, "apply", "-f", manifest(t, reportCRDs))
	kubectl(t, "wait", "--timeout=2m", "--for=condition=Established", "crd/policyreports.wgpolicyk8s.io", "crd/clusterpolicyreports.wgpolicyk8s.io")
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "get", "policyreports,clusterpolicyreports", "-A")
		return err
	})
}

// policies writes policies to a folder, beside the samples.
func policies(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("crd-audit", "policies"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reported waits until the reports of a namespace (empty: of the cluster) about an object say this; empty: it has no report.
func reported(t *testing.T, namespace, object, want string) {
	t.Helper()
	const text = `jsonpath={range .items[*]}{.scope.kind}/{.scope.name}:{range .results[*]} {.policy}: {.message} ({.result});{end}{'\n'}{end}`
	args := []string{"get", "policyreports", "-n", namespace, "-o", text}
	if namespace == "" {
		args = []string{"get", "clusterpolicyreports", "-o", text}
	}
	eventually(t, func() error {
		out, err := cluster.Kubectl(t.Context(), args...)
		if err != nil {
			return err
		}
		got := ""
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, object+":"); ok {
				got += strings.TrimSpace(rest)
			}
		}
		if got != want {
			return fmt.Errorf("reported of %s: %q, want %q", object, got, want)
		}
		return nil
	})
}

// paused makes a Deployment that starts nothing.
func paused(t *testing.T, namespace, name, image string) {
	t.Helper()
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  paused: true
  replicas: 3
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: %q}]}}
`, name, namespace, image)))
}

// visible waits until a process audits a namespace: it prints that of a Deployment which it must find.
func (p *process) visible(t *testing.T, namespace, name string) {
	t.Helper()
	kubectl(t, "label", "namespace", namespace, "bad="+name, "--overwrite")
	p.prints(t, fmt.Sprintf("namespaces %s updated: label.cel: it is bad: %s\n", namespace, name))
}

func TestCRDAudit(t *testing.T) {
	t.Parallel()
	installReports(t)
	may, ns := rights(t, "crd-audit"), namespace(t, "audit")
	group := ns + ".example.com"
	dir := policies(t, map[string]string{
		"label.cel":  fmt.Sprintf(`object.?metadata.?name.orValue("") == %q && object.?metadata.?labels.?bad.hasValue() ? "it is bad: " + object.metadata.labels.bad : ""`, ns),
		"large.cel":  `object.?kind.orValue("") == "Widget" && object.spec.size == 5 ? "it is large" : ""`,
		"broken.cel": `object.kind == "Deployment" && object.nothing.at.all == 1 ? "one" : ""`,
		"broken.rego": `package broken
violations contains text if {
	input.object.kind == "Deployment"
	text := sprintf("%d", [to_number(input.object.kind)])
}`,
		"shrinks.rego": `package shrinks
violations contains text if {
	input.object.kind == "Widget"
	input.object.spec.size < input.old.spec.size
	text := sprintf("it shrank from %d\nto %d", [input.old.spec.size, input.object.spec.size])
}`,
	})
	paused(t, ns, "web", "web:1")
	p := start(t, "crd-audit", may, "--policies", dir, "--report")
	p.prints(t, "a policy failed; further failures on this kind are not logged policy=broken.cel kind=deployments.apps")
	p.prints(t, "policy=broken.rego kind=deployments.apps")
	p.prints(t, "synced, and auditing every change kinds=")

	// A pod, and a pod template: the policy finds the containers of both.
	privileged := `{"spec":{"containers":[{"name":"main","image":"a:1","securityContext":{"privileged":true}}]}}`
	serviceAccount(t, ns)
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"risky","namespace":%q},%s`, ns, privileged[1:])))
	p.prints(t, "pods "+ns+"/risky added: privileged.rego: container main is privileged\n")
	kubectl(t, "create", "cronjob", "risky", "--image=a:1", "--schedule=0 0 1 1 *", "-n", ns)
	kubectl(t, "patch", "cronjob", "risky", "-n", ns, "-p", fmt.Sprintf(`{"spec":{"jobTemplate":{"spec":{"template":%s}}}}`, strings.Replace(privileged, "main", "risky", 1)))
	p.prints(t, "cronjobs.batch "+ns+"/risky updated: privileged.rego: container risky is privileged\n")

	// A transition that Rego forbids stays one until the object is where it may be.
	kubectl(t, "set", "image", "deployment/web", "main=web:latest", "-n", ns)
	const back = "image-latest.rego: the image of container main went back from web:1 to web:latest"
	p.prints(t, "deployments.apps "+ns+"/web updated: "+back+"\n")
	reported(t, ns, "Deployment/web", back+" (fail);")
	// And one that CEL does.
	kubectl(t, "scale", "deployment/web", "--replicas=1", "-n", ns)
	const fell = "replicas.cel: replicas fell from 3 to 1"
	p.prints(t, "deployments.apps "+ns+"/web updated: "+fell+"\n")
	reported(t, ns, "Deployment/web", back+" (fail); "+fell+" (fail);")
	kubectl(t, "set", "image", "deployment/web", "main=web:2", "-n", ns)
	reported(t, ns, "Deployment/web", fell+" (fail);")
	kubectl(t, "scale", "deployment/web", "--replicas=2", "-n", ns)
	reported(t, ns, "Deployment/web", "")

	// A kind that is defined meanwhile, and goes.
	define := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group)
	kubectl(t, "create", "-f", manifest(t, define))
	t.Cleanup(func() { remove(t, "crd", "widgets."+group) })
	p.prints(t, "served kind=widgets."+group)
	kubectl(t, "wait", "--timeout=2m", "--for=condition=Established", "crd/widgets."+group)
	widget := func(size int) string {
		return manifest(t, fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata: {name: w, namespace: %s}\nspec: {size: %d}\n", group, ns, size))
	}
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "create", "-f", widget(5))
		return err
	})
	p.prints(t, "widgets."+group+" "+ns+"/w added: large.cel: it is large\n") // from here on, each change is one of its own
	kubectl(t, "annotate", "widgets."+group, "w", "crd-audit/protected=yes", "-n", ns)
	kubectl(t, "patch", "widgets."+group, "w", "--type=merge", "-p", `{"spec":{"size":3}}`, "-n", ns)
	p.prints(t, "widgets."+group+" "+ns+"/w updated: shrinks.rego: it shrank from 5 to 3\n")
	reported(t, ns, "Widget/w", "shrinks.rego: it shrank from 5 to 3 (fail);")
	kubectl(t, "delete", "crd", "widgets."+group)
	p.prints(t, "widgets."+group+" "+ns+"/w deleted: protected.cel: it was protected, and is deleted\n")
	p.prints(t, "no longer served kind=widgets."+group)
	reported(t, ns, "Widget/w", "")
	kubectl(t, "create", "-f", manifest(t, define))
	eventually(t, func() error {
		if n := strings.Count(p.out.String(), "INFO served kind=widgets."+group); n != 2 {
			return fmt.Errorf("served %d times", n)
		}
		return nil
	})

	// What is in no namespace.
	p.visible(t, ns, "first")
	reported(t, "", "Namespace/"+ns, "label.cel: it is bad: first (fail);")

	// After a restart, what was reported stays, and is not printed again.
	kubectl(t, "set", "image", "deployment/web", "main=web", "-n", ns)
	const again = "image-latest.rego: the image of container main went back from web:2 to web"
	reported(t, ns, "Deployment/web", again+" (fail);")
	p.stop(t)
	p = start(t, "crd-audit", may, "--policies", dir, "--report")
	p.prints(t, "policy=broken.cel kind=deployments.apps")
	p.prints(t, "synced, and auditing every change kinds=") // the label is a change from here on
	p.visible(t, ns, "second")
	kubectl(t, "label", "deployment/web", "a=b", "-n", ns)
	paused(t, ns, "last", "web:1")
	kubectl(t, "scale", "deployment/last", "--replicas=1", "-n", ns)
	p.prints(t, ns+"/last updated: "+fell+"\n") // and so the label was seen
	reported(t, ns, "Deployment/web", again+" (fail);")
	reported(t, "", "Namespace/"+ns, "label.cel: it is bad: second (fail);")
	if strings.Contains(p.out.String(), "went back") || strings.Contains(p.out.String(), "it is bad: first") {
		t.Errorf("what was known is printed again:\n%s", p.out)
	}
	kubectl(t, "set", "image", "deployment/web", "main=web:3", "-n", ns)
	reported(t, ns, "Deployment/web", "")
	kubectl(t, "delete", "deployment", "last", "-n", ns)
	reported(t, ns, "Deployment/last", "")
	p.stop(t)
}

// TestCRDAuditCheckpoint: what changes while nobody runs is a transition.
func TestCRDAuditCheckpoint(t *testing.T) {
	t.Parallel()
	may, ns, dir := rights(t, "crd-audit"), namespace(t, "audit"), t.TempDir()
	paused(t, ns, "web", "web:1")
	args := []string{"--policies", "crd-audit/policies", "--checkpoint", dir}
	away := newLine(t)
	config := away.kubeconfig(t, may) // for both runs: a checkpoint is of one address
	p := start(t, "crd-audit", config, args...)
	saved(t, dir, "deployments.apps", ns, "web")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	kubectl(t, "scale", "deployment/web", "--replicas=1", "-n", ns)
	p = start(t, "crd-audit", config, args...)
	p.prints(t, ns+"/web updated: replicas.cel: replicas fell from 3 to 1\n")

	// Nor is a transition missed while the API server cannot be reached.
	away.cut()
	kubectl(t, "scale", "deployment/web", "--replicas=4", "-n", ns)
	kubectl(t, "scale", "deployment/web", "--replicas=1", "-n", ns)
	away.mend()
	p.prints(t, ns+"/web updated: replicas.cel: replicas fell from 4 to 1\n")
	p.stop(t)
}

// TestCRDAuditRights: kinds that may not be read are logged, and others audited; a report is written once it may be.
func TestCRDAuditRights(t *testing.T) {
	t.Parallel()
	installReports(t)
	ns := namespace(t, "audit")
	reader := user(t, "reader-"+ns)
	kubectl(t, "create", "clusterrole", ns, "--verb=get,list,watch", "--resource=deployments.apps,customresourcedefinitions.apiextensions.k8s.io,apiservices.apiregistration.k8s.io,policyreports.wgpolicyk8s.io,clusterpolicyreports.wgpolicyk8s.io")
	t.Cleanup(func() { remove(t, "clusterrole", ns) })
	kubectl(t, "create", "clusterrolebinding", ns, "--clusterrole="+ns, "--user=reader-"+ns)
	t.Cleanup(func() { remove(t, "clusterrolebinding", ns) })
	lists(t, "reader-"+ns, "", "apps", "deployments")
	dir := policies(t, map[string]string{"all.cel": fmt.Sprintf(`object.?metadata.?namespace.orValue("") == %q ? "it is there" : ""`, ns)})
	paused(t, ns, "web", "web:1")
	p := start(t, "crd-audit", reader, "--policies", dir, "--report")
	p.prints(t, "deployments.apps "+ns+"/web added: all.cel: it is there\n")
	p.prints(t, `resource=pods error="pods is forbidden`)
	p.prints(t, "a report cannot be written, and is tried again")
	kubectl(t, "create", "role", "reports", "--verb=create,patch,delete", "--resource=policyreports.wgpolicyk8s.io", "-n", ns)
	kubectl(t, "create", "rolebinding", "reports", "--role=reports", "--user=reader-"+ns, "-n", ns)
	reported(t, ns, "Deployment/web", "all.cel: it is there (fail);")
	p.stop(t)
}

// TestCRDAuditPolicies: what is wrong with a policy is one line, with its place.
func TestCRDAuditPolicies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ why, name, text, want string }{
		{"no Rego", "a.rego", "package a\n\nviolations contains text if {\n\ttext ==\n}\n", "a.rego:5:1: unexpected } token"},
		{"a variable that has no value", "a.rego", "package a\nviolations contains text if {\n\tinput.old\n}\n", "a.rego:2:21: var text is unsafe"},
		{"no such function", "a.rego", "package a\nviolations contains text if text := nosuch(1)\n", "a.rego:2:37: undefined function nosuch"},
		{"no rule", "a.rego", "package a\nviolation contains \"a\" if true\n", "a.rego:1: it has no rule violations"},
		{"no CEL", "a.cel", "op == \"updated\" &&\n  ) ? \"a\" : \"\"", "a.cel:2:3: "},
		{"no such variable", "a.cel", "// a\nobjekt.kind == \"A\" ? \"a\" : \"\"", "a.cel:2:1: undeclared reference to 'objekt'"},
		{"no text", "a.cel", "op == \"updated\"", "a.cel:1: the expression gives bool; it must give a text"},
		{"no policy", "README.md", "", "has no file that ends with .rego or .cel"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tc.name), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := command("crd-audit", cluster.Kubeconfig(), "--policies", dir)
		if line := fails(t, cmd, 2); !strings.HasPrefix(line, "crd-audit: ") || !strings.Contains(line, tc.want) {
			t.Errorf("%s: %q, want %q", tc.why, line, tc.want)
		}
	}
	for want, args := range map[string][]string{
		"give a folder with policies": nil,
		"no such file":                {"--policies", "/nonexistent"},
	} {
		if line := fails(t, command("crd-audit", cluster.Kubeconfig(), args...), 2); !strings.Contains(line, want) {
			t.Errorf("%v: %q", args, line)
		}
	}
}
