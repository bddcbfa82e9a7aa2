package capture

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func testCatalog() *Catalog {
	rs := []Resource{
		{Version: "v1", Resource: "pods", Singular: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}, Categories: []string{"all"}},
		{Version: "v1", Resource: "events", Singular: "event", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"}},
		{Version: "v1", Resource: "services", Singular: "service", Kind: "Service", Namespaced: true, ShortNames: []string{"svc"}, Categories: []string{"all"}},
		{Group: "apps", Version: "v1", Resource: "deployments", Singular: "deployment", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}, Categories: []string{"all"}},
		{Group: "events.k8s.io", Version: "v1", Resource: "events", Singular: "event", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"}},
		{Group: "serving.knative.dev", Version: "v1", Resource: "services", Singular: "service", Kind: "Service", Namespaced: true, ShortNames: []string{"ksvc"}},
		{Group: "a.example.com", Version: "v1", Resource: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, ShortNames: []string{"wd"}},
		{Group: "b.example.com", Version: "v1", Resource: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, ShortNames: []string{"wd"}},
		{Group: "a.example.com", Version: "v1", Resource: "wardens", Singular: "warden", Kind: "Warden", Namespaced: true, ShortNames: []string{"wd"}},
	}
	all := append([]Resource{}, rs...)
	all = append(all, Resource{Group: "a.example.com", Version: "v1beta1", Resource: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true})
	return &Catalog{all: all, preferred: rs, failed: map[string]error{}, unwatchable: []unwatchable{
		{Resource{Version: "v1", Resource: "componentstatuses", Singular: "componentstatus", Kind: "ComponentStatus", ShortNames: []string{"cs"}}, []string{"get", "list"}},
		{Resource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews", Singular: "tokenreview", Kind: "TokenReview"}, []string{"create"}},
	}}
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct{ why, arg, want, fail string }{
		{"a plural", "deployments", "deployments.apps v1", ""},
		{"a singular", "deployment", "deployments.apps v1", ""},
		{"a short name", "deploy", "deployments.apps v1", ""},
		{"a kind in any case", "Deployment", "deployments.apps v1", ""},
		{"with its group", "deployment.apps", "deployments.apps v1", ""},
		{"with version and group", "deployments.v1.apps", "deployments.apps v1", ""},
		{"a version that is served but not preferred", "widgets.v1beta1.a.example.com", "widgets.a.example.com v1beta1", ""},
		{"the beginning of a group, as kubectl takes it", "widgets.b", "widgets.b.example.com v1", ""},
		{"the core group before an extension of the same name", "services", "services v1", ""},
		{"an extension is reached by its group", "services.serving.knative.dev", "services.serving.knative.dev v1", ""},
		{"events of two groups are the core ones", "events", "events v1", ""},
		{"the core group alone", "services.", "services v1", ""},
		{"missing in the core group", "widgets.", "", `no resource type "widgets."`},
		{"a typo with a group", "deploymnts.apps", "", `did you mean "deployments.apps"?`},
		{"a category", "all", "pods v1, services v1, deployments.apps v1", ""},
		{"a plural in two custom groups", "widgets", "", "ambiguous: use one of widgets.a.example.com, widgets.b.example.com"},
		{"a short name of three kinds", "wd", "", "use one of widgets.a.example.com, widgets.b.example.com, wardens.a.example.com"},
		{"a typo", "deploymnts", "", `no resource type "deploymnts"; did you mean "deployments"?`},
		{"nothing like it", "quux", "", "kubectl api-resources"},
		{"one that the server has, but cannot be watched", "componentstatuses", "", `"componentstatuses" cannot be watched: the server offers only get, list`},
		{"by its short name", "cs", "", `"cs" cannot be watched: the server offers only get, list`},
		{"one that can only be created", "tokenreviews.authentication.k8s.io", "", `cannot be watched: the server offers only create`},
		{"a version that is not served", "deployments.v9.apps", "", `no resource type "deployments.v9.apps"`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			rs, err := testCatalog().Resolve(tt.arg)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("Resolve(%q) = %v, %v; want an error with %q", tt.arg, rs, err, tt.fail)
				}
				return
			}
			var got []string
			for _, r := range rs {
				got = append(got, r.GroupResource()+" "+r.Version)
			}
			if err != nil || strings.Join(got, ", ") != tt.want {
				t.Fatalf("Resolve(%q) = %v, %v; want %s", tt.arg, got, err, tt.want)
			}
		})
	}
}

func TestUnknownTypeNamesGroupsThatDidNotAnswer(t *testing.T) {
	c := testCatalog()
	c.failed["metrics.k8s.io"] = errors.New("503")
	_, err := c.Resolve("nodemetrics")
	if err == nil || !strings.Contains(err.Error(), "no answer from metrics.k8s.io") {
		t.Fatalf("got %v", err)
	}
}

func TestEverythingHasEventsOnce(t *testing.T) {
	n := map[string]int{}
	for _, r := range testCatalog().Everything() {
		n[r.Resource]++
	}
	if want := map[string]int{"pods": 1, "events": 1, "services": 2, "deployments": 1, "widgets": 2, "wardens": 1}; !reflect.DeepEqual(n, want) {
		t.Fatalf("got %v, want %v", n, want)
	}
}
