package controller

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

// mirror is a controller that maintains a child for each parent, with the parent's value.
type mirror struct {
	parents, children *informer.Informer[*corev1.ConfigMap]
	client            kubernetes.Interface
}

// run runs the controller. around wraps each Reconcile.
func run(ctx context.Context, cfg *rest.Config, ns string, o controller.Options, around func(controller.Key, func())) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	m := &mirror{}
	if m.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if m.parents, err = informer.For[*corev1.ConfigMap](cluster, informer.InNamespaces(ns), informer.WithLabels("role=parent")); err != nil {
		return err
	}
	if m.children, err = informer.For[*corev1.ConfigMap](cluster, informer.InNamespaces(ns), informer.WithLabels("role=child")); err != nil {
		return err
	}
	reconcile := func(ctx context.Context, key controller.Key) (res controller.Result, err error) {
		around(key, func() { res, err = m.reconcile(ctx, key) })
		return res, err
	}
	return controller.Run(ctx, cluster, controller.New("mirror", reconcile, o, controller.For(m.parents), controller.Owned(m.children, m.parents)))
}

func (m *mirror) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	parent, err := m.parents.Get(key.Namespace, key.Name)
	if err != nil {
		if controller.IgnoreGone(err) != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, controller.IgnoreGone(m.client.CoreV1().ConfigMaps(key.Namespace).Delete(ctx, key.Name+"-child", metav1.DeleteOptions{}))
	}
	child, err := m.children.Get(key.Namespace, key.Name+"-child")
	if err == nil && child.Data["value"] == parent.Data["value"] || controller.IgnoreGone(err) != nil {
		return controller.Result{}, err
	}
	written, err := m.client.CoreV1().ConfigMaps(key.Namespace).Apply(ctx, corev1apply.ConfigMap(key.Name+"-child", key.Namespace).
		WithLabels(map[string]string{"role": "child"}).
		WithData(map[string]string{"value": parent.Data["value"]}).
		WithOwnerReferences(metav1apply.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(key.Name).
			WithUID(parent.UID).WithController(true)), metav1.ApplyOptions{FieldManager: "mirror", Force: true})
	if err != nil {
		return controller.Result{}, err
	}
	return controller.Result{}, m.children.Await(ctx, written)
}

// childEnv, if set, makes this program a mirror process: "identity kubeconfig namespace". The identity may be
// "-", for a process without a lease. It prints "begin" and "end", each with the time in nanoseconds and a key.
const childEnv = "TATTLER_MIRROR"

// lease has short intervals to keep the tests short, but a busy machine must be able to renew it in time.
var lease = controller.Lease{Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 500 * time.Millisecond}

func child() error {
	var identity, kubeconfig, ns string
	if _, err := fmt.Sscan(os.Getenv(childEnv), &identity, &kubeconfig, &ns); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	o := controller.Options{Workers: 2}
	if identity != "-" {
		o.Lease = lease
		o.Lock, err = resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, ns, "mirror", resourcelock.ResourceLockConfig{Identity: identity}, cfg, lease.Renew)
		if err != nil {
			return err
		}
	}
	return run(ctx, cfg, ns, o, func(key controller.Key, do func()) {
		fmt.Printf("begin %d %s\n", time.Now().UnixNano(), key.Name)
		do()
		fmt.Printf("end %d %s\n", time.Now().UnixNano(), key.Name)
	})
}

// process is a mirror process.
type process struct {
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	out strings.Builder
}

// step is the begin or the end of a Reconcile.
type step struct {
	what, key string
	at        time.Time
}

func (w *world) start(identity string) *process {
	w.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", childEnv, identity, cluster.Kubeconfig(), w.ns))
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		p.done <- p.cmd.Wait()
		close(ended)
	}()
	w.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-ended
		if w.Failed() {
			w.Logf("%s printed:\n%s", identity, p.text())
		}
	})
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// steps returns the printed steps.
func (p *process) steps() (all []step) {
	for line := range strings.Lines(p.text()) {
		if f := strings.Fields(line); len(f) == 3 && (f[0] == "begin" || f[0] == "end") {
			if nano, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				all = append(all, step{f[0], f[2], time.Unix(0, nano)})
			}
		}
	}
	return all
}

// began returns the number of Reconciles begun.
func (p *process) began() int {
	return len(slices.DeleteFunc(p.steps(), func(s step) bool { return s.what != "begin" }))
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.done <- <-p.done
}

// stop ends the process with SIGTERM; it must exit without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	err := <-p.done
	if p.done <- err; err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
