package examples

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// refused makes a change that must be refused for a reason.
func refused(t *testing.T, why string, args ...string) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), args...); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%v: %s, %v; want an error with %q", args, out, err, why)
	}
}

// inForce waits until a change would be refused for a reason: the API server learns of a registration by a watch.
func inForce(t *testing.T, why string, args ...string) {
	t.Helper()
	eventually(t, func() error {
		if out, err := cluster.Kubectl(t.Context(), append(args, "--dry-run=server")...); err == nil || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("%v: %s, %w; want an error with %q", args, out, err, why)
		}
		return nil
	})
}

// TestImageGate registers the gate on the real API server, which there can be one of: it does not run in parallel.
func TestImageGate(t *testing.T) {
	ns := namespace(t, "gate")
	may := rights(t, "image-gate")
	t.Cleanup(func() { remove(t, "validatingwebhookconfiguration", "image-gate") })
	args := []string{"--configmap", ns + "/images", "--listen", "127.0.0.1:0", "--label", ns}
	p := start(t, "image-gate", may, args...)
	p.prints(t, "registered, and serving")

	labelled := manifest(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: %s, labels: {%[1]s: web}}
spec:
  replicas: 0
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "old:1"}]}}
`, ns))
	denied := `admission webhook "image-gate.tattler.dev" denied the request: `
	inForce(t, denied+"there is no ConfigMap "+ns+"/images", "create", "-f", labelled)
	refused(t, denied+"there is no ConfigMap "+ns+"/images", "create", "-f", labelled)
	deployment(t, ns, "free", "other: label")
	kubectl(t, "create", "configmap", "images", "--from-literal=other=x:1", "-n", ns)
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "create", "-f", labelled, "--dry-run=server")
		if err == nil || !strings.Contains(err.Error(), `has no key "web"`) {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	configMap(t, ns, "new:1")
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "create", "-f", labelled)
		return err
	})
	configMap(t, ns, "")
	eventually(t, func() error {
		if _, err := cluster.Kubectl(t.Context(), "set", "image", "deployment/a", "main=x:2", "-n", ns, "--dry-run=server"); err == nil {
			return fmt.Errorf("a new image passes, although the source has none")
		}
		return nil
	})
	refused(t, denied, "set", "image", "deployment/a", "main=x:2", "-n", ns)
	kubectl(t, "scale", "deployment/a", "--replicas=1", "-n", ns)
	kubectl(t, "annotate", "deployment/a", "a=b", "-n", ns)
	refused(t, denied+`the ConfigMap `+ns+`/images has no key "shop"`, "label", "--overwrite", "deployment/a", ns+"=shop", "-n", ns)
	refused(t, denied, "label", "deployment/free", ns+"=shop", "-n", ns)

	address := regexp.MustCompile(`https://(\S+)`).FindStringSubmatch(p.out.String())[1]
	taken := fails(t, command("image-gate", may, "--image", "a", "--listen", address), 1)
	if !strings.Contains(taken, "address already in use") || !strings.Contains(taken, "--listen") {
		t.Error(taken)
	}
	every := fails(t, command("image-gate", may, "--image", "a", "--listen", ":0"), 2)
	if !strings.Contains(every, "--host") {
		t.Error(every)
	}
	reader := user(t, "reader-"+ns)
	kubectl(t, "create", "rolebinding", "reads", "--clusterrole=view", "--user=reader-"+ns, "-n", ns)
	refuses := fails(t, command("image-gate", reader, args...), 1)
	if !strings.Contains(refuses, "register the webhook: ") || !strings.Contains(refuses, "manifest.yaml") {
		t.Error(refuses)
	}
	p.stop(t)

	// While it is away: what carries the label is refused, all else is not. A restart has another port and certificate.
	refused(t, "failed calling webhook", "set", "image", "deployment/a", "main=x:2", "-n", ns)
	kubectl(t, "set", "image", "deployment/free", "main=x:2", "-n", ns)
	configMap(t, ns, "new:2")
	p = start(t, "image-gate", may, args...)
	p.prints(t, "registered, and serving")
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "set", "image", "deployment/a", "main=x:3", "-n", ns)
		return err
	})
	kubectl(t, "delete", "deployment", "a", "-n", ns)
	p.stop(t)

	// A source that does not answer.
	var code atomic.Int32
	code.Store(http.StatusInternalServerError)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code.Load()))
		fmt.Fprint(w, "new:3")
	}))
	t.Cleanup(source.Close)
	p = start(t, "image-gate", may, "--url", source.URL, "--listen", "127.0.0.1:0", "--label", ns)
	p.prints(t, "registered, and serving")
	inForce(t, denied+"the source of images does not answer", "create", "-f", labelled)
	refused(t, denied+"the source of images does not answer", "create", "-f", labelled)
	code.Store(http.StatusOK)
	kubectl(t, "create", "-f", labelled)
	p.stop(t)
}
