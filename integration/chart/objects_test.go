package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// definitions are custom resource definitions that the chart's objects need, in modules of their projects.
var definitions = []struct{ module, dir, names string }{
	{"sigs.k8s.io/gateway-api@v1.6.0", "config/crd/standard", "gateway.networking.k8s.io_{httproutes,backendtlspolicies}.yaml"},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd", "monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml"},
	{"github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds", "cert-manager.io_{certificates}.yaml"},
}

// define applies the definitions, from the module cache.
func define(t *testing.T) {
	t.Helper()
	args := []string{"apply", "--server-side"}
	var names []string
	for _, d := range definitions {
		dir := moduleDir(t, d.module)
		before, rest, _ := strings.Cut(d.names, "{")
		list, after, _ := strings.Cut(rest, "}")
		for name := range strings.SplitSeq(list, ",") {
			args = append(args, "-f", filepath.Join(dir, d.dir, before+name+after))
			names = append(names, "crd/"+name+"."+strings.TrimSuffix(before, "_"))
		}
	}
	kubectl(t, args...)
	t.Cleanup(func() { // the rights of other tests do not include them
		if _, err := cluster.Kubectl(context.Background(), append([]string{"delete", "--timeout=5m"}, names...)...); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names { // the API server announces a kind some time after it has accepted it
		poll(t, "find the kind of "+name, func(ctx context.Context) error {
			_, err := cluster.Kubectl(ctx, "get", strings.TrimPrefix(name, "crd/"), "--all-namespaces")
			return err
		})
	}
}

// moduleDir returns the folder of a module in the module cache.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // the module is not a dependency of this one
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jerr := json.Unmarshal(out, &got); err != nil || jerr != nil || got.Dir == "" {
		t.Fatalf("download %s: %v %v %s\n%s", module, err, jerr, got.Error, stderr.Bytes())
	}
	return got.Dir
}

// TestObjects creates every object that the chart can render. The API server validates fields strictly, and admits the
// pod under restricted Pod Security.
func TestObjects(t *testing.T) {
	define(t)
	for _, name := range []string{"full", "default"} {
		t.Run(name, func(t *testing.T) {
			h := newHelm(t, "objects-"+name)
			r := h.install(t, load(t), given(t, name))
			dir := t.TempDir()
			file := write(t, dir, "manifest.yaml", r.Manifest)
			kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-n", h.namespace, "-f", file)
			got := kubectl(t, "get", "-n", h.namespace, "-f", file, "-o", "name")
			t.Logf("%s: %s", name, strings.Join(strings.Fields(got), " "))
			if want := strings.Count("\n"+r.Manifest, "\nkind: "); len(strings.Fields(got)) != want {
				t.Errorf("%d objects, want %d:\n%s", len(strings.Fields(got)), want, got)
			}
			h.pod(t)
		})
	}
}
