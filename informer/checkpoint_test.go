package informer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// restart runs a cluster with a checkpoint while f runs. It returns the requests to the server, and the status of
// the pods' stream when it was loaded.
func restart(t *testing.T, server *informertest.Server, dir string, hooks informer.Hooks, f func(*informer.Informer[*corev1.Pod])) (asked []string) {
	t.Helper()
	before := len(server.Requests())
	cluster, err := informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	all := must(informer.For[*corev1.Pod](cluster))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cluster.Run(ctx) }()
	f(all)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	return server.Requests()[before:]
}

func podServer() *informertest.Server {
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	for i := range 20 {
		server.Put(pods, "a", fmt.Sprint("p", i), podFields("x", "node-1"))
	}
	return server
}

// lists returns the requests that read more than one object.
func lists(asked []string) (n int) {
	for _, a := range asked {
		if !strings.Contains(a, "limit=1&") && !strings.HasSuffix(a, "limit=1") && (!strings.Contains(a, "watch=true") || strings.Contains(a, "sendInitialEvents")) && strings.Contains(a, "/pods") && !strings.Contains(a, "/pods/") {
			n++
		}
	}
	return n
}

func TestCheckpoint(t *testing.T) {
	for _, tc := range []struct {
		why   string
		while func(*informertest.Server) // between the two runs
		lists int
		want  string // the changes of a subscriber that starts with the loaded state
	}{
		{"nothing happened", func(*informertest.Server) {}, 0, ""},
		{"changes, one of them a deletion", func(s *informertest.Server) {
			s.Put(pods, "a", "p1", podFields("x", "node-2"))
			s.Delete(pods, "a", "p2")
		}, 0, "updated a/p1 node-1>node-2\ndeleted a/p2 node-1>."},
		{"the newest object went", func(s *informertest.Server) { s.Delete(pods, "a", "p19") }, 0, "deleted a/p19 node-1>."},
		{"the newest object was recreated", func(s *informertest.Server) {
			s.Delete(pods, "a", "p19")
			s.Put(pods, "a", "p19", podFields("x", "node-3"))
		}, 0, "deleted a/p19 node-1>.\nadded a/p19 .>node-3"},
		{"the server no longer has the changes", func(s *informertest.Server) {
			s.Put(pods, "a", "p1", podFields("x", "node-2"))
			s.Delete(pods, "a", "p2")
			s.Skip(5)
			s.Compact()
		}, 1, "updated a/p1 node-1>node-2\ndeleted a/p2 node-1>."},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), t.TempDir()
			first := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(5 * time.Second)
			})
			if lists(first) != 1 {
				t.Errorf("%s: the first run listed %d times", tc.why, lists(first))
			}
			tc.while(server)
			server.SetDown(true)
			again := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().WaitForLoad(t.Context()); err != nil {
					t.Fatal(err)
				}
				if all.Len() != 20 || all.Source().Status()[0].Synced {
					t.Errorf("%s: loaded without a server: %d objects, %+v", tc.why, all.Len(), all.Source().Status())
				}
				s := must(all.Subscribe("skip", informer.SubscribeOptions{SkipInitial: true, FromCheckpoint: true}))(t)
				server.SetDown(false)
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := take(t, s); got != tc.want {
					t.Errorf("%s: got\n%s\nwant\n%s", tc.why, got, tc.want)
				}
				compare(t, tc.why, server, all)
			})
			if lists(again) != tc.lists {
				t.Errorf("%s: %d lists, want %d: %q", tc.why, lists(again), tc.lists, again)
			}
			third := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				compare(t, tc.why+", a third time", server, all)
			})
			if lists(third) != 0 {
				t.Errorf("%s: the third run listed", tc.why)
			}
		})
	}
}

// compare compares the cache with the server.
func compare(t *testing.T, why string, server *informertest.Server, all *informer.Informer[*corev1.Pod]) {
	t.Helper()
	want := server.Objects(pods)
	n := 0
	for p, err := range all.All() {
		if n++; err != nil {
			t.Errorf("%s: %v", why, err)
			continue
		}
		o := want[p.Namespace+"/"+p.Name]
		meta, _ := o["metadata"].(map[string]any)
		if meta["resourceVersion"] != p.ResourceVersion || meta["uid"] != string(p.UID) {
			t.Errorf("%s: %s is at %s, want %v", why, p.Name, p.ResourceVersion, meta)
		}
	}
	if n != len(want) {
		t.Errorf("%s: %d objects, want %d", why, n, len(want))
	}
}

// TestCheckpointOfAnotherHistory: whichever sign reveals the other history, the state converges.
func TestCheckpointOfAnotherHistory(t *testing.T) {
	for _, tc := range []struct {
		why   string
		while func(*informertest.Server, informertest.Snapshot)
	}{
		{"restored, with a lower version", func(s *informertest.Server, old informertest.Snapshot) { s.Restore(old) }},
		{"restored, and overtaken: the newest object is not there", func(s *informertest.Server, old informertest.Snapshot) {
			s.Restore(old)
			s.Skip(1000)
		}},
		{"restored, overtaken, and the newest object recreated under its name", func(s *informertest.Server, old informertest.Snapshot) {
			s.Restore(old)
			s.Skip(1000)
			s.Put(pods, "a", "late", podFields("x", "node-7"))
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), t.TempDir()
			old := server.Snapshot()
			restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				server.Put(pods, "a", "p3", podFields("x", "node-5"))
				server.Put(pods, "a", "late", podFields("x", "node-6"))
				<-time.After(5 * time.Second)
			})
			tc.while(server, old)
			restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				compare(t, tc.why, server, all)
			})
		})
	}
}

// TestCheckpointFails: an unusable checkpoint is reported, and a list replaces it.
func TestCheckpointFails(t *testing.T) {
	damage := func(t *testing.T, dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatal("no files", err)
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && len(b) > 200 {
				b[len(b)/3] ^= 0x40
				if err := os.WriteFile(f, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, tc := range []struct {
		why     string
		prepare func(*testing.T, string)
		text    string
		lasting bool
	}{
		{"damaged in the middle", damage, "damaged", false},
		{"a file in place of the directory", func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "not a directory", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), filepath.Join(t.TempDir(), "state")
			run := func(hooks informer.Hooks) {
				restart(t, server, dir, hooks, func(all *informer.Informer[*corev1.Pod]) {
					if err := all.Source().Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
					<-time.After(5 * time.Second)
					compare(t, tc.why, server, all)
					if st := all.Source().Status()[0]; hooks.Checkpoint != nil && (st.Checkpoint != nil) != tc.lasting {
						t.Errorf("%s: in the end %v", tc.why, st.Checkpoint)
					}
				})
			}
			run(informer.Hooks{})
			tc.prepare(t, dir)
			var reported []string
			run(informer.Hooks{Checkpoint: func(_ informer.Stream, err error) { reported = append(reported, err.Error()) }})
			if len(reported) != 1 || !strings.Contains(reported[0], tc.text) {
				t.Errorf("%s: reported %q", tc.why, reported)
			}
		})
	}
}

// TestCheckpointLocked: a second process works without a checkpoint.
func TestCheckpointLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Source().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			var reported []string
			hooks := informer.Hooks{Checkpoint: func(_ informer.Stream, err error) { reported = append(reported, err.Error()) }}
			restart(t, server, dir, hooks, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if len(reported) != 1 || !strings.Contains(reported[0], "is locked by process") {
				t.Errorf("reported %q", reported)
			}
		})
	})
}

// TestCheckpointHeals: whatever someone removes, the status says that there is no checkpoint, and a current one is soon
// written.
func TestCheckpointHeals(t *testing.T) {
	const file = "pods*.checkpoint"
	remove := func(t *testing.T, dir, pattern string) string {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, f := range files {
			if err := os.RemoveAll(f); err != nil {
				t.Fatal(err)
			}
		}
		return files[0]
	}
	for _, tc := range []struct {
		why    string
		damage func(t *testing.T, dir string)
	}{
		{"the file is removed", func(t *testing.T, dir string) { remove(t, dir, file) }},
		{"another file is put in its place", func(t *testing.T, dir string) {
			if err := os.WriteFile(remove(t, dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"all files are removed", func(t *testing.T, dir string) { remove(t, dir, "*") }},
		{"the directory is removed", func(t *testing.T, dir string) { remove(t, filepath.Dir(dir), filepath.Base(dir)) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), filepath.Join(t.TempDir(), "state")
			var reported []string
			hooks := informer.Hooks{Checkpoint: func(_ informer.Stream, err error) { reported = append(reported, err.Error()) }}
			restart(t, server, dir, hooks, func(all *informer.Informer[*corev1.Pod]) {
				<-time.After(time.Minute)
				tc.damage(t, dir)
				<-time.After(time.Minute)
				if len(reported) != 1 || !strings.Contains(reported[0], "the file was removed") {
					t.Errorf("%s: reported %q", tc.why, reported)
				}
				if err := all.Source().Status()[0].Checkpoint; err != nil {
					t.Errorf("%s: it has not healed: %v", tc.why, err)
				}
			})
			again := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
			if lists(again) != 0 {
				t.Errorf("%s: the next run listed", tc.why)
			}
		})
	}
}

// TestCheckpointTakenOver: a process that starts before the one that it replaces has ended, as in a rolling update, has the
// checkpoint afterwards.
func TestCheckpointTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		endOld, oldEnded := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(oldEnded)
			restart(t, server, dir, informer.Hooks{}, func(*informer.Informer[*corev1.Pod]) { <-endOld })
		}()
		<-time.After(time.Minute)
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			<-time.After(time.Minute)
			if err := all.Source().Status()[0].Checkpoint; err == nil || !strings.Contains(err.Error(), "is locked by process") {
				t.Errorf("while another process has it: %v", err)
			}
			close(endOld)
			<-oldEnded
			server.Put(pods, "a", "p1", podFields("x", "node-2"))
			<-time.After(30 * time.Second)
			if err := all.Source().Status()[0].Checkpoint; err != nil {
				t.Errorf("it was not taken over: %v", err)
			}
		})
		again := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			compare(t, "after the take-over", server, all)
		})
		if lists(again) != 0 {
			t.Errorf("the next run listed: %q", again)
		}
	})
}

// TestCheckpointOfClosedSource: of two equal sources, the second one has the checkpoint once the first one is closed.
func TestCheckpointOfClosedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		cluster := must(informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir}))(t)
		first := must(cluster.Source(pods, informer.SourceOptions{}))(t)
		second := must(cluster.Source(pods, informer.SourceOptions{}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cluster.Run(ctx) }()
		<-time.After(time.Minute)
		if err := second.Status()[0].Checkpoint; err == nil || !strings.Contains(err.Error(), "an earlier source") {
			t.Errorf("while the first is open: %v", err)
		}
		first.Close()
		<-time.After(time.Minute)
		if err := second.Status()[0].Checkpoint; err != nil {
			t.Errorf("after that: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNoSecretsOnDisk: a checkpoint contains neither Secrets nor sources with a Keep function.
func TestNoSecretsOnDisk(t *testing.T) {
	secrets := pods
	secrets.Resource = "secrets"
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		server.Serve(secrets, "Secret")
		server.Put(secrets, "a", "s", map[string]any{"data": map[string]any{"k": "Q0FOQVJZ"}})
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			<-time.After(5 * time.Second)
		})
		cluster, err := informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir})
		if err != nil {
			t.Fatal(err)
		}
		must(informer.For[*corev1.Secret](cluster))(t)
		must(cluster.Source(pods, informer.SourceOptions{Selection: informer.Selection{Keep: func(string, string) bool { return true }}}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cluster.Run(ctx) }()
		synced(t, cluster)
		<-time.After(5 * time.Second)
		cancel()
		<-done
		files, err := filepath.Glob(filepath.Join(dir, "*pods*"))
		if err != nil || len(files) != 1 {
			t.Errorf("files of pods: %q %v", files, err)
		}
		if all, _ := filepath.Glob(filepath.Join(dir, "*secret*")); len(all) != 0 {
			t.Errorf("secrets are on disk: %q", all)
		}
	})
}
