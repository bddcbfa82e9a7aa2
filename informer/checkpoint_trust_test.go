package informer_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
)

// checkpointed runs a cluster with a checkpoint while f runs.
func checkpointed(t *testing.T, cfg *rest.Config, dir string, f func(*informer.Cluster)) {
	t.Helper()
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cluster.Run(ctx) }()
	f(cluster)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// saved waits until the sources are synced and their state is on disk.
func saved(t *testing.T, c *informer.Cluster) {
	t.Helper()
	synced(t, c)
	<-time.After(5 * time.Second)
}

func files(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func hiding(name string, version int) informer.Option {
	return func(o *informer.ViewOptions) {
		o.Transform = informer.TransformOf(name, version, func(p *corev1.Pod) error {
			if version > 1 {
				p.Spec.NodeName = "hidden"
			}
			return nil
		})
	}
}

// TestUntrustedCheckpoint: a state kept under other options, or from another server, is not served; the server's state
// is, once it answers.
func TestUntrustedCheckpoint(t *testing.T) {
	for _, tc := range []struct {
		why  string
		now  informer.Option
		host string
		node string
	}{
		{"the transform hides more", hiding("hide", 2), "", "hidden"},
		{"another server", hiding("hide", 1), "http://other.invalid", "node-1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), t.TempDir()
			checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
				must(informer.For[*corev1.Pod](c, hiding("hide", 1)))(t)
				saved(t, c)
			})
			if files(t, dir) != 1 {
				t.Fatalf("%s: nothing was saved", tc.why)
			}
			cfg := server.Config()
			if tc.host != "" {
				cfg.Host = tc.host
			}
			server.SetDown(true)
			checkpointed(t, cfg, dir, func(c *informer.Cluster) {
				all := must(informer.For[*corev1.Pod](c, tc.now))(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := all.Source().WaitForLoad(ctx); !errors.Is(err, context.DeadlineExceeded) || all.Len() != 0 {
					t.Errorf("%s: %d objects are served: %v", tc.why, all.Len(), err)
				}
				server.SetDown(false)
				saved(t, c)
				if p, err := all.Get("a", "p1"); err != nil || p.Spec.NodeName != tc.node {
					t.Errorf("%s: %+v", tc.why, p)
				}
			})
			server.SetDown(true)
			checkpointed(t, cfg, dir, func(c *informer.Cluster) {
				all := must(informer.For[*corev1.Pod](c, tc.now))(t)
				if err := all.Source().WaitForLoad(t.Context()); err != nil || all.Len() != 20 {
					t.Errorf("%s: the saved state is served: %d objects, %v", tc.why, all.Len(), err)
				}
			})
		})
	}
}

// TestCheckpointNeedsANamedTransform: unnamed transforms of two runs cannot be compared.
func TestCheckpointNeedsANamedTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
			must(informer.For[*corev1.Pod](c, hiding("", 1)))(t)
			saved(t, c)
		})
		if files(t, dir) != 0 {
			t.Error("it was saved")
		}
	})
}

// TestParkedBeforeVerified: until a loaded state is verified, a list does not trust it either.
func TestParkedBeforeVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		old := server.Snapshot()
		server.Put(pods, "a", "p1", podFields("x", "node-2"))
		checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
			must(informer.For[*corev1.Pod](c))(t)
			saved(t, c)
		})
		server.Restore(old) // after this, the same version has other content
		server.Put(pods, "a", "p1", podFields("x", "node-3"))
		server.Skip(1000)
		server.Unserve(pods)
		checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
			all := must(informer.For[*corev1.Pod](c))(t)
			<-time.After(10 * time.Second)
			synctest.Wait()
			if st := all.Source().Status()[0]; st.State != informer.Parked || !st.Loaded || st.Synced {
				t.Fatalf("status: %+v", st)
			}
			server.Serve(pods, "Pod")
			must(feed.Join(all.Source(), "retries", 0))(t).Retry("v1")
			synced(t, c)
			if p, err := all.Get("a", "p1"); err != nil || p.Spec.NodeName != "node-3" {
				t.Errorf("the state of the other history is kept: %+v", p)
			}
		})
	})
}

// TestCheckpointOfAClosedSource: the next source waits until the closed one has written, and continues its checkpoint.
func TestCheckpointOfAClosedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
			first := must(informer.For[*corev1.Pod](c))(t)
			saved(t, c)
			for range 5 {
				first.Close()
				first = must(informer.For[*corev1.Pod](c))(t)
				if err := first.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if st := first.Source().Status()[0]; st.Checkpoint != nil {
					t.Fatalf("it has none: %v", st.Checkpoint)
				}
			}
		})
		if n := lists(server.Requests()); n != 1 {
			t.Errorf("%d lists, want 1", n)
		}
	})
}

// TestCheckpointOfEqualSources: of sources with equal options, the first one has the checkpoint, and the others report
// that; sources that keep other bytes have separate ones.
func TestCheckpointOfEqualSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
			first := must(informer.For[*corev1.Pod](c))(t)
			equal := must(informer.For[*corev1.Pod](c, informer.WithStorage(informer.LiveStorage)))(t)
			other := must(informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) { o.DropManagedFields = true }))(t)
			hides := must(informer.For[*corev1.Pod](c, hiding("hide", 2)))(t)
			saved(t, c)
			for _, i := range []*informer.Informer[*corev1.Pod]{first, other, hides} {
				if err := i.Source().Status()[0].Checkpoint; err != nil {
					t.Errorf("it has none: %v", err)
				}
			}
			if err := equal.Source().Status()[0].Checkpoint; err == nil || !strings.Contains(err.Error(), "NoCheckpoint") {
				t.Errorf("the equal source says: %v", err)
			}
			if n := files(t, dir); n != 3 {
				t.Errorf("%d files, want 3", n)
			}
		})
	})
}

// TestIdentityIsRequestedAgain: one failed request for the identity does not cost the checkpoint.
func TestIdentityIsRequestedAgain(t *testing.T) {
	for _, tc := range []struct {
		code   int32
		reason metav1.StatusReason
	}{
		{http.StatusInternalServerError, metav1.StatusReasonInternalError},
		{http.StatusUnauthorized, metav1.StatusReasonUnauthorized}, // an old token
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), t.TempDir()
			asked := 0
			server.Intercept(refuse(tc.code, tc.reason, nil, func(r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/kube-system") {
					return false
				}
				asked++
				return asked == 1
			}))
			checkpointed(t, server.Config(), dir, func(c *informer.Cluster) {
				all := must(informer.For[*corev1.Pod](c))(t)
				saved(t, c)
				if err := all.Source().Status()[0].Checkpoint; err == nil {
					t.Errorf("%d: the missing identity is not reported", tc.code)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if err := all.Source().Status()[0].Checkpoint; err != nil || files(t, dir) != 1 || asked != 2 {
					t.Errorf("%d: %d files after %d questions: %v", tc.code, files(t, dir), asked, err)
				}
			})
		})
	}
}

// TestCheckpointIsPassedOn: a view that is opened while another goroutine closes the last equal one takes over the
// checkpoint, and closing the other before its first write is not a failure.
func TestCheckpointIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		var reported []error
		hooks := informer.Hooks{Checkpoint: func(_ informer.Stream, err error) { reported = append(reported, err) }}
		c := must(informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir, Hooks: hooks}))(t)
		first := must(informer.For[*corev1.Pod](c))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		if err := first.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		rest := first.Source().CloseSlowly()
		second := must(informer.For[*corev1.Pod](c))(t)
		rest()
		if err := second.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		if err := second.Source().Status()[0].Checkpoint; err != nil || len(reported) > 0 {
			t.Errorf("the checkpoint: %v; reported %v", err, reported)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*pods*")); err != nil || len(files) != 1 {
			t.Errorf("files %q, %v", files, err)
		}
	})
}
