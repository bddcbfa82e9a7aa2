package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		why, text, group, resource string
		want                       bool
	}{
		{"a plural in any group", "events", "events.k8s.io", "events", true},
		{"a plural in the core group", "events", "", "events", true},
		{"another plural", "events", "", "event", false},
		{"a group", "deployments.apps", "apps", "deployments", true},
		{"another group", "deployments.apps", "extensions", "deployments", false},
		{"the core group alone", "events.", "", "events", true},
		{"not the core group", "events.", "events.k8s.io", "events", false},
		{"everything", "*", "apps", "deployments", true},
		{"all of a group", "*.apps", "apps", "deployments", true},
		{"groups below one", "*.fluxcd.io", "source.toolkit.fluxcd.io", "buckets", true},
		{"some plurals", "*sets", "apps", "replicasets", true},
		{"a prefix is not enough", "po", "", "pods", false},
		{"a version and a group", "deployments.v1.apps", "apps", "deployments", true},
		{"the beginning of a group", "widgets.a", "a.example.com", "widgets", true},
		{"not its middle", "widgets.example", "a.example.com", "widgets", false},
	} {
		if err := CheckResource(tc.text); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		if got := MatchAny([]string{"nothing", tc.text}, tc.group, tc.resource); got != tc.want {
			t.Errorf("%s: %q matches %s of group %q: %v, want %v", tc.why, tc.text, tc.resource, tc.group, got, tc.want)
		}
	}
	for _, bad := range []string{"", "pods/log", "[a]", "a b", ".apps", "a..b", "?", `a\b`} {
		if CheckResource(bad) == nil {
			t.Errorf("%q passes for a resource", bad)
		}
	}
}

func TestForKeepsOrder(t *testing.T) {
	s, err := Compile([]Rule{
		{Resources: []string{"pods"}, Paths: []string{"spec.a", "spec.b"}},
		{Resources: []string{"nodes"}, Paths: []string{"spec.c"}},
		{Resources: []string{"*", "pods"}, Paths: []string{"spec.d"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.For("", "pods") {
		got = append(got, p.String())
	}
	if want := []string{"spec.a", "spec.b", "spec.d"}; !slices.Equal(got, want) {
		t.Errorf("patterns of pods %v, want %v", got, want)
	}
	if again := s.For("", "pods"); len(again) != 3 || len(s.For("other", "pods")) != 3 || len(s.For("", "jobs")) != 1 {
		t.Errorf("asked again, and for others: %v, %v, %v", again, s.For("other", "pods"), s.For("", "jobs"))
	}
}

func TestCompileNamesTheRule(t *testing.T) {
	_, err := Compile([]Rule{{Resources: []string{"pods"}, Paths: []string{"a"}}, {Resources: []string{"pods"}, Paths: []string{""}}})
	if err == nil || !strings.Contains(err.Error(), "rule 2") {
		t.Errorf("error %v, want one that says rule 2", err)
	}
}

// TestLearn: rules may use any of a resource's names, once these are known.
func TestLearn(t *testing.T) {
	s, err := Compile([]Rule{{Resources: []string{"ConfigMap", "deploy.apps", "wd", "Gadget.example.com"}, Paths: []string{"spec"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.For("", "configmaps"); len(got) > 0 {
		t.Errorf("before: %v", got)
	}
	s.Learn("", "configmaps", "configmap", "ConfigMap", "cm")
	s.Learn("apps", "deployments", "deployment", "deploy")
	s.Learn("other", "deployments", "deployment", "deploy")
	s.Learn("x.io", "widgets", "widget", "wd")
	s.Learn("example.com", "gadgets", "gadget")
	for resource, want := range map[resourceKey]int{
		{"", "configmaps"}: 1, {"apps", "deployments"}: 1, {"other", "deployments"}: 0, {"x.io", "widgets"}: 1, {"example.com", "gadgets"}: 1, {"", "pods"}: 0,
	} {
		for range 2 {
			if got := s.For(resource.group, resource.resource); len(got) != want {
				t.Errorf("%v: %v", resource, got)
			}
		}
	}
	s.Learn("x.io", "widgets", "widget")
	if got := s.For("x.io", "widgets"); len(got) > 0 {
		t.Errorf("after a short name was taken back: %v", got)
	}
}
