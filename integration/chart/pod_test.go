package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pod waits for the StatefulSet's pod, which the API server admitted, and which is not one of the given.
func (h *helm) pod(t *testing.T, not ...types.UID) *corev1.Pod {
	t.Helper()
	var p *corev1.Pod
	poll(t, "wait for the pod", func(ctx context.Context) (err error) {
		p, err = h.client.CoreV1().Pods(h.namespace).Get(ctx, releaseName+"-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, uid := range not {
			if p.UID == uid {
				return errors.New("it is still the old one")
			}
		}
		return nil
	})
	return p
}

// kubelet runs the first container of pods as a kubelet and a container runtime do: in a root made of the image's files,
// with the pod's volumes, environment, user and arguments. It differs in one point: all pods share this machine's network,
// so each port is another one on loopback.
type kubelet struct {
	client *kubernetes.Clientset
	dir    string
	image  *image
	ca     []byte           // added to the image's roots
	ports  map[int32]string // the address in place of each port of a container
}

// container makes the container of a pod.
func (k *kubelet) container(t *testing.T, p *corev1.Pod) *container {
	t.Helper()
	spec := p.Spec.Containers[0]
	c := &container{
		Root: k.image.assemble(t, "tattler", k.ca), ReadOnly: *spec.SecurityContext.ReadOnlyRootFilesystem,
		User: int(*p.Spec.SecurityContext.RunAsUser), Group: int(*p.Spec.SecurityContext.RunAsGroup), Groups: []int{int(*p.Spec.SecurityContext.FSGroup)},
		Path: k.image.entrypoint, Args: spec.Args, Env: append([]string{}, k.image.env...),
		kubeconfig: k.kubeconfig(t, p),
	}
	if isolated() { // as the kubelet adds for the Service kubernetes
		host, port, _ := strings.Cut(strings.TrimPrefix(cluster.URL(), "https://"), ":")
		c.Env = append(c.Env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
		c.Mounts = append(c.Mounts, mount{"/proc", "/proc", true}) // as a runtime adds
	}
	for _, e := range spec.Env {
		c.Env = append(c.Env, e.Name+"="+k.value(t, p, e))
	}
	for _, m := range spec.VolumeMounts {
		for i := range p.Spec.Volumes {
			if v := &p.Spec.Volumes[i]; v.Name == m.Name {
				c.Mounts = append(c.Mounts, mount{k.volume(t, p, v), m.MountPath, m.ReadOnly})
			}
		}
	}
	if len(c.Mounts) < len(spec.VolumeMounts) {
		t.Fatalf("the pod has no volumes for some of %v", spec.VolumeMounts)
	}
	return c
}

func (k *kubelet) value(t *testing.T, p *corev1.Pod, e corev1.EnvVar) string {
	t.Helper()
	if e.ValueFrom == nil {
		return e.Value
	}
	ref := e.ValueFrom.SecretKeyRef
	return string(k.secret(t, p, ref.Name).Data[ref.Key])
}

func (k *kubelet) secret(t *testing.T, p *corev1.Pod, name string) *corev1.Secret {
	t.Helper()
	s, err := k.client.CoreV1().Secrets(p.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (k *kubelet) configMap(t *testing.T, p *corev1.Pod, name string) map[string]string {
	t.Helper()
	c, err := k.client.CoreV1().ConfigMaps(p.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Data
}

// volume makes a folder with a volume's content. A claim keeps it.
func (k *kubelet) volume(t *testing.T, p *corev1.Pod, v *corev1.Volume) string {
	t.Helper()
	dir := filepath.Join(k.dir, string(p.UID), v.Name)
	mode := os.FileMode(0o644)
	files := map[string]string{}
	switch {
	case v.PersistentVolumeClaim != nil:
		dir = filepath.Join(k.dir, v.PersistentVolumeClaim.ClaimName)
	case v.EmptyDir != nil:
	case v.ConfigMap != nil:
		files = k.configMap(t, p, v.ConfigMap.Name)
	case v.Secret != nil:
		mode = os.FileMode(*v.Secret.DefaultMode) //nolint:gosec // permissions
		for key, value := range k.secret(t, p, v.Secret.SecretName).Data {
			files[key] = string(value)
		}
		if len(v.Secret.Items) > 0 {
			all := files
			files = map[string]string{}
			for _, i := range v.Secret.Items {
				files[i.Path] = all[i.Key]
			}
		}
	case v.Projected != nil:
		mode = os.FileMode(*v.Projected.DefaultMode) //nolint:gosec // permissions
		for _, s := range v.Projected.Sources {
			switch {
			case s.ServiceAccountToken != nil:
				files[s.ServiceAccountToken.Path] = k.token(t, p, *s.ServiceAccountToken.ExpirationSeconds)
			case s.ConfigMap != nil:
				for key, value := range k.configMap(t, p, s.ConfigMap.Name) {
					files[key] = value
				}
			case s.DownwardAPI != nil:
				files["namespace"] = p.Namespace
			}
		}
	default:
		t.Fatalf("volume %s: this test knows no volume of its kind", v.Name)
	}
	k.fill(t, p, dir, files, mode)
	return dir
}

// fill writes a volume's files. They and the folder belong to the pod's fsGroup.
func (k *kubelet) fill(t *testing.T, p *corev1.Pod, dir string, files map[string]string, mode os.FileMode) {
	t.Helper()
	group := int(*p.Spec.SecurityContext.FSGroup)
	own := func(path string, mode os.FileMode) {
		t.Helper()
		var err error
		if isolated() {
			err = os.Chown(path, 0, group)
		} else {
			mode &^= 0o077
		}
		if err := errors.Join(err, os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the pod's user must read it
		t.Fatal(err)
	}
	own(dir, 0o770|os.ModeSetgid)
	for name, text := range files {
		if name == "config.yaml" {
			for port, address := range k.ports {
				text = strings.ReplaceAll(text, fmt.Sprintf("address: :%d\n", port), fmt.Sprintf("address: %s\n", address))
			}
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		own(file, mode|0o040)
	}
}

// token asks for the token of a pod's ServiceAccount, bound to the pod.
func (k *kubelet) token(t *testing.T, p *corev1.Pod, seconds int64) string {
	t.Helper()
	r, err := k.client.CoreV1().ServiceAccounts(p.Namespace).CreateToken(t.Context(), p.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// kubeconfig returns the ServiceAccount's access for a plain process.
func (k *kubelet) kubeconfig(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.URL(), CertificateAuthority: cluster.CAFile()}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: k.token(t, p, 3600)}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "c"
	file := filepath.Join(k.dir, string(p.UID)+".kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}
