package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/informer/kinds"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	otherEvents = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	metrics     = schema.GroupVersionResource{Group: "metrics.example.com", Version: "v1", Resource: "figures"}
)

// rig is a server and a loop over its kinds, in a synctest bubble.
type rig struct {
	*testing.T
	server  *informertest.Server
	cluster *informer.Cluster
	cancel  context.CancelFunc // of the loop
	ended   chan error         // the loop's result

	mu   sync.Mutex
	text []string
	logs strings.Builder
}

func scenario(t *testing.T, before func(*informertest.Server), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, server: informertest.NewServer(), ended: make(chan error, 1)}
		for gvr, name := range map[schema.GroupVersionResource]string{pods: "Pod", crds: "CustomResourceDefinition", apiServices: "APIService"} {
			r.server.Serve(gvr, name)
		}
		if before != nil {
			before(r.server)
		}
		var err error
		if r.cluster, err = informer.NewCluster(r.server.Config(), informer.Options{AuditEvery: -1}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- r.cluster.Run(ctx) }()
		looping, cancel := context.WithCancel(t.Context())
		r.cancel = cancel
		go r.loop(looping)
		test(r)
		cancel()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func (r *rig) loop(ctx context.Context) {
	log := slog.New(slog.NewTextHandler(writer{r}, nil))
	for c, err := range kinds.Changes(ctx, r.cluster, kinds.Options{Log: log}) {
		if err != nil {
			r.ended <- err
			return
		}
		line := "+"
		if c.Gone {
			line = "-"
		}
		line += c.String() + "/" + c.Resource.Version
		if c.Initial {
			line += "*"
		}
		r.mu.Lock()
		r.text = append(r.text, line)
		r.mu.Unlock()
	}
}

// writer receives the log.
type writer struct{ *rig }

func (w writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.Write(p)
}

// want compares the changes reported within some time.
func (r *rig) want(why string, within time.Duration, want ...string) {
	r.Helper()
	<-time.After(within)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.text, want) {
		r.Errorf("%s: reported %q, want %q", why, r.text, want)
	}
	r.text = nil
}

// logged compares the lines logged since the last call.
func (r *rig) logged(want ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(r.logs.String(), "\n"), "\n")
	r.logs.Reset()
	if len(lines) != len(want) {
		r.Fatalf("logged %q, want %q", lines, want)
	}
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			r.Errorf("logged %q, want %q", lines[i], text)
		}
	}
}

// define puts the CRD of a kind in some versions.
func define(s *informertest.Server, gr schema.GroupResource, versions ...string) {
	var list []any
	for _, v := range versions {
		list = append(list, map[string]any{"name": v, "served": true, "schema": map[string]any{"large": "text"}})
	}
	s.Put(crds, "", gr.String(), map[string]any{
		"spec": map[string]any{"group": gr.Group, "versions": append(list, map[string]any{"name": "v0", "served": false})},
		"status": map[string]any{
			"acceptedNames": map[string]any{"plural": gr.Resource},
			"conditions":    []any{map[string]any{"type": "Established", "status": "True"}},
		},
	})
}

// register puts the APIService of a group and version.
func register(s *informertest.Server, gv schema.GroupVersion) {
	s.Put(apiServices, "", gv.Version+"."+gv.Group, map[string]any{"spec": map[string]any{"group": gv.Group, "version": gv.Version}})
}

var atFirst = []string{"+pods/v1*", "+customresourcedefinitions.apiextensions.k8s.io/v1*", "+apiservices.apiregistration.k8s.io/v1*"}

func TestChanges(t *testing.T) {
	scenario(t, func(s *informertest.Server) {
		s.Serve(events, "Event")
		s.Serve(otherEvents, "Event")
		s.Serve(nodes, "Node")
		s.Describe(nodes, true, nil, nil)
	}, func(r *rig) {
		r.want("all kinds, in the server's order, and Events once", 0, "+events/v1*", "+nodes/v1*", "+pods/v1*",
			"+customresourcedefinitions.apiextensions.k8s.io/v1*", "+apiservices.apiregistration.k8s.io/v1*")
		r.want("and nothing else", time.Hour)

		define(r.server, widgets.GroupResource(), "v1")
		r.want("a CRD that is not served yet", 300*time.Millisecond)
		r.server.Serve(widgets, "Widget")
		r.want("it is served a little later", time.Second, "+widgets.example.com/v1")
		r.server.Delete(crds, "", widgets.GroupResource().String())
		r.want("a CRD that is deleted, and still served", 300*time.Millisecond)
		r.server.Unserve(widgets)
		r.want("and then no longer", time.Second, "-widgets.example.com/v1")

		r.server.Serve(metrics, "Figure")
		r.want("an aggregated API that changes unnoticed", time.Minute, "+figures.metrics.example.com/v1")
		r.logged("")
	})
}

// TestBurst: many changes cause few reads and do not delay them.
func TestBurst(t *testing.T) {
	scenario(t, nil, func(r *rig) {
		r.want("at first", time.Minute, atFirst...)
		r.server.Serve(widgets, "Widget")
		before := reads(r.server)
		for i := range 100 {
			define(r.server, schema.GroupResource{Group: "example.com", Resource: fmt.Sprintf("k%d", i)})
			<-time.After(10 * time.Millisecond)
		}
		r.want("while there are changes", 0, "+widgets.example.com/v1")
		if n := reads(r.server) - before; n < 3 || n > 10 {
			t.Errorf("%d reads of discovery", n)
		}
	})
}

func reads(s *informertest.Server) int {
	n := 0
	for _, q := range s.Recorded() {
		if q.Path == "/apis" {
			n++
		}
	}
	return n
}

// TestAway: an unreadable kind is not gone.
func TestAway(t *testing.T) {
	widget := func(s *informertest.Server) { s.Serve(widgets, "Widget"); define(s, widgets.GroupResource(), "v1") }
	for _, tc := range []struct {
		why        string
		spoil      func(*informertest.Server) (repair func())
		with       func(*informertest.Server)
		gone, logs []string
	}{
		{
			why: "an API group does not answer", with: widget,
			spoil: func(s *informertest.Server) func() {
				s.SetStale("example.com", true)
				s.Delete(crds, "", widgets.GroupResource().String())
				return func() { s.SetStale("example.com", false) }
			},
			logs: []string{"example.com/v1", "can be read again"},
		},
		{
			why: "the API server is down", with: widget,
			spoil: func(s *informertest.Server) func() {
				s.SetDown(true)
				return func() { s.SetDown(false) }
			},
			logs: []string{"connection refused", "can be read again"},
		},
		{
			why: "the API server answers nonsense to discovery", with: widget,
			spoil: func(s *informertest.Server) func() {
				s.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
					if q.URL.Path == "/api" || q.URL.Path == "/apis" {
						http.NotFound(w, q)
						return true
					}
					return false
				})
				return func() { s.Intercept(nil) }
			},
			logs: []string{"read discovery: ", "can be read again"},
		},
		{
			why: "discovery does not have the kind, but its CRD is established", with: widget,
			spoil: func(s *informertest.Server) func() {
				s.Unserve(widgets)
				return func() { s.Serve(widgets, "Widget") }
			},
		},
		{
			why: "discovery does not have the version, and there is an APIService", with: func(s *informertest.Server) {
				s.Serve(widgets, "Widget")
				register(s, widgets.GroupVersion())
			},
			spoil: func(s *informertest.Server) func() {
				s.Unserve(widgets)
				return func() { s.Delete(apiServices, "", "v1.example.com") }
			},
			gone: []string{"-widgets.example.com/v1"},
		},
		{
			why: "discovery has the version without the kind", with: func(s *informertest.Server) {
				s.Serve(widgets, "Widget")
				s.Serve(gadgets, "Gadget")
				register(s, widgets.GroupVersion())
			},
			spoil: func(s *informertest.Server) func() { return func() { s.Unserve(widgets) } },
			gone:  []string{"-widgets.example.com/v1"},
		},
	} {
		t.Run(tc.why, func(t *testing.T) {
			scenario(t, tc.with, func(r *rig) {
				<-time.After(time.Minute)
				synctest.Wait()
				r.text = nil
				repair := tc.spoil(r.server)
				r.want("broken", 10*time.Minute)
				repair()
				r.want("repaired", 2*time.Minute, tc.gone...)
				if tc.logs == nil {
					tc.logs = []string{""}
				}
				r.logged(tc.logs...)
			})
		})
	}
}

// TestLateServer: the loop begins when the server answers.
func TestLateServer(t *testing.T) {
	scenario(t, func(s *informertest.Server) { s.SetDown(true) }, func(r *rig) {
		r.want("down", time.Hour)
		r.server.SetDown(false)
		r.want("up", 2*time.Minute, atFirst...)
	})
}

// TestVersions: a kind keeps its version while that is served.
func TestVersions(t *testing.T) {
	beta := widgets.GroupResource().WithVersion("v1beta1")
	scenario(t, func(s *informertest.Server) {
		s.Serve(beta, "Widget")
		define(s, beta.GroupResource(), "v1beta1")
	}, func(r *rig) {
		<-time.After(time.Minute)
		synctest.Wait()
		r.text = nil
		r.server.Serve(widgets, "Widget")
		define(r.server, beta.GroupResource(), "v1", "v1beta1")
		r.want("a better version", time.Minute)
		r.server.Unserve(beta)
		r.want("its CRD serves the old one", time.Minute)
		define(r.server, beta.GroupResource(), "v1")
		r.want("and then no longer", time.Second, "-widgets.example.com/v1beta1", "+widgets.example.com/v1")
		r.server.Serve(gadgets.GroupResource().WithVersion("v1beta1"), "Gadget")
		r.want("a kind without a CRD", time.Minute, "+gadgets.example.com/v1beta1")
		r.server.Serve(gadgets, "Gadget")
		r.want("a better version of that", time.Minute)
		r.server.Unserve(gadgets.GroupResource().WithVersion("v1beta1"))
		r.want("which is the only one", time.Minute, "-gadgets.example.com/v1beta1", "+gadgets.example.com/v1")
		r.server.Describe(widgets, true, nil, nil)
		r.want("it is recreated as cluster-scoped", time.Minute, "-widgets.example.com/v1", "+widgets.example.com/v1")
	})
}

func TestEnds(t *testing.T) {
	refuse := func(path string, code int32) func(*informertest.Server) {
		return func(s *informertest.Server) {
			s.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.HasPrefix(q.URL.Path, path) {
					return false
				}
				if code == http.StatusNotFound {
					w.Header().Set("Audit-Id", "a")
					http.NotFound(w, q)
				} else {
					informertest.Refuse(w, code, "Forbidden", "no")
				}
				return true
			})
		}
	}
	for _, tc := range []struct {
		why    string
		before func(*informertest.Server)
		end    func(*rig)
		is     func(error) bool
	}{
		{"no right to CRDs", refuse("/apis/apiextensions.k8s.io/", 403), nil, apierrors.IsForbidden},
		{"no right to APIServices", refuse("/apis/apiregistration.k8s.io/", 403), nil, apierrors.IsForbidden},
		{"the context", nil, func(r *rig) { r.cancel() }, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(tc.why, func(t *testing.T) {
			scenario(t, tc.before, func(r *rig) {
				if tc.end != nil {
					r.want("at first", 0, atFirst...)
					tc.end(r)
				}
				if err := <-r.ended; !tc.is(err) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
	t.Run("no aggregation", func(t *testing.T) {
		scenario(t, refuse("/apis/apiregistration.k8s.io/", 404), func(r *rig) {
			r.want("at first", time.Minute, atFirst...)
		})
	})
}

// TestClosed: the loop ends with the cluster.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(crds, "CustomResourceDefinition")
		server.Serve(apiServices, "APIService")
		cluster, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- cluster.Run(ctx) }()
		defer stop()
		n := 0
		for _, err = range kinds.Changes(t.Context(), cluster, kinds.Options{}) {
			if n++; n == 2 {
				stop()
			}
		}
		if !errors.Is(err, informer.ErrClosed) || n != 3 {
			t.Errorf("%d pairs, the last one with %v", n, err)
		}
		for _, err = range kinds.Changes(t.Context(), cluster, kinds.Options{}) {
			if !errors.Is(err, informer.ErrClosed) {
				t.Errorf("List of a closed cluster: %v", err)
			}
		}
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// TestLeft: leaving a loop leaves no goroutine behind.
func TestLeft(t *testing.T) {
	scenario(t, nil, func(r *rig) {
		for c, err := range kinds.Changes(r.Context(), r.cluster, kinds.Options{}) {
			if err != nil || c.Name != "Pod" || !c.Namespaced {
				t.Errorf("the first one is %+v, %v", c, err)
			}
			break
		}
		r.want("the other loop", 0, atFirst...)
	})
}

func TestList(t *testing.T) {
	server := informertest.NewServer()
	cluster, err := informer.NewCluster(server.Config(), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := kinds.List(t.Context(), cluster); err == nil || !strings.Contains(err.Error(), "none of its API groups") {
		t.Errorf("List of an empty server: %v, %v", all, err)
	}
	server.Serve(pods, "Pod")
	server.Serve(widgets, "Widget")
	server.Serve(widgets.GroupResource().WithVersion("v1beta1"), "Widget")
	server.Describe(widgets, true, nil, nil)
	want := []kinds.Kind{{Resource: pods, Name: "Pod", Namespaced: true}, {Resource: widgets, Name: "Widget"}}
	if all, err := kinds.List(t.Context(), cluster); err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v; want %v", all, err, want)
	}
	server.SetStale("example.com", true)
	all, err := kinds.List(t.Context(), cluster)
	if failed := new(discovery.ErrGroupDiscoveryFailed); !errors.As(err, &failed) || !slices.Equal(all, want[:1]) {
		t.Errorf("%v, %v; want %v and an error", all, err, want[:1])
	}
	server.SetDown(true)
	if _, err := kinds.List(t.Context(), cluster); err == nil {
		t.Error("List of an unreachable server: no error")
	}
}
