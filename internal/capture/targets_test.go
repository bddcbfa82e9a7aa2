package capture

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

func TestTargets(t *testing.T) {
	c := testCatalog()
	for _, r := range []Resource{
		{Group: "apps", Version: "v1", Resource: "replicasets", Singular: "replicaset", Kind: "ReplicaSet", Namespaced: true, ShortNames: []string{"rs"}},
	} {
		c.all, c.preferred = append(c.all, r), append(c.preferred, r)
	}
	for _, tt := range []struct{ why, args, want, fail string }{
		{"nothing is everything", "", "", ""},
		{"types", "pods,deploy", "pods deployments.apps", ""},
		{"a type and names", "pods a b", "pods[a b]", ""},
		{"a named deployment brings what it owns", "deploy/web", "deployments.apps[web] replicasets.apps+ pods+", ""},
		{"a named pod beside it stays named", "deploy/web pod/x", "deployments.apps[web] pods[x]+ replicasets.apps+", ""},
		{"two types and a name", "deploy,pods web", "deployments.apps[web] pods[web]+ replicasets.apps+", ""},
		{"the same twice is once", "pods,po,Pod", "pods", ""},
		{"a mixture of the forms", "deploy/web pods", "", `"pods" is not TYPE/NAME`},
		{"an empty name", "deploy/", "", `"deploy/" is not TYPE/NAME`},
		{"an empty type", "pods,", "", "empty type"},
		{"an unknown type", "nope/x", "", "no resource type"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			ts, err := c.targets(strings.Fields(tt.args))
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
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Fatalf("got %v, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	for _, tt := range []struct {
		why             string
		n               Namespaces
		exact, selector string
		kept, dropped   string // by keep; empty where keep must be nil
		text            string
	}{
		{"the whole cluster", Namespaces{}, "", "", "", "", "all namespaces"},
		{"names are streams of their own", Namespaces{Include: []string{"a", "b"}}, "a b", "", "", "", "namespaces a, b"},
		{"a name that is also excluded", Namespaces{Include: []string{"a", "b"}, Exclude: []string{"b"}}, "a", "", "", "", "namespaces a, b without b"},
		{"a glob is filtered here", Namespaces{Include: []string{"team-*", "shop"}}, "", "", "team-a shop", "kube-system", "namespaces team-*, shop"},
		{"an excluded name is the server's work", Namespaces{Exclude: []string{"kube-system"}}, "", "metadata.namespace!=kube-system", "", "", "all namespaces without kube-system"},
		{"an excluded glob is ours", Namespaces{Exclude: []string{"kube-*", "x"}}, "", "metadata.namespace!=x", "shop", "kube-system", "all namespaces without kube-*, x"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			if got := strings.Join(tt.n.exact(), " "); got != tt.exact {
				t.Errorf("exact: %q, want %q", got, tt.exact)
			}
			if got := tt.n.excluded(); got != tt.selector {
				t.Errorf("selector: %q, want %q", got, tt.selector)
			}
			keep := tt.n.keep()
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
	var u *UsageError
	if err := (Namespaces{Include: []string{"a["}}).Validate(); !errors.As(err, &u) {
		t.Errorf("a broken glob: %v", err)
	}
}

func TestOwnership(t *testing.T) {
	now := time.Unix(1000, 0)
	obj := func(uid, owner string) Change {
		c := Change{Op: event.Updated, UID: uid}
		if owner != "" {
			c.Owner = &event.Owner{UID: owner}
		}
		return c
	}
	uids := func(cs []Change) string {
		var s []string
		for _, c := range cs {
			s = append(s, c.UID)
		}
		return strings.Join(s, " ")
	}
	o := newOwnership()
	check := func(why, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", why, got, want)
		}
	}
	check("a pod before its ReplicaSet waits", uids(o.admit(now, obj("pod", "rs"), false)), "")
	check("its next change waits behind it", uids(o.admit(now, obj("pod", "rs"), false)), "")
	check("the ReplicaSet before its Deployment waits", uids(o.admit(now, obj("rs", "web"), false)), "")
	check("the Deployment releases all, owners first", uids(o.admit(now, obj("web", ""), true)), "web rs pod pod")
	check("then they pass at once", uids(o.admit(now, obj("pod", "rs"), false)), "pod")
	check("what nobody owns is not ours", uids(o.admit(now, obj("lone", ""), false)), "")
	check("nor what it owns", uids(o.admit(now, obj("pod2", "lone"), false)), "")
	check("an unknown owner", uids(o.admit(now, obj("pod3", "later"), false)), "")
	o.expire(now.Add(ownerPatience))
	if len(o.waiting) != 0 {
		t.Errorf("%d still wait", len(o.waiting))
	}
	for i := range ownerWaiting + 10 {
		o.admit(now, obj(fmt.Sprint("x", i), fmt.Sprint("y", i)), false)
	}
	if len(o.waiting) != ownerWaiting {
		t.Errorf("%d wait, more than %d", len(o.waiting), ownerWaiting)
	}
	for i := range ownerWaiting + 10 {
		c := obj(fmt.Sprint("x", i), "")
		c.Op = event.Deleted
		o.admit(now, c, false)
	}
	for uid := range o.others {
		if strings.HasPrefix(uid, "x") {
			t.Fatalf("%s is remembered after it is gone", uid)
		}
	}
}
