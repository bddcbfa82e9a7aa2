package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/selection"
)

func TestTargets(t *testing.T) {
	c := testCatalog()
	for _, r := range []Resource{
		{Group: "apps", Version: "v1", Resource: "replicasets", Singular: "replicaset", Kind: "ReplicaSet", Namespaced: true, ShortNames: []string{"rs"}},
	} {
		c.all, c.preferred = append(c.all, r), append(c.preferred, r)
	}
	for _, tt := range []struct{ why, args, want, fail string }{
		{"nothing is everything", "", "*", ""},
		{"types", "pods,deploy", "pods deployments.apps", ""},
		{"a type and names", "pods a b", "pods[a b]", ""},
		{"a named deployment includes its dependents", "deploy/web", "deployments.apps[web] replicasets.apps+ pods+", ""},
		{"a named pod beside it stays named", "deploy/web pod/x", "deployments.apps[web] pods[x]+ replicasets.apps+", ""},
		{"two types and a name", "deploy,pods web", "deployments.apps[web] pods[web]+ replicasets.apps+", ""},
		{"the same twice is once", "pods,po,Pod", "pods", ""},
		{"so is a name", "pods a b a", "pods[a b]", ""},
		{"globs are for kinds that come, too", "pods,*.Example.com,deploy*", "pods *.example.com deploy*", ""},
		{"a glob and a name", "deploy* web", "", `"deploy*": a glob of kinds takes no names`},
		{"a glob and a name, in the other form", "deploy*/web", "", `"deploy*": a glob of kinds takes no names`},
		{"no glob", "*..x", "", `"*..x" is not a glob of kinds`},
		{"a mixture of the forms", "deploy/web pods", "", `"pods" is not TYPE/NAME`},
		{"an empty name", "deploy/", "", `"deploy/" is not TYPE/NAME`},
		{"an empty type", "pods,", "", "empty type"},
		{"an unknown type", "nope/x", "", "no resource type"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			ts, globs, err := c.targets(strings.Fields(tt.args), true)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("got %v, %v; want an error with %q", ts, err, tt.fail)
				}
				return
			}
			var got []string
			for _, x := range ts {
				s := x.GroupResource()
				if len(x.names) > 0 {
					s += fmt.Sprint(x.names)
				}
				if x.owned {
					s += "+"
				}
				got = append(got, s)
			}
			if got = append(got, globs...); err != nil || strings.Join(got, " ") != tt.want {
				t.Fatalf("got %v, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	for _, tt := range []struct {
		why             string
		n               selection.Namespaces
		exact, selector string
		kept, dropped   string // by keep; empty where keep must be nil
		text            string
	}{
		{"the whole cluster", selection.Namespaces{}, "", "", "", "", "all namespaces"},
		{"names are streams of their own", selection.Namespaces{Include: []string{"a", "b"}}, "a b", "", "", "", "namespaces a, b"},
		{"a name that is also excluded", selection.Namespaces{Include: []string{"a", "b"}, Exclude: []string{"b"}}, "a", "", "", "", "namespaces a, b without b"},
		{"a name given twice is one stream", selection.Namespaces{Include: []string{"b", "a", "b"}}, "a b", "", "", "", "namespaces b, a, b"},
		{"a glob is filtered here", selection.Namespaces{Include: []string{"team-*", "shop"}}, "", "", "team-a shop", "kube-system", "namespaces team-*, shop"},
		{"an excluded name is the server's work", selection.Namespaces{Exclude: []string{"kube-system"}}, "", "metadata.namespace!=kube-system", "", "", "all namespaces without kube-system"},
		{"an excluded glob is ours", selection.Namespaces{Exclude: []string{"kube-*", "x"}}, "", "metadata.namespace!=x", "shop", "kube-system", "all namespaces without kube-*, x"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			if got := strings.Join(exact(tt.n), " "); got != tt.exact {
				t.Errorf("exact: %q, want %q", got, tt.exact)
			}
			if got := excluded(tt.n); got != tt.selector {
				t.Errorf("selector: %q, want %q", got, tt.selector)
			}
			keep := keep(tt.n)
			if (keep == nil) != (tt.kept == "") {
				t.Fatalf("keep is nil: %v", keep == nil)
			}
			for _, ns := range strings.Fields(tt.kept) {
				if !keep(ns, "") {
					t.Errorf("%s is dropped", ns)
				}
			}
			for _, ns := range strings.Fields(tt.dropped) {
				if keep(ns, "") {
					t.Errorf("%s is kept", ns)
				}
			}
			if tt.n.String() != tt.text {
				t.Errorf("text: %q, want %q", tt.n, tt.text)
			}
		})
	}
}
