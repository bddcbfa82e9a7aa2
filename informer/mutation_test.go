package informer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// reports collects the reports that would panic.
type reports struct {
	cluster *informer.Cluster
	mu      sync.Mutex
	all     []string
}

func (r *reports) add(report string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, report)
}

// take lets time pass and returns the reports.
func (r *reports) take() string {
	synctest.Wait()
	r.cluster.SyncMutations()
	elapse(3 * time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.all = nil }()
	return strings.Join(r.all, "\n")
}

// elapse lets time pass, in a bubble.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// detecting is bubble for a cluster that looks for mutations.
func detecting(t *testing.T, test func(*testing.T, *informertest.Server, *informer.Cluster, *reports)) {
	t.Helper()
	bubble(t, informer.Options{AuditEvery: -1, DetectMutation: true}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		r := &reports{cluster: c}
		c.SetMutationFailure(r.add)
		test(t, server, c, r)
	})
}

func first[T any](seq func(func(T, error) bool)) (v T, err error) {
	for v, err := range seq {
		return v, err
	}
	return v, informer.ErrNotFound
}

// TestDetectMutation: writing to a shared object is reported, with the path and the readers.
func TestDetectMutation(t *testing.T) {
	type view = informer.Informer[*corev1.Pod]
	label := func(p *corev1.Pod) { p.Labels["app"] = "oops" }
	changed := `metadata.labels["app"] was "one" and is "oops"; `
	for _, tc := range []struct {
		why  string
		do   func(*testing.T, *informertest.Server, *view)
		want string
	}{
		{"a read that writes nothing", func(t *testing.T, _ *informertest.Server, v *view) {
			_, _ = must(v.Get("a", "one"))(t).Labels["app"], must(v.Get("a", "one"))(t).DeepCopy()
		}, ""},
		{"Get", func(t *testing.T, _ *informertest.Server, v *view) { label(must(v.Get("a", "one"))(t)) }, "*v1.Pod a/one (pods): " + changed + "read by Get"},
		{"a list", func(t *testing.T, _ *informertest.Server, v *view) { label(must(first(v.List("b", nil)))(t)) }, "*v1.Pod b/one (pods): " + changed + "read by List"},
		{"an index", func(t *testing.T, _ *informertest.Server, v *view) {
			ix := informer.AddIndex(v, "node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
			synctest.Wait()
			label(must(first(ix.In("b", "node-1")))(t))
		}, changed + `read by index "node"`},
		{"an index's function", func(_ *testing.T, server *informertest.Server, v *view) {
			informer.AddIndex(v, "app", func(p *corev1.Pod) []string { p.Labels["app"] = "oops"; return nil })
		}, changed + `read by index "app"`},
		{"an index's function, of an object that comes in", func(_ *testing.T, server *informertest.Server, v *view) {
			informer.AddIndex(v, "app", func(p *corev1.Pod) []string {
				if p.Name == "new" {
					p.Spec.NodeName = "oops"
				}
				return nil
			})
			synctest.Wait()
			server.Put(pods, "a", "new", podFields("one", "node-1"))
		}, `a/new (pods): spec.nodeName was "node-1" and is "oops"; read by index "app"`},
		{"a subscription", func(t *testing.T, _ *informertest.Server, v *view) {
			s := must(v.Subscribe("controller", informer.SubscribeOptions{}))(t)
			defer s.Stop()
			for {
				c := must(s.Next(t.Context()))(t)
				p := must(c.New())(t)
				if c.Key == (informer.Key{Namespace: "a", Name: "one"}) {
					p.Spec.NodeName = "oops"
					return
				}
			}
		}, `a/one (pods): spec.nodeName was "node-1" and is "oops"; read by subscription "controller"`},
		{"an update handler, to the old object", func(t *testing.T, server *informertest.Server, v *view) {
			s := must(v.Subscribe("handler", informer.SubscribeOptions{SkipInitial: true}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server.Put(pods, "a", "one", podFields("two", "node-2"))
			_ = s.Handle(ctx, informer.Handlers[*corev1.Pod]{OnUpdate: func(old, _ *corev1.Pod) {
				old.Spec.NodeName = "oops"
				cancel()
			}})
		}, `spec.nodeName was "node-1" and is "oops"; read by subscription "handler"`},
		{"all readers", func(t *testing.T, _ *informertest.Server, v *view) {
			p := must(v.Get("a", "one"))(t)
			must(informer.Collect(v.List("a", nil)))(t)
			label(p)
		}, "read by Get, List"},
		{"an object that is no longer cached", func(t *testing.T, server *informertest.Server, v *view) {
			p := must(v.Get("a", "one"))(t)
			server.Delete(pods, "a", "one")
			elapse(time.Minute)
			label(p)
		}, "*v1.Pod a/one (pods): " + changed},
		{"an object of a view that is closed", func(t *testing.T, _ *informertest.Server, v *view) {
			p := must(v.Get("a", "one"))(t)
			v.Close()
			label(p)
		}, "*v1.Pod a/one (pods): " + changed},
		{"an object that was kept for long", func(t *testing.T, _ *informertest.Server, v *view) {
			p := must(v.Get("a", "one"))(t)
			elapse(4 * time.Minute)
			label(p)
		}, changed},
	} {
		for _, storage := range []informer.Storage{informer.CompactStorage, informer.LiveStorage} {
			detecting(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, r *reports) {
				v := must(informer.For[*corev1.Pod](c, informer.WithStorage(storage)))(t).Shared()
				synced(t, c)
				tc.do(t, server, v)
				if got := r.take(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("%s: reported %q, want %q", tc.why, got, tc.want)
				}
			})
		}
	}
}

// TestDetectMutationOfSharedPart: the report names all objects that contain the part.
func TestDetectMutationOfSharedPart(t *testing.T) {
	detecting(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, r *reports) {
		for i := range 8 {
			server.Put(pods, "s", fmt.Sprint("x", i), podFields("same", "node"))
		}
		v := must(informer.For[*corev1.Pod](c))(t).Shared()
		synced(t, c)
		a, b := alike(t, v)
		must(v.Get("s", a.Name))(t).Labels["app"] = "oops"
		got := r.take()
		for _, k := range []informer.Key{a, b} {
			if !strings.Contains(got, k.String()) {
				t.Errorf("%s is not in %q", k, got)
			}
		}
		if !strings.Contains(got, "also modified: *v1.Pod s/x") || !strings.Contains(got, "read by List, Get") {
			t.Errorf("reported %q", got)
		}
	})
}

// TestDetectMutationHidesSecrets: for Secrets only the path is reported, whatever their Go type.
func TestDetectMutationHidesSecrets(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	detecting(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, r *reports) {
		server.Serve(secrets, "Secret")
		server.Put(secrets, "a", "s", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"note": "hunter2"}}, "data": map[string]any{"password": "aHVudGVyMg=="},
		})
		typed := must(informer.For[*corev1.Secret](c))(t).Shared()
		maps := must(informer.Unstructured(c, secrets))(t).Shared()
		metas := must(informer.Metadata(c, secrets))(t).Shared()
		synced(t, c)
		must(typed.Get("a", "s"))(t).Data["password"][0] = 'H'
		a := r.take()
		must(maps.Get("a", "s"))(t).Object["data"].(map[string]any)["password"] = "aHVudGVyMw=="
		b := r.take()
		must(metas.Get("a", "s"))(t).Annotations["note"] = "hunter3"
		all := a + b + r.take()
		for _, want := range []string{`*v1.Secret a/s (secrets): data["password"]; read by Get`, `*unstructured.Unstructured a/s (secrets): data.password; read by Get`,
			`*v1.PartialObjectMetadata a/s (secrets): metadata.annotations["note"]; read by Get`} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is not in %q", want, all)
			}
		}
		if strings.Contains(strings.ToLower(all), "hunter") || strings.Contains(all, "aHV") {
			t.Errorf("a value is in %q", all)
		}
	})
}

// TestDetectMutationOfMaps: unstructured and partial objects.
func TestDetectMutationOfMaps(t *testing.T) {
	detecting(t, func(t *testing.T, _ *informertest.Server, c *informer.Cluster, r *reports) {
		maps := must(informer.Unstructured(c, widgets))(t).Shared()
		metas := must(informer.Metadata(c, widgets))(t).Shared()
		synced(t, c)
		if err := unstructured.SetNestedField(must(maps.Get("a", "one"))(t).Object, "y", "spec", "v"); err != nil {
			t.Fatal(err)
		}
		if got, want := r.take(), `*unstructured.Unstructured a/one (widgets.example.com): spec.v was 1 and is "y"`; !strings.Contains(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
		must(metas.Get("b", "one"))(t).OwnerReferences = []metav1.OwnerReference{{Name: "me"}}
		if got, want := r.take(), `*v1.PartialObjectMetadata b/one (widgets.example.com): metadata.ownerReferences[0] was nothing and is `; !strings.Contains(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
	})
}

// TestDetectMutationAtTheEnd: Run checks once more before it returns.
func TestDetectMutationAtTheEnd(t *testing.T) {
	r := &reports{}
	detecting(t, func(t *testing.T, _ *informertest.Server, c *informer.Cluster, _ *reports) {
		c.SetMutationFailure(r.add)
		v := must(informer.For[*corev1.Pod](c))(t).Shared()
		synced(t, c)
		must(v.Get("a", "one"))(t).Spec.NodeName = "oops"
		c.SyncMutations()
	})
	if len(r.all) != 1 || !strings.Contains(r.all[0], "spec.nodeName") {
		t.Errorf("reported %q", r.all)
	}
}

// TestMutationEndsTheProgram: with client-go's environment variable, in a separate process.
func TestMutationEndsTheProgram(t *testing.T) {
	const child = "TATTLER_TEST_MUTATE"
	if os.Getenv(child) != "" {
		server := informertest.NewServer()
		server.Serve(pods, "Pod")
		server.Put(pods, "a", "one", podFields("one", "node-1"))
		c := must(informer.NewCluster(server.Config(), informer.Options{}))(t)
		v := must(informer.For[*corev1.Pod](c))(t).Shared()
		go func() { _ = c.Run(t.Context()) }()
		synced(t, c)
		must(v.Get("a", "one"))(t).Spec.NodeName = "oops"
		<-time.After(time.Minute)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutationEndsTheProgram$")
	cmd.Env = append(os.Environ(), child+"=1", "KUBE_CACHE_MUTATION_DETECTOR=true")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `panic: informer: a shared object was modified: *v1.Pod a/one (pods): spec.nodeName was "node-1" and is "oops"; read by Get`) {
		t.Errorf("%v: %s", err, out)
	}
}
