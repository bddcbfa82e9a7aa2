package chart

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/internal/incluster"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestDaemon installs the chart, runs its pod, and changes everything that a user may change: an upgrade with other
// values, a rollback, and an uninstallation. The journal, the keys and the volume stay, and no change is lost.
func TestDaemon(t *testing.T) {
	h := newHelm(t, "daemon")
	h.class(t, h.namespace)
	h.volume(t, h.namespace, "1Gi")
	ca, cert := authority(t)
	hook := startReceiver(t, cert)
	h.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, StringData: map[string]string{"token": "from-a-secret"}})
	const text = `
web: {enabled: true}
existingSecrets: [hook]
config:
  journal: {retain: {size: 256Mi}}
  sinks:
  - {name: stdout, log: {format: json}}
  - name: hook
    webhook: {url: URL, headers: {Authorization: "Bearer ${file:/etc/tattler/secrets/hook/token}"}}
`
	vals := strings.ReplaceAll(text, "URL", hook.URL)
	first := h.install(t, load(t), vals+"persistence: {storageClass: CLASS, size: 1Gi}\n")
	k := &kubelet{client: h.client, dir: t.TempDir(), image: dockerfile(t), ca: ca, ports: map[int32]string{8080: freeAddress(t), 8443: freeAddress(t)}}
	p := h.pod(t)
	d := k.run(t, p)
	h.configMap(t, "one")
	hook.wait(t, "one", d)
	if got := k.exec(t, d, "status"); !strings.Contains(got, "hook") {
		t.Errorf("tattler status in the container:\n%s", got)
	}
	h.inCluster(t, k.ports[8443])
	checkDashboard(t, d.metrics(t))
	before := h.kept(t)

	// Everything that people change. Of a StatefulSet, most fields are immutable.
	h.upgrade(t, load(t), vals+`
persistence: {storageClass: CLASS, size: 1Gi, annotations: {a: b}}
image: {tag: next}
commonLabels: {team: platform}
podLabels: {a: b}
podAnnotations: {a: b}
resources: {limits: {memory: 600Mi}}
terminationGracePeriodSeconds: 60
service: {webPort: 8443, httpPort: 9090}
rbac: {extraRules: [{apiGroups: [example.com], resources: [widgets], verbs: [list, watch]}]}
env: [{name: A, value: b}]
networkPolicy: {enabled: true}
podDisruptionBudget: {enabled: true}
extraVolumes: [{name: extra, emptyDir: {}}]
extraVolumeMounts: [{name: extra, mountPath: /extra}]
`)
	p = h.pod(t, p.UID)
	if got := p.Spec.Containers[0].Image; !strings.HasSuffix(got, ":next") {
		t.Errorf("the new pod's image is %s", got)
	}
	d.stop(t)
	h.configMap(t, "two") // while no daemon runs
	d = k.run(t, p)
	hook.wait(t, "two", d)
	if got := k.exec(t, d, "log", "configmaps", "-n", h.namespace, "-o", "json"); !strings.Contains(got, `"one"`) || !strings.Contains(got, `"two"`) {
		t.Errorf("the journal lacks changes:\n%s", got)
	}
	h.same(t, before)

	h.rollback(t, first.Version)
	p = h.pod(t, p.UID)
	d.stop(t)
	h.configMap(t, "three")
	d = k.run(t, p)
	hook.wait(t, "three", d)
	h.same(t, before)
	d.stop(t)
	for _, name := range []string{"one", "two", "three"} {
		if n := hook.count(name); n != 1 {
			t.Errorf("%d changes of %s were delivered, want 1", n, name)
		}
	}

	h.uninstall(t)
	h.same(t, without(before, "StatefulSet"))
	h.install(t, load(t), vals+"persistence: {storageClass: CLASS, size: 1Gi}\n")
	// The claim grows. No rollback would shrink it.
	h.upgrade(t, load(t), vals+"persistence: {storageClass: CLASS, size: 2Gi}\n")
	h.same(t, without(before, "StatefulSet"))
}

// TestPrevious upgrades from the first version of the chart, as it was rendered then.
func TestPrevious(t *testing.T) {
	h := newHelm(t, "tattler")
	h.volume(t, "", "3Gi")
	old := &chartv2.Chart{
		Metadata:  &chartv2.Metadata{APIVersion: "v2", Name: "tattler", Version: "0.1.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: []byte(`{{ .Files.Get "all.yaml" }}`)}},
		Files:     []*common.File{{Name: "all.yaml", Data: bytes.ReplaceAll(read(t, "testdata/0.1.0.golden.yaml"), []byte("namespace: tattler"), []byte("namespace: "+h.namespace))}},
	}
	first := h.install(t, old, "")
	p, before := h.pod(t), h.kept(t)
	h.upgrade(t, load(t), given(t, "default")+"podAnnotations: {a: b}\n")
	p = h.pod(t, p.UID)
	h.same(t, before)
	h.rollback(t, first.Version)
	h.pod(t, p.UID)
	h.same(t, before)
}

// class makes a storage class whose volumes can grow.
func (h *helm) class(t *testing.T, name string) {
	t.Helper()
	yes, bind := true, storagev1.VolumeBindingImmediate
	_, err := h.client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/none", AllowVolumeExpansion: &yes, VolumeBindingMode: &bind,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// volume makes a volume for the claim, so that the pod becomes ready: a StatefulSet replaces no other.
func (h *helm) volume(t *testing.T, class, size string) {
	t.Helper()
	_, err := h.client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			ClaimRef:               &corev1.ObjectReference{Namespace: h.namespace, Name: releaseName + "-journal"},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *helm) create(t *testing.T, s *corev1.Secret) {
	t.Helper()
	if _, err := h.client.CoreV1().Secrets(h.namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (h *helm) configMap(t *testing.T, name string) {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1"}}
	if _, err := h.client.CoreV1().ConfigMaps(h.namespace).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kept returns what identifies the objects that must outlive upgrades, and the content of Secrets.
func (h *helm) kept(t *testing.T) map[string]string {
	t.Helper()
	ctx, out := t.Context(), map[string]string{}
	if s, err := h.client.AppsV1().StatefulSets(h.namespace).Get(ctx, releaseName, metav1.GetOptions{}); err == nil {
		out["StatefulSet"] = string(s.UID)
	}
	if c, err := h.client.CoreV1().PersistentVolumeClaims(h.namespace).Get(ctx, releaseName+"-journal", metav1.GetOptions{}); err == nil {
		out["PersistentVolumeClaim"] = string(c.UID)
	}
	for _, name := range []string{"redaction-key", "web-tls"} {
		if s, err := h.client.CoreV1().Secrets(h.namespace).Get(ctx, releaseName+"-"+name, metav1.GetOptions{}); err == nil {
			for key, value := range s.Data {
				out["Secret "+name+" "+key] = string(value)
			}
		}
	}
	return out
}

func without(all map[string]string, key string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// same checks that objects are still the same.
func (h *helm) same(t *testing.T, before map[string]string) {
	t.Helper()
	now := h.kept(t)
	for what, id := range before {
		if now[what] != id {
			t.Errorf("%s is another one: %q, was %q", what, now[what], id)
		}
	}
}

// inCluster reads the journal as tattler log --in-cluster does, as an account that may see ConfigMaps of the namespace. Only
// the port-forward is another.
func (h *helm) inCluster(t *testing.T, page string) {
	t.Helper()
	ctx, name := t.Context(), metav1.ObjectMeta{Name: "viewer"}
	_, err := h.client.CoreV1().ServiceAccounts(h.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.client.RbacV1().Roles(h.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.client.RbacV1().RoleBindings(h.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "viewer", Namespace: h.namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "read the journal in the cluster", func(ctx context.Context) error { // until the rights take effect, and the pod is ready
		j, err := incluster.Open(ctx, incluster.Options{
			Config: restConfig(t), Service: h.namespace + "/" + releaseName, Account: h.namespace + "/viewer",
			Dial: func(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
				if namespace != h.namespace || pod != releaseName+"-0" || port != 8443 {
					t.Errorf("the page is at port %d of %s/%s", port, namespace, pod)
				}
				return (&net.Dialer{}).DialContext(ctx, "tcp", page)
			},
		})
		if err != nil {
			return err
		}
		defer j.Close()
		for e, err := range j.Rows(ctx, journal.Query{}) {
			if err != nil {
				return err
			}
			if e.Kind.Resource != "configmaps" || e.Namespace != h.namespace {
				t.Errorf("the viewer sees %s %s/%s", e.Kind.Resource, e.Namespace, e.Name)
			}
			if e.Name == "one" {
				return nil
			}
		}
		return errNoChange
	})
}

var errNoChange = errors.New("no change of ConfigMap one")
