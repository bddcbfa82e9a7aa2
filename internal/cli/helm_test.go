package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// helmSecret is a release as Helm 3 stores it.
//
// Source: newSecretsObject in pkg/storage/driver/secrets.go of helm.sh/helm/v3 v3.19.0.
func helmSecret(release, status, version, payload string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{
			"modifiedAt": "1763894400", "name": release, "owner": "helm", "status": status, "version": version,
		}},
		"type": "helm.sh/release.v1",
		"data": map[string]any{"release": payload},
	}
}

// TestHelm: an upgrade, a failing upgrade, and an uninstallation, described by the labels of the release's Secrets. No value
// of a Secret is shown.
func TestHelm(t *testing.T) {
	home(t)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	s := informertest.NewServer()
	s.Serve(secrets, "Secret")
	const canary = "Y2FuYXJ5LXBheWxvYWQ"
	put := func(release, status, version string) {
		s.Put(secrets, "shop", "sh.helm.release.v1."+release+".v"+version, helmSecret(release, status, version, canary+status+version))
	}
	put("web", "deployed", "1")
	config := kubeconfig(t, serve(t, s.ServeHTTP))
	upgrade := func() {
		put("web", "pending-upgrade", "2")
		put("web", "pending-upgrade", "2") // no difference
		put("web", "superseded", "1")
		put("web", "deployed", "2")
		put("web", "pending-upgrade", "3")
		put("web", "failed", "3")
		put("db", "pending-install", "1")
		put("db", "deployed", "1")
		put("db", "uninstalling", "1")
		s.Delete(secrets, "shop", "sh.helm.release.v1.db.v1")
	}
	record(t, upgrade, "secrets", "--kubeconfig", config)
	record(t, nil, "secrets", "--kubeconfig", config) // everything has arrived
	code, out, err := tattler(t.Context(), "tattler", "log", "secrets", "-n", "shop", "--kubeconfig", config)
	if code != exitDone {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "Z "); ok && text[0] != '!' {
			got = append(got, strings.Join(strings.Fields(text), " "))
		}
	}
	want := []string{
		"+ helm release web: v1 → v2 (pending-upgrade) ?",
		"~ helm release web: v1 (superseded) ?",
		"~ helm release web: v1 → v2 (deployed) ?",
		"+ helm release web: v2 → v3 (pending-upgrade) ?",
		"~ helm release web: v2 → v3 (failed) ?",
		"+ helm release db: v1 (pending-install) ?",
		"~ helm release db: v1 (deployed) ?",
		"~ helm release db: v1 (uninstalling) ?",
		"- helm release db: v1 (uninstalled) ?",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	_, failures, _ := tattler(t.Context(), "tattler", "log", "secrets", "--severity", "failure", "--kubeconfig", config)
	if strings.Count(failures, " ! ") != 1 || strings.Count(failures, "\n") != 2 || !strings.Contains(failures, "helm release web: v2 → v3 (failed)") {
		t.Errorf("failures: %q", failures)
	}
	_, watched, _ := tattler(t.Context(), "tattler", "watch", "secrets", "-n", "shop", "--initial", "--limit", "3", "--kubeconfig", config)
	if !strings.Contains(watched, "= helm release web: v2 (deployed)") || strings.Count(watched, "\n") != 3 {
		t.Errorf("watch: %q", watched)
	}
	_, oneline, _ := tattler(t.Context(), "tattler", "log", "secrets", "-o", "oneline", "--kubeconfig", config)
	if !strings.Contains(oneline, "~ shop     helm release web: v1 → v2 (deployed)") {
		t.Errorf("oneline: %q", oneline)
	}
	for _, text := range []string{out, failures, watched, oneline} {
		if strings.Contains(text, canary) {
			t.Errorf("a value is shown:\n%s", text)
		}
	}
}
