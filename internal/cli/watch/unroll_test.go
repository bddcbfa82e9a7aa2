package watch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/quiet"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// unrolled watches a server, and describes the changes that the user sees.
type unrolled struct {
	*testing.T
	server *informertest.Server

	mu    sync.Mutex
	lines []string
}

// unroll runs test in a bubble on the changes of the types. before fills the server.
func unroll(t *testing.T, u unroller, types string, before func(*informertest.Server), test func(*unrolled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &unrolled{T: t, server: informertest.NewServer()}
		for gvr, kind := range map[schema.GroupVersionResource]string{configMaps: "ConfigMap", pods: "Pod", replicaSets: "ReplicaSet", deployments: "Deployment"} {
			r.server.Serve(gvr, kind)
		}
		before(r.server)
		redactor, err := redact.New(redact.NewRandomKey(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := quiet.New()
		if err != nil {
			t.Fatal(err)
		}
		w, err := capture.New(capture.Options{Scopes: []capture.Scope{{Types: []string{types}}}, Config: r.server.Config(), Initial: u.initial, Owned: true, Objects: true, Redactor: redactor, Quiet: rules})
		if err != nil {
			t.Fatal(err)
		}
		go r.read(w, u)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		test(r)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (r *unrolled) read(w *capture.Watcher, u unroller) {
	for m := range w.Messages() {
		switch {
		case m.Problem != nil:
			r.Error(m.Problem)
		case m.Batch != nil:
			for _, c := range u.unroll(time.Now(), m.Batch) {
				line := string(c.Op) + " " + c.Kind.Resource
				if c.Name != "" {
					line += "/" + c.Name
				}
				for _, f := range c.Fields {
					if c.Quiet == f.Quiet {
						line += " " + f.Path.String()
					}
				}
				r.mu.Lock()
				r.lines = append(r.lines, line)
				r.mu.Unlock()
			}
		}
	}
}

func (r *unrolled) put(gvr schema.GroupVersionResource, name string, fields map[string]any) {
	r.server.Put(gvr, "n", name, fields)
}

// want compares the changes since the last call, in order.
func (r *unrolled) want(why string, want ...string) {
	r.Helper()
	synctest.Wait()
	r.mu.Lock()
	got := r.lines
	r.lines = nil
	r.mu.Unlock()
	if d := cmp.Diff(want, got); d != "" {
		r.Errorf("%s (-want +got):\n%s", why, d)
	}
}

// sorted is want for changes of several kinds at the start, which have no order.
func (r *unrolled) sorted() {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.lines)
}

// owned returns a pod or ReplicaSet with a controller.
func owned(kind, name, uid, v string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{map[string]any{"kind": kind, "name": name, "uid": uid, "controller": true}}},
		"spec":     map[string]any{"v": v},
	}
}

func TestOwnedObjects(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(deployments, "n", "web", nil)                                        // uid-1
		s.Put(replicaSets, "n", "web-1", owned("Deployment", "web", "uid-1", "1")) // uid-2
		s.Put(pods, "n", "web-1-a", owned("ReplicaSet", "web-1", "uid-2", "1"))
		s.Put(deployments, "n", "other", nil)                                          // uid-4
		s.Put(replicaSets, "n", "other-1", owned("Deployment", "other", "uid-4", "1")) // uid-5
		s.Put(pods, "n", "other-1-a", owned("ReplicaSet", "other-1", "uid-5", "1"))
		s.Put(pods, "n", "lone", nil)
	}
	for _, initial := range []bool{false, true} {
		unroll(t, unroller{initial: initial}, "deployments/web", before, func(r *unrolled) {
			r.sorted()
			if initial {
				r.want("the start", "snapshot deployments/web", "snapshot pods/web-1-a", "snapshot replicasets/web-1")
			} else {
				r.want("the start")
			}
			r.put(pods, "web-1-a", owned("ReplicaSet", "web-1", "uid-2", "2"))
			r.put(pods, "other-1-a", owned("ReplicaSet", "other-1", "uid-5", "2"))
			r.put(pods, "lone", map[string]any{"spec": map[string]any{"v": "2"}})
			r.want("only its dependents", "updated pods/web-1-a spec.v")
			r.put(pods, "web-2-a", owned("ReplicaSet", "web-2", "uid-8", "1")) // uid-8 itself
			r.want("a pod before its ReplicaSet waits")
		})
	}
}

// TestPodBeforeItsReplicaSet: streams are not ordered relative to each other.
func TestPodBeforeItsReplicaSet(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(deployments, "n", "web", nil) } // uid-1
	pass := func(d time.Duration) {
		<-time.After(d)
		synctest.Wait()
	}
	unroll(t, unroller{}, "deployments/web", before, func(r *unrolled) {
		r.want("the start")
		r.put(pods, "p", owned("ReplicaSet", "web-2", "uid-3", "1")) // uid-2
		r.put(pods, "p", owned("ReplicaSet", "web-2", "uid-3", "2"))
		r.want("its owner is unknown")
		r.put(replicaSets, "web-2", owned("Deployment", "web", "uid-1", "1")) // uid-3
		r.want("the ReplicaSet brings it", "created replicasets/web-2", "created pods/p", "updated pods/p spec.v")
		r.server.Delete(deployments, "n", "web")
		pass(time.Minute)
		r.server.Delete(replicaSets, "n", "web-2")
		pass(time.Minute)
		r.server.Delete(pods, "n", "p")
		r.want("it goes in the same way", "deleted deployments/web", "deleted replicasets/web-2", "deleted pods/p")

		r.put(pods, "late", owned("ReplicaSet", "web-3", "uid-5", "1")) // uid-4
		synctest.Wait()
		pass(ownerPatience)
		r.put(replicaSets, "web-3", owned("Deployment", "web", "uid-1", "1")) // uid-5
		r.want("a change does not wait forever, and the owner is gone")
	})
}

func TestPaths(t *testing.T) {
	data := func(pairs ...string) map[string]any {
		m := map[string]any{}
		for _, p := range pairs {
			k, v, _ := strings.Cut(p, "=")
			m[k] = v
		}
		return map[string]any{"data": m}
	}
	pattern := func(text string) []diff.Pattern {
		p, err := diff.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return []diff.Pattern{p}
	}
	before := func(s *informertest.Server) { s.Put(configMaps, "n", "a", data("k=1")) }
	unroll(t, unroller{paths: change.Paths{Only: pattern("data.k")}}, "configmaps", before, func(r *unrolled) {
		r.want("the start")
		r.put(configMaps, "a", data("k=1", "other=1"))
		r.want("another field")
		r.put(configMaps, "a", data("k=2"))
		r.want("only the field asked for", "updated configmaps/a data.k")
		r.put(configMaps, "b", data("other=1"))
		r.put(configMaps, "c", data("k=1"))
		r.want("a new object that has it", "created configmaps/c")
		r.server.Delete(configMaps, "n", "b")
		r.server.Delete(configMaps, "n", "c")
		r.want("an old one that had it", "deleted configmaps/c")
		r.server.Mute(true)
		r.put(configMaps, "a", data("k=2", "other=2"))
		r.server.Compact()
		r.server.Mute(false)
		<-time.After(time.Second)
		r.want("a gap is always shown", "gap configmaps")
	})
	unroll(t, unroller{paths: change.Paths{Ignore: pattern("data.k")}}, "configmaps", before, func(r *unrolled) {
		r.want("the start")
		r.put(configMaps, "a", data("k=2"))
		r.want("only ignored fields")
		r.put(configMaps, "a", data("k=3", "other=1"))
		r.want("the rest", "updated configmaps/a data.other")
	})
}

// TestUnrollSkips: what is not a change of the user's object is not shown.
func TestUnrollSkips(t *testing.T) {
	version := func(op event.Op, rewritten bool) capture.Version {
		return capture.Version{Change: change.Change{Meta: change.Meta{Op: op, Name: "a", UID: "u"}}, Rewritten: rewritten}
	}
	b := &capture.Batch{Changes: []capture.Version{version("", true), version(event.Converted, false), version(event.Snapshot, false), version(event.Created, false)}}
	u := unroller{}
	if got := u.unroll(time.Now(), b); len(got) != 1 || got[0].Op != event.Created {
		t.Errorf("got %+v", got)
	}
}
