package capture

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/selection"
)

// lister returns a server with some kinds, and a Watcher that does not run.
func lister(t *testing.T, o Options) (*informertest.Server, *Watcher) {
	t.Helper()
	s := informertest.NewServer()
	for gvr, kind := range map[schema.GroupVersionResource]string{
		podsGVR: "Pod", cmGVR: "ConfigMap", secretGVR: "Secret", eventGVR: "Event", deployGVR: "Deployment", rsGVR: "ReplicaSet",
	} {
		s.Serve(gvr, kind)
	}
	var err error
	if o.Quiet, err = quiet.New(); err != nil {
		t.Fatal(err)
	}
	if o.Redactor, err = redact.New(redact.NewRandomKey(), nil); err != nil {
		t.Fatal(err)
	}
	o.Config = s.Config()
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// seen collects the names of objects; those that were not named themselves are in parentheses.
type seen []string

func (s *seen) add(r Resource, obj map[string]any, named bool) {
	meta := obj["metadata"].(map[string]any)
	text := fmt.Sprintf("%s/%s/%s", r.Resource, meta["namespace"], meta["name"])
	if !named {
		text = "(" + text + ")"
	}
	*s = append(*s, text)
}

func (s seen) want(t *testing.T, why, want string) {
	t.Helper()
	slices.Sort(s)
	if got := strings.Join(s, " "); got != want {
		t.Errorf("%s: got %s, want %s", why, got, want)
	}
}

func TestList(t *testing.T) {
	for _, tc := range []struct {
		why           string
		o             Options
		want          string
		hidden        string
		absent        string
		kinds, listed int
	}{
		{why: "everything but the noise", o: Options{}, hidden: "events", kinds: 5, listed: 6,
			want: "configmaps/a/one configmaps/b/two deployments/a/web pods/a/web-x replicasets/a/web-1 secrets/a/s"},
		{why: "a namespace", o: Options{Scopes: []Scope{{Namespaces: selection.Namespaces{Include: []string{"b"}}}}}, want: "configmaps/b/two", hidden: "events", kinds: 5, listed: 1},
		{why: "a glob of namespaces", o: Options{Scopes: []Scope{{Types: []string{"cm"}, Namespaces: selection.Namespaces{Include: []string{"[b-z]*"}}}}}, want: "configmaps/b/two", kinds: 1, listed: 1},
		{why: "an excluded namespace", o: Options{Scopes: []Scope{{Types: []string{"cm"}, Namespaces: selection.Namespaces{Exclude: []string{"a"}}}}}, want: "configmaps/b/two", kinds: 1, listed: 1},
		{why: "labels", o: Options{Scopes: []Scope{{Types: []string{"cm"}, Labels: "app=x"}}}, want: "configmaps/a/one", kinds: 1, listed: 1},
		{why: "named, with dependents", o: Options{Scopes: []Scope{{Types: []string{"deploy/web"}}}, Owned: true}, kinds: 3, listed: 3,
			want: "(pods/a/web-x) (replicasets/a/web-1) deployments/a/web"},
		{why: "named, but absent", o: Options{Scopes: []Scope{{Types: []string{"cm/one", "cm/three"}}}}, want: "configmaps/a/one", absent: "configmaps/three", kinds: 1, listed: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, w := lister(t, tc.o)
			s.Describe(deployGVR, false, []string{"deploy"}, nil)
			s.Describe(cmGVR, false, []string{"cm"}, nil)
			s.Put(cmGVR, "a", "one", labelled("x"))
			s.Put(cmGVR, "b", "two", labelled("y"))
			s.Put(deployGVR, "a", "web", nil)
			s.Put(rsGVR, "a", "web-1", nil)
			s.Put(podsGVR, "a", "web-x", nil)
			s.Put(secretGVR, "a", "s", nil)
			s.Put(eventGVR, "a", "e", nil)
			var got seen
			l, err := w.List(t.Context(), got.add)
			if err != nil {
				t.Fatal(err)
			}
			got.want(t, tc.why, tc.want)
			if h, a := strings.Join(l.Hidden, " "), strings.Join(l.Absent, " "); h != tc.hidden || a != tc.absent || l.Kinds != tc.kinds || l.Objects != tc.listed {
				t.Errorf("%s: %+v", tc.why, l)
			}
		})
	}
}

// TestListPages: large kinds are read in pages, each once, and no request is a watch.
func TestListPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := lister(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}})
		for n := range 2*pageOfLarge + 1 {
			s.Put(cmGVR, "a", fmt.Sprint("m", n), nil)
		}
		var got seen
		if _, err := w.List(t.Context(), got.add); err != nil || len(got) != 2*pageOfLarge+1 {
			t.Fatalf("%d objects: %v", len(got), err)
		}
		lists := 0
		for _, r := range s.Recorded() {
			if r.Query.Get("watch") != "" {
				t.Errorf("a watch: %v", r)
			}
			if strings.HasSuffix(r.Path, "/configmaps") {
				lists++
			}
		}
		if lists != 3 {
			t.Errorf("%d requests", lists)
		}
	})
}

// TestListRefused: a kind that may not be listed is reported and skipped, as is one that fails.
func TestListRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := lister(t, Options{Scopes: []Scope{{Types: []string{"configmaps,secrets,pods"}}}})
		s.Put(cmGVR, "a", "one", nil)
		s.Put(podsGVR, "a", "p", nil)
		s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("secrets")))
		s.Misbehave(informertest.Fault{On: informertest.Lists, Resource: podsGVR, Effect: informertest.GarbleFrame})
		var got seen
		l, err := w.List(t.Context(), got.add)
		if err != nil {
			t.Fatal(err)
		}
		got.want(t, "the rest", "configmaps/a/one")
		if len(l.Forbidden) != 1 || l.Forbidden[0].Resource.Resource != "secrets" || len(l.Failing) != 1 || l.Failing[0].Resource.Resource != "pods" || l.Kinds != 1 {
			t.Errorf("%+v", l)
		}
	})
}

// TestListAlso: a further kind is listed in the same namespaces, without the other conditions.
func TestListAlso(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := lister(t, Options{Scopes: []Scope{{Types: []string{"deployments"}, Labels: "app=x", Namespaces: selection.Namespaces{Include: []string{"a"}}}}})
		s.Put(rsGVR, "a", "web-1", nil)
		s.Put(rsGVR, "b", "other", nil)
		if l := w.ListAlso(t.Context(), "apps", "replicasets", nil); l.Kinds != 0 {
			t.Errorf("before discovery: %+v", l)
		}
		if _, err := w.List(t.Context(), new(seen).add); err != nil {
			t.Fatal(err)
		}
		var got seen
		w.ListAlso(t.Context(), "apps", "replicasets", got.add)
		got.want(t, "replicasets", "replicasets/a/web-1")
		if l := w.ListAlso(t.Context(), "apps", "controllerrevisions", got.add); l.Kinds != 0 || len(l.Failing) > 0 {
			t.Errorf("a kind that is not served: %+v", l)
		}
		if !w.Selects("apps", "deployments") || w.Selects("apps", "replicasets") {
			t.Error("Selects is wrong")
		}
	})
}

// TestListHides: no value of a Secret is passed on, nor one that looks like a credential.
func TestListHides(t *testing.T) {
	const canary = "canary-4711"
	synctest.Test(t, func(t *testing.T) {
		var all strings.Builder
		dump := func(_ Resource, obj map[string]any, _ bool) { fmt.Fprintln(&all, obj) }
		s, w := lister(t, Options{Scopes: []Scope{{Types: []string{"secrets,pods"}}}})
		s.Put(secretGVR, "a", "s", data("password", base64.StdEncoding.EncodeToString([]byte(canary))))
		s.Put(podsGVR, "a", "p", map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "app", "env": []any{map[string]any{"name": "DB_PASSWORD", "value": canary}},
		}}}})
		if _, err := w.List(t.Context(), dump); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(all.String(), "hidden #"); n != 2 {
			t.Errorf("%d values are hidden:\n%s", n, all.String())
		}
		for _, secret := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(all.String(), secret) {
				t.Errorf("passed on: %s", all.String())
			}
		}
	})
}
