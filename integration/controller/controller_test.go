package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

// TestRestart: a controller that is killed at any moment resumes from the state of the cluster.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		w.parent(fmt.Sprintf("p%03d", i), "1")
	}
	for round := range 3 {
		p := w.start("-")
		w.eventually(func() error {
			if p.began() < 50 {
				return errors.New("fewer than 50 begun")
			}
			return nil
		})
		p.kill(t)
		for i := range 50 { // while no controller runs
			w.parent(fmt.Sprintf("p%03d", round*50+i), fmt.Sprint("while away ", round))
		}
		name := fmt.Sprintf("p%03d", 199-round)
		if err := w.client.CoreV1().ConfigMaps(w.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// A parent deleted while no controller runs leaves its child, whose owner reference triggers the
		// controller.
	}
	p := w.start("-")
	w.mirrored()
	if err := w.client.CoreV1().ConfigMaps(w.ns).Delete(t.Context(), "p100-child", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mirrored()
	p.stop(t)
}

// TestCreatesTwo: while its watch lags, a controller that creates missing objects by its cache creates them twice,
// unless it awaits its own writes.
func TestCreatesTwo(t *testing.T) {
	for _, await := range []bool{false, true} {
		t.Run(fmt.Sprint("Await ", await), func(t *testing.T) {
			w := newWorld(t)
			w.parent("p", "1")
			watches := &gate{}
			cluster, err := informer.NewCluster(w.behind(watches), informer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			maps, err := informer.For[*corev1.ConfigMap](cluster, informer.InNamespaces(w.ns), informer.WithLabels("role"))
			if err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int32
			c := controller.New("create", func(ctx context.Context, key controller.Key) (controller.Result, error) {
				defer calls.Add(1)
				parent, err := maps.Get(key.Namespace, key.Name)
				if err != nil || parent.Labels["role"] != "parent" {
					return controller.Result{}, controller.IgnoreGone(err)
				}
				again := controller.Result{RequeueAfter: 200 * time.Millisecond}
				for m, err := range maps.List(w.ns, nil) {
					if err != nil || m.Labels["role"] == "child" {
						return again, err
					}
				}
				watches.hold() // what it creates now, its cache does not show
				if await {
					time.AfterFunc(time.Second, watches.release)
				}
				made, err := w.client.CoreV1().ConfigMaps(w.ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					GenerateName: "child-", Labels: map[string]string{"role": "child"},
				}}, metav1.CreateOptions{})
				if err == nil && await {
					err = maps.Await(ctx, made)
				}
				return again, err
			}, controller.Options{}, controller.For(maps, func(c *informer.Change[*corev1.ConfigMap]) (bool, error) {
				return c.Key.Name == "p", nil
			}))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- controller.Run(ctx, cluster, c) }()
			w.eventually(func() error {
				if calls.Load() < 4 {
					return errors.New("too few calls")
				}
				return nil
			})
			cancel()
			watches.release()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			children, err := w.client.CoreV1().ConfigMaps(w.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "role=child"})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(children.Items); n == 0 || n == 1 != await {
				t.Errorf("%d children", n)
			}
		})
	}
}

// behind returns a connection to the API server that holds back watch events while a gate is closed.
func (w *world) behind(g *gate) *rest.Config {
	w.Helper()
	target, err := url.Parse(w.cfg.Host)
	if err != nil {
		w.Fatal(err)
	}
	transport, err := rest.TransportFor(w.cfg)
	if err != nil {
		w.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if watch, _ := strconv.ParseBool(r.Request.URL.Query().Get("watch")); watch {
				r.Body = late{r.Body, r.Request.Context(), g}
			}
			return nil
		},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)
	w.Cleanup(func() {
		g.release()
		server.Close()
	})
	return &rest.Config{Host: server.URL, QPS: -1}
}

// gate is open or closed. Its zero value is open.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil if it is open
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// pass waits until the gate is open, or the context ends.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed == nil {
		return
	}
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// late is a body whose parts pass a gate.
type late struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // of the request
	gate *gate
}

func (l late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.gate.pass(l.ctx)
	return n, err
}

// TestConflicts: concurrent updates of one object lose nothing, since each retries from the current state.
func TestConflicts(t *testing.T) {
	w := newWorld(t)
	w.parent("p", "0")
	maps := w.client.CoreV1().ConfigMaps(w.ns)
	var conflicts atomic.Int32
	var writers, first sync.WaitGroup
	const writes = 100
	first.Add(3)
	for range 3 {
		writers.Go(func() {
			once := sync.OnceFunc(func() { // the first write of each begins with the same version, so that two conflict
				first.Done()
				first.Wait()
			})
			for range writes {
				for done := false; !done; {
					_, err := controller.Update(t.Context(), func(ctx context.Context) (*corev1.ConfigMap, error) {
						m, err := maps.Get(ctx, "p", metav1.GetOptions{})
						once()
						return m, err
					}, func(m *corev1.ConfigMap) (bool, error) {
						n, err := strconv.Atoi(m.Data["value"])
						m.Data["value"] = strconv.Itoa(n + 1)
						return true, err
					}, func(ctx context.Context, m *corev1.ConfigMap) (*corev1.ConfigMap, error) {
						m, err := maps.Update(ctx, m, metav1.UpdateOptions{})
						if err != nil {
							conflicts.Add(1)
						}
						return m, err
					})
					// Five conflicts in a row are an error, after which a controller backs off.
					if done = err == nil; !done && !strings.Contains(err.Error(), "the object has been modified") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	m, err := maps.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Data["value"] != strconv.Itoa(3*writes) {
		t.Errorf("%s updates of %d, with %d conflicts", m.Data["value"], 3*writes, conflicts.Load())
	}
	if conflicts.Load() == 0 {
		t.Error("there was no conflict: nothing was tested")
	}
}

// TestRights: a write without permission fails repeatedly for its key and does not block others; a read without
// permission ends the program.
func TestRights(t *testing.T) {
	w := newWorld(t)
	name := "mirror-" + w.ns
	kubeconfig, err := cluster.UserKubeconfig(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t, kubeconfig)
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	around := func(_ controller.Key, do func()) { do() }
	err = run(ctx, cfg, w.ns, controller.Options{}, around)
	if err == nil || !strings.Contains(err.Error(), `User "`+name+`" cannot list resource "configmaps"`) {
		t.Errorf("without rights: %v", err)
	}
	allow := func(role string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: []rbacv1.Subject{{Kind: "User", Name: name}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		}
		_, err := w.client.RbacV1().Roles(w.ns).Create(t.Context(), r, metav1.CreateOptions{})
		if err == nil {
			_, err = w.client.RbacV1().RoleBindings(w.ns).Create(t.Context(), b, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		probe := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps(w.ns)
		w.eventually(func() error { // the rights take effect a moment later
			_, err := probe.Patch(t.Context(), "b-child", "application/apply-patch+yaml", []byte("{"), metav1.PatchOptions{FieldManager: "m"})
			if strings.Contains(fmt.Sprint(err), "cannot patch") {
				return err
			}
			_, err = probe.List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	maps := func(names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: verbs}
	}
	allow("reads", maps(nil, "list", "watch"), maps([]string{"b-child"}, "patch"), maps(nil, "create"))
	var mu sync.Mutex
	var failed error
	failures := map[string]int{}
	o := controller.Options{MaxBackoff: time.Second, Hooks: controller.Hooks{Reconciled: func(r controller.Reconciled) {
		mu.Lock()
		defer mu.Unlock()
		if r.Err != nil {
			failed = r.Err
		}
		failures[r.Key.Name] = r.Failures
	}}}
	w.parent("a", "1")
	w.parent("b", "1")
	go func() { ran <- run(ctx, cfg, w.ns, o, around) }()
	w.eventually(func() error {
		mu.Lock()
		defer mu.Unlock()
		if b, ok := failures["b"]; !ok || b != 0 || failures["a"] < 5 || !strings.Contains(fmt.Sprint(failed), `cannot patch resource "configmaps"`) {
			return fmt.Errorf("failures: %v, %w", failures, failed)
		}
		return nil
	})
	allow("writes", maps(nil, "patch"))
	w.mirrored()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestOutage: during an outage of the API server failed keys are retried, and changes made then are reconciled
// afterwards.
func TestOutage(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.parent(fmt.Sprintf("p%03d", i), "1")
	}
	p := w.start("-")
	w.mirrored()
	for range 2 {
		for i := range 50 {
			w.parent(fmt.Sprintf("p%03d", i), fmt.Sprint("before ", time.Now().UnixNano()))
		}
		if err := cluster.KillAPIServer(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.mirrored()
	}
	p.stop(t)
}
