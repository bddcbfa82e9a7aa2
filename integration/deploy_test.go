package integration

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/devcluster"
)

const (
	deployFile  = repository + "/deploy/tattler.yaml"
	rightsBegin = "# rights: begin"
	rightsEnd   = "# rights: end\n"
)

// deploy applies deploy/tattler.yaml. Its rights must equal the output of `tattler rbac` for its configuration,
// its pod must be admitted under restricted Pod Security, and the daemon runs as its service account with its
// configuration.
func (r *rights) deploy(ctx context.Context, t *testing.T) {
	text := string(readFile(t, deployFile))
	before, rest, _ := strings.Cut(text, rightsBegin)
	marker, rest, _ := strings.Cut(rest, "\n")
	written, after, found := strings.Cut(rest, rightsEnd)
	if !found {
		t.Fatalf("%s has no part between %q and %q", deployFile, rightsBegin, rightsEnd)
	}
	config := r.write(t, "deploy.yaml", configIn(t, text))
	printed, err := r.tattler(ctx, t, r.cluster.Kubeconfig(), "rbac", "-c", config)
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, printed)
	case *update:
		text = before + rightsBegin + marker + "\n" + printed + rightsEnd + after
		if err := os.WriteFile(deployFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	case printed != written:
		t.Errorf("the rights in %s differ from the output of tattler rbac (-update writes it):\n%s", deployFile, printed)
	}
	path, err := filepath.Abs(deployFile)
	if err != nil {
		t.Fatal(err)
	}
	r.kubectl(ctx, t, "apply", "-f", path)
	r.admitted(ctx, t)
	r.asDeployed(ctx, t, configIn(t, text))
}

// configIn returns the configuration in the manifest's ConfigMap: a block indented by four.
func configIn(t *testing.T, manifest string) string {
	t.Helper()
	_, block, found := strings.Cut(manifest, "  config.yaml: |\n")
	if !found {
		t.Fatal("the manifest has no configuration")
	}
	block, _, _ = strings.Cut(block, "\n---\n")
	var b strings.Builder
	for line := range strings.Lines(block + "\n") {
		b.WriteString(strings.TrimPrefix(line, "    "))
	}
	return b.String()
}

// admitted creates the pod of the StatefulSet, and one that must be refused.
func (r *rights) admitted(ctx context.Context, t *testing.T) {
	t.Helper()
	set, err := r.client.AppsV1().StatefulSets("tattler").Get(ctx, "tattler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name = "tattler-0"
	for _, claim := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-tattler-0"},
		}})
	}
	pods := r.client.CoreV1().Pods("tattler")
	if _, err := pods.Create(ctx, pod.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Errorf("the pod is not admitted: %v", err)
	}
	pod.Name, pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = "tattler-1", nil
	for deadline := time.Now().Add(patience); ; pause() { // admission learns of the namespace's labels by a watch
		_, err := pods.Create(ctx, pod.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PodSecurity") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Pod Security is not enforced: %v", err)
		}
	}
}

// asDeployed runs the daemon as the service account with the deployed configuration, except for paths and the
// port.
func (r *rights) asDeployed(ctx context.Context, t *testing.T, config string) {
	t.Helper()
	kubeconfig := r.token(ctx, t, "tattler", "tattler")
	address := freeAddress(t)
	for old, place := range map[string]string{
		"/var/lib/tattler/journal/":      r.dir + "/deployed/",
		"/etc/tattler/key/redaction.key": r.write(t, "redaction.key", base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"),
		`":8080"`:                        fmt.Sprintf("%q", address),
	} {
		if !strings.Contains(config, old) {
			t.Errorf("the configuration has no %s", old)
		}
		config = strings.ReplaceAll(config, old, place)
	}
	file := r.write(t, "deployed.yaml", config)
	r.granted(ctx, t, kubeconfig, file)
	d := r.daemon(ctx, t, kubeconfig, file)
	d.wait(t, d.err, `"msg":"recording"`)
	r.ready(t, address)
	r.kubectl(ctx, t, "create", "configmap", "deployed", "-n", "default", "--from-literal=a=1")
	d.wait(t, d.out, `"name":"deployed"`)
	d.interrupt(t)
	log := silence.ReplaceAllString(d.read(t, d.err), "")
	if strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("it complains:\n%s", log)
	}
	if strings.Contains(log, "secrets") {
		t.Errorf("Secrets are not excluded:\n%s", log)
	}
}

// ready waits until the probes of the pod succeed.
func (r *rights) ready(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/healthz", "/readyz"} {
		for deadline := time.Now().Add(patience); ; pause() {
			said := ""
			resp, err := client.Get("http://" + address + path)
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					break
				}
				said = string(body)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v, %s", path, err, said)
			}
		}
	}
}

// freeAddress returns an unused local address. No connection of another process is given its port meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := devcluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}

// TestDockerfile compares the image with the manifest and go.mod.
func TestDockerfile(t *testing.T) {
	text := string(readFile(t, repository+"/Dockerfile"))
	f, err := modfile.Parse("go.mod", readFile(t, repository+"/go.mod"), nil)
	if err != nil {
		t.Fatal(err)
	}
	build, image, found := strings.Cut(text, "\nFROM scratch\n")
	if !found {
		t.Fatal("the image is not made from scratch")
	}
	for _, want := range []string{"FROM --platform=$BUILDPLATFORM golang:" + strings.Join(strings.Split(f.Go.Version, ".")[:2], ".") + " ", "CGO_ENABLED=0 ", " -o /out/tattler ./cmd/$PROGRAM\n"} {
		if !strings.Contains(build, want) {
			t.Errorf("the build has no %q", want)
		}
	}
	for _, want := range []string{"/etc/ssl/certs/ca-certificates.crt", "COPY --from=build /out/tattler /tattler\n", "\nUSER 65532:65532\n", "\nENTRYPOINT [\"/tattler\"]"} {
		if !strings.Contains(image, want) {
			t.Errorf("the image has no %q", want)
		}
	}
	if manifest := string(readFile(t, deployFile)); !strings.Contains(manifest, "runAsUser: 65532\n") || !strings.Contains(manifest, "fsGroup: 65532\n") {
		t.Error("the manifest and the image have different users")
	}
}
