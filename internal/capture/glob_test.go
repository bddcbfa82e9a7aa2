package capture

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestGlobs: the first scope with a matching glob takes a kind that appears.
func TestGlobs(t *testing.T) {
	o := Options{Scopes: []Scope{
		{Types: []string{"secrets,*.Example.com"}, Namespaces: selection.Namespaces{Include: []string{"shop"}}},
		{Types: []string{"deploy*,repl*.apps,nodes"}, Except: []string{"node*"}},
	}}
	scenario(t, o, func(s *informertest.Server) { s.Put(nsGVR, "", "shop", nil) }, func(r *rig) {
		r.want("a glob that nothing matches waits", "ready: 3 kinds, 0 objects, unmatched *.example.com")
		r.server.Put(podsGVR, "shop", "p", nil)
		r.server.Put(nodeGVR, "", "n", nil)
		r.server.Put(deployGVR, "shop", "d", nil)
		r.server.Put(rsGVR, "shop", "r", nil)
		r.server.Put(secretGVR, "other", "s", nil)
		r.want("only kinds that the globs match", "created deployments/d", "created replicasets/r")
		define(r.server)
		r.server.Put(widgetsGVR, "shop", "a", nil)
		r.server.Put(widgetsGVR, "other", "b", nil)
		r.pass(5 * time.Second)
		r.want("a kind that appears, as its scope wants it", "created widgets/a")
	})
}

// TestNamesNeedNoDiscovery: if kinds are named, kinds that appear later are not wanted.
func TestNamesNeedNoDiscovery(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"pods"}}}}, nil, func(r *rig) {
		r.want("the start", "ready: 1 kinds, 0 objects")
		for _, uri := range r.server.Requests() {
			if strings.Contains(uri, "customresourcedefinitions") {
				r.Errorf("asked %s", uri)
			}
		}
	})
}

// TestFirstScopeDecides: a kind that one scope leaves out as noise is left to the scopes after it.
func TestFirstScopeDecides(t *testing.T) {
	o := Options{Scopes: []Scope{
		{Types: []string{"*"}, Except: []string{"configmaps"}, Labels: "app=web"},
		{Types: []string{"events,configmaps,pods"}},
	}}
	scenario(t, o, nil, func(r *rig) {
		r.want("the start", "ready: 9 kinds, 0 objects")
		r.server.Put(podsGVR, "n", "p", nil)
		r.server.Put(eventGVR, "n", "e", nil)
		r.server.Put(cmGVR, "n", "c", nil)
		r.want("pods are those of the first scope", "created events/e", "created configmaps/c")
	})
}

func TestUnknownTypes(t *testing.T) {
	for _, tt := range []struct {
		why  string
		s    Scope
		want string
	}{
		{"a misspelt kind", Scope{Types: []string{"pods,configmap,secrts"}}, `no resource type "secrts"; did you mean "secrets"?`},
		{"a misspelt exclusion", Scope{Except: []string{"nodez"}}, `no resource type "nodez"; did you mean "nodes"?`},
		{"a name and a selector", Scope{Types: []string{"pods", "a"}, Labels: "a=b"}, "cannot be combined"},
	} {
		synctest.Test(t, func(t *testing.T) {
			if _, err := planned(t, tt.s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.why, err)
			}
		})
	}
}

// planned returns the plan for scopes on a server with some kinds.
func planned(t *testing.T, scopes ...Scope) (*Plan, error) {
	t.Helper()
	s := informertest.NewServer()
	s.Serve(podsGVR, "Pod")
	s.Serve(cmGVR, "ConfigMap")
	s.Serve(secretGVR, "Secret")
	s.Serve(eventGVR, "Event")
	s.Serve(nodeGVR, "Node")
	s.Serve(deployGVR, "Deployment")
	s.Serve(rsGVR, "ReplicaSet")
	s.Describe(nodeGVR, true, nil, nil)
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Config: s.Config(), Scopes: scopes, Quiet: rules})
	if err != nil {
		t.Fatal(err)
	}
	return w.Plan(t.Context())
}

func TestPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := planned(t,
			Scope{Types: []string{"pods/a", "pods/b"}},
			Scope{Types: []string{"deployments/web"}}, // without its dependents
			Scope{Types: []string{"secrets"}, Fields: "metadata.name=s", Namespaces: selection.Namespaces{Include: []string{"shop", "pay"}}},
			Scope{Types: []string{"nodes"}},
			Scope{Types: []string{"conf*,*.x.io"}, Labels: "a=b", Namespaces: selection.Namespaces{Exclude: []string{"kube-system", "test-*"}}},
			Scope{Except: []string{"secrets", "repl*"}, Namespaces: selection.Namespaces{Include: []string{"shop"}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		type row struct {
			kind    string
			scope   int
			streams []Selected
		}
		var got []row
		for _, k := range p.Kinds {
			got = append(got, row{k.Resource.GroupResource(), k.Scope, k.Streams})
		}
		want := []row{
			{"pods", 0, []Selected{{Fields: "metadata.name=a", Name: "a"}, {Fields: "metadata.name=b", Name: "b"}}},
			{"deployments.apps", 1, []Selected{{Fields: "metadata.name=web", Name: "web"}}},
			{"secrets", 2, []Selected{{Namespace: "pay", Fields: "metadata.name=s", Name: "s"}, {Namespace: "shop", Fields: "metadata.name=s", Name: "s"}}},
			{"nodes", 3, []Selected{{}}},
			{"configmaps", 4, []Selected{{Labels: "a=b", Fields: "metadata.namespace!=kube-system", Filtered: true}}},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("kinds (-want +got):\n%s", diff)
		}
		if strings.Join(p.Hidden, " ") != "events" || strings.Join(p.Unmatched, " ") != "*.x.io" {
			t.Errorf("hidden %v, unmatched %v", p.Hidden, p.Unmatched)
		}
		globs := []Glob{{Pattern: "conf*", Scope: 4}, {Pattern: "*.x.io", Scope: 4}, {Pattern: "*", Scope: 5, Narrowed: true, Namespaces: []string{"shop"}}}
		if diff := cmp.Diff(globs, p.Globs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("globs (-want +got):\n%s", diff)
		}
	})
}
