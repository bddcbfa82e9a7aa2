package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSameName installs two releases of one name in two namespaces, with everything that lies outside of them. Each has its
// own rights, which survive the end of the other release.
func TestSameName(t *testing.T) {
	shared := newHelm(t, "shared").namespace
	text := strings.ReplaceAll(`
web: {enabled: true}
persistence: {enabled: false}
dashboards: {enabled: true, namespace: SHARED}
rbac: {namespaceRules: {SHARED: [{apiGroups: [""], resources: [secrets], verbs: [list]}]}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]}
`, "SHARED", shared)
	first, second := newHelm(t, "first"), newHelm(t, "second")
	first.install(t, load(t), text)
	second.install(t, load(t), text)
	check := func(h *helm, want bool) {
		t.Helper()
		for _, a := range []authorizationv1.ResourceAttributes{
			{Verb: "list", Resource: "configmaps"},
			{Verb: "list", Resource: "secrets", Namespace: shared},
			{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
		} {
			h.may(t, a, want)
		}
		h.may(t, authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}, false)
		name := h.namespace + "." + releaseName
		for _, role := range []string{name, name + "-status", name + "-sinks"} {
			if _, err := h.client.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{}); (err == nil) != want {
				t.Errorf("ClusterRole %s: %v, want %t", role, err, want)
			}
		}
		if _, err := h.client.CoreV1().ConfigMaps(shared).Get(t.Context(), name+"-dashboard", metav1.GetOptions{}); (err == nil) != want {
			t.Errorf("the dashboard of %s: %v, want %t", h.namespace, err, want)
		}
	}
	check(first, true)
	check(second, true)
	first.uninstall(t)
	check(first, false)
	check(second, true)
}

// may waits until the release's account has a right, or lacks it: the authorizer learns of roles by a watch.
func (h *helm) may(t *testing.T, a authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	poll(t, fmt.Sprintf("the rights of %s", h.namespace), func(ctx context.Context) error {
		review, err := h.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + h.namespace + ":" + releaseName, ResourceAttributes: &a},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("%+v: allowed is %t, want %t", a, review.Status.Allowed, want)
		}
		return err
	})
}

// TestConfigurationChange upgrades with another configuration: another checksum replaces the pod. An upgrade that changes
// nothing keeps it.
func TestConfigurationChange(t *testing.T) {
	h := newHelm(t, "checksum")
	const text, checksum = "persistence: {enabled: false}\n", "checksum/config"
	h.install(t, load(t), text)
	first := h.pod(t)
	if first.Annotations[checksum] == "" {
		t.Fatalf("the pod's annotations: %v", first.Annotations)
	}
	h.upgrade(t, load(t), text+"commonLabels: {team: platform}\n")
	if got := h.template(t)[checksum]; got != first.Annotations[checksum] {
		t.Errorf("the checksum is %s, was %s, with the same configuration", got, first.Annotations[checksum])
	}
	h.upgrade(t, load(t), text+"config: {log: {level: debug}}\n")
	second := h.pod(t, first.UID)
	if got := second.Annotations[checksum]; got == first.Annotations[checksum] || got != h.template(t)[checksum] {
		t.Errorf("the checksum is %s, was %s, with another configuration", got, first.Annotations[checksum])
	}
	c, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(t.Context(), releaseName, metav1.GetOptions{})
	if err != nil || !strings.Contains(c.Data["config.yaml"], "level: debug") {
		t.Errorf("%v\n%v", err, c.Data)
	}
}

// template returns the annotations of the pods that the StatefulSet makes.
func (h *helm) template(t *testing.T) map[string]string {
	t.Helper()
	s, err := h.client.AppsV1().StatefulSets(h.namespace).Get(t.Context(), releaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Spec.Template.Annotations
}

// TestExistingCertificate: the page has the certificate of a Secret as cert-manager makes it, and the chart makes none.
// Clients find its CA in the ConfigMap.
func TestExistingCertificate(t *testing.T) {
	h := newHelm(t, "certificate")
	ca, cert := authority(t)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	h.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "issued"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"ca.crt":  ca,
	}})
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", "\n    ")
	h.install(t, load(t), "persistence: {enabled: false}\nweb:\n  enabled: true\n  tls:\n   existingSecret: issued\n   ca: |\n"+indented+"\n")
	if _, err := h.client.CoreV1().Secrets(h.namespace).Get(t.Context(), releaseName+"-web-tls", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the chart made a certificate: %v", err)
	}
	c, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(t.Context(), releaseName+"-ca", metav1.GetOptions{})
	if err != nil || !bytes.Equal(bytes.TrimSpace([]byte(c.Data["ca.crt"])), bytes.TrimSpace(ca)) {
		t.Errorf("the ConfigMap with the CA: %v %v", err, c.Data)
	}

	k := &kubelet{client: h.client, dir: t.TempDir(), image: dockerfile(t), ca: ca, ports: map[int32]string{8080: freeAddress(t), 8443: freeAddress(t)}}
	d := k.run(t, h.pod(t))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.Data["ca.crt"]))
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(t.Context(), "tcp", k.ports[8443])
	if err != nil {
		t.Fatalf("%v\n%s", err, d.err.String())
	}
	defer conn.Close()
	if got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]; !bytes.Equal(got.Raw, cert.Certificate[0]) {
		t.Errorf("the page has another certificate: %s", got.Subject)
	}
	d.stop(t)
}

// TestImageTag: the chart's default image is the one that make image publishes from the tag of the chart's version.
func TestImageTag(t *testing.T) {
	c := load(t)
	version := "v" + c.Metadata.Version
	if c.Metadata.AppVersion != version {
		t.Errorf("appVersion is %s, and the version's tag %s", c.Metadata.AppVersion, version)
	}
	dir := t.TempDir()
	write(t, dir, "Makefile", string(read(t, repository+"/Makefile")))
	for name, text := range map[string]string{
		"tools/image.sh": string(read(t, repository+"/tools/image.sh")),
		// A builder that remembers what it should build.
		"bin/podman": "#!/bin/sh\necho \"$@\" >>built\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // it must be executable
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"git", "init", "-q"},
		{"git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "a"},
		{"git", "tag", version},
		{"make", "image"},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...) //nolint:gosec // the commands above
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "TOOL=podman", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	manifest, err := render(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(manifest, "image: \"")
	image, _, _ := strings.Cut(after, "\"")
	built := string(read(t, filepath.Join(dir, "built")))
	if image == "" || !strings.Contains(built, "--manifest "+image+" ") {
		t.Errorf("the chart's image is %q, and make image builds:\n%s", image, built)
	}
}
