package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	websetup "github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/incluster"
	"github.com/tattler-dev/tattler/internal/incluster/inclustertest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// forwarding is a node whose kubelet forwards ports, as the API server reaches it, and a pod on it.
type forwarding struct {
	client *kubernetes.Clientset
	ns     string
	mu     sync.Mutex
	paths  []string // of the requests that the API server sent
}

// startForwarding registers the node, the pod and its Service. Connections to the pod's port go to an address.
func startForwarding(t *testing.T, ns, to string, ca []byte) *forwarding {
	t.Helper()
	f := &forwarding{client: clientOf(t, cluster), ns: ns}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.paths = append(f.paths, r.URL.Path)
		f.mu.Unlock()
		inclustertest.Forward(w, r, func(ctx context.Context, port string) (net.Conn, error) {
			if port != "8443" {
				return nil, errors.New("nothing listens on port " + port)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", to)
		})
	}))
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, name := t.Context(), ns+"-node"
	_, err := f.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(err)
	t.Cleanup(func() { _ = f.client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // controllers write it, too
		node, err := f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(s.Listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
		_, err = f.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	}))
	labels := map[string]string{"app.kubernetes.io/name": "tattler", "test": ns}
	awaitAccount(t, f.client, ns) // without it, the pod is refused
	pod, err := f.client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tattler-0", Labels: labels}, Spec: corev1.PodSpec{
		NodeName: name, Containers: []corev1.Container{{Name: "tattler", Image: "tattler", Ports: []corev1.ContainerPort{{Name: "page", ContainerPort: 8443}}}},
	}}, metav1.CreateOptions{})
	must(err)
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := f.client.CoreV1().Pods(ns).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_, err = f.client.CoreV1().Pods(ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}))
	_, err = f.client.CoreV1().Services(ns).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "tattler", Labels: labels}, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Name: "web", Port: 443, TargetPort: intstr.FromString("page")}},
	}}, metav1.CreateOptions{})
	must(err)
	t.Cleanup(func() {
		_ = f.client.CoreV1().Services(ns).Delete(context.Background(), "tattler", metav1.DeleteOptions{})
	})
	_, err = f.client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tattler-ca"}, Data: map[string]string{"ca.crt": string(ca)}}, metav1.CreateOptions{})
	must(err)
	return f
}

// recordConfigMaps writes a journal with a ConfigMap in each namespace.
func recordConfigMaps(t *testing.T, namespaces ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now() // the namespaces are older, otherwise only viewers of the whole cluster would see them
	b := journal.Batch{Stream: journal.Stream{GroupResource: "configmaps"}, Head: journal.Head{Version: "9", At: at}}
	for _, ns := range namespaces {
		b.Rows = append(b.Rows, journal.Row{After: []byte(`{"metadata":{"name":"settings"}}`), Meta: journal.Meta{
			Op: event.Created, Kind: journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
			Namespace: ns, Name: "settings", UID: "uid-" + ns, ResourceVersion: "1", Time: at, At: at,
		}})
	}
	_, err = j.Append(t.Context(), []journal.Batch{b})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInCluster reads a journal through the port-forward of a real API server, which reaches a simulated kubelet. The
// daemon authenticates the viewer by the client certificate, or by a token that the API server issued for the daemon, and
// shows what the viewer may see.
func TestInCluster(t *testing.T) {
	ns := fmt.Sprintf("incluster-%d", time.Now().UnixNano()%1e9) // the control plane is shared
	client := clientOf(t, cluster)
	for _, name := range []string{ns, ns + "-a", ns + "-b"} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, ca, err := inclustertest.Certificate(t.TempDir(), "tattler."+ns+".svc")
	if err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), recordConfigMaps(t, ns+"-a", ns+"-b"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	a, err := websetup.WebAuth(config.Web{
		Address: ":8443", TLS: config.WebTLS{Cert: cert, Key: key}, Tokens: true, Audiences: []string{incluster.Audience}, ClientCA: cluster.CAFile(),
	}, admin, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := clienttest.Handler(access.New(r), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	f := startForwarding(t, ns, l.Addr().String(), pem)
	allowViewer(t, client, ns+"-a")

	for _, tc := range []struct {
		why  string
		o    incluster.Options
		want string
	}{
		{"a client certificate of an administrator", incluster.Options{Service: ns + "/tattler"}, ns + "-a " + ns + "-b"},
		{"the only labelled Service", incluster.Options{}, ns + "-a " + ns + "-b"},
		{"a ServiceAccount that may see one namespace", incluster.Options{Service: ns + "/tattler", Account: ns + "-a/viewer"}, ns + "-a"},
		{"a ServiceAccount without rights", incluster.Options{Service: ns + "/tattler", Account: ns + "-a/default"}, ""},
	} {
		t.Run(tc.why, func(t *testing.T) {
			tc.o.Config = admin
			j, err := incluster.Open(t.Context(), tc.o)
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			for e, err := range j.Rows(t.Context(), journal.Query{OldestFirst: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, after, err := e.Contents(t.Context()); err != nil || !strings.Contains(string(after), "settings") {
					t.Errorf("%s, %v", after, err)
				}
				seen = append(seen, e.Namespace)
			}
			if got := strings.Join(seen, " "); got != tc.want {
				t.Errorf("saw %q, want %q", got, tc.want)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	// spdystream waits for a second for a caller to take the error of a connection that the server closed first.
	for end := time.Now().Add(patience); strings.Contains(stacks(), "spdystream.(*Connection).shutdown") && time.Now().Before(end); {
		pause()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.paths, "/portForward/"+ns+"/tattler-0") {
		t.Errorf("the kubelet forwarded %q", f.paths)
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// allowViewer makes a ServiceAccount viewer that may get the ConfigMaps of its namespace.
func allowViewer(t *testing.T, client *kubernetes.Clientset, ns string) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "viewer"}
	_, err1 := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	_, err2 := client.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	_, err3 := client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "viewer", Namespace: ns}}}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	awaitAccount(t, client, ns)
}

// awaitAccount waits for the default ServiceAccount of a namespace, which a controller makes later.
func awaitAccount(t *testing.T, client *kubernetes.Clientset, ns string) {
	t.Helper()
	for end := time.Now().Add(patience); ; pause() {
		if _, err := client.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no default ServiceAccount")
		}
	}
}
