package capture

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
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
		{"a glob and a name, in the other form", "deploy*/web", "", `"deploy*/web": a glob of kinds takes no names`},
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
		n               Namespaces
		exact, selector string
		kept, dropped   string // by keep; empty where keep must be nil
		text            string
	}{
		{"the whole cluster", Namespaces{}, "", "", "", "", "all namespaces"},
		{"names are streams of their own", Namespaces{Include: []string{"a", "b"}}, "a b", "", "", "", "namespaces a, b"},
		{"a name that is also excluded", Namespaces{Include: []string{"a", "b"}, Exclude: []string{"b"}}, "a", "", "", "", "namespaces a, b without b"},
		{"a name given twice is one stream", Namespaces{Include: []string{"b", "a", "b"}}, "a b", "", "", "", "namespaces b, a, b"},
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
	for why, n := range map[string]Namespaces{
		"a broken glob":             {Include: []string{"a["}},
		"an empty name":             {Include: []string{""}},
		"nothing is not everything": {Include: []string{"a"}, Exclude: []string{"a"}},
		"nor the rest after a glob": {Include: []string{"team-a", "team-b"}, Exclude: []string{"team-*"}},
	} {
		if err := n.Validate(); !errors.As(err, &u) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := (Namespaces{Include: []string{"a", "b*"}, Exclude: []string{"a"}}).Validate(); err != nil {
		t.Errorf("a glob may leave something: %v", err)
	}
}

func TestOwnership(t *testing.T) {
	now := time.Unix(1000, 0)
	uids := func(cs []pendingChange) string {
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
	check("an object without an owner is not ours", uids(o.admit(now, obj("lone", ""), false)), "")
	check("nor its dependents", uids(o.admit(now, obj("pod2", "lone"), false)), "")
	check("an unknown owner", uids(o.admit(now, obj("pod3", "later"), false)), "")
	o.expire(now.Add(ownerPatience))
	if len(o.waiting) != 0 {
		t.Errorf("%d still wait", len(o.waiting))
	}
	check("is not waited for twice", uids(o.admit(now, obj("pod3", "later"), false))+fmt.Sprint(len(o.waiting)), "0")
	check("but may ownerSem out to be ours", uids(o.admit(now, obj("later", "web"), false)), "later")
	check("and then its objects are", uids(o.admit(now, obj("pod3", "later"), false)), "pod3")

	known := obj("rs2", "web2")
	known.revealOnly = true
	check("an revealOnly change does not wait", uids(o.admit(now, known, false))+fmt.Sprint(len(o.waiting)), "0")
	check("its pod does", uids(o.admit(now, obj("pod4", "rs2"), false)), "")
	check("and is found over it", uids(o.admit(now, obj("web2", ""), true)), "web2 pod4")

	check("a deletion that comes before the owner waits, too", uids(o.admit(now, deleted("pod5", "rs3"), false)), "")
	check("also the owner's own", uids(o.admit(now, deleted("rs3", "web3"), false)), "")
	check("and both come in order", uids(o.admit(now, obj("web3", ""), true)), "web3 rs3 pod5")

	for _, c := range []pendingChange{obj("pod6", "rs4"), obj("rs4", "web4"), obj("web4", "")} { // the lists' order
		c.revealOnly = true
		o.admit(now, c, c.UID == "web4")
	}
	check("an owner goes", uids(o.admit(now, deleted("web4", ""), true)), "web4")
	check("and its ReplicaSet", uids(o.admit(now, deleted("rs4", "web4"), false)), "rs4")
	check("its pods, which end later, stay ours", uids(o.admit(now, deleted("pod6", "rs4"), false)), "pod6")

	o.admit(now, obj("circle1", "circle2"), false)
	o.admit(now, obj("circle2", "circle1"), false)
	o.expire(now.Add(ownerPatience))
	check("owners in a circle own nothing", uids(o.admit(now, obj("circle1", "circle2"), false)), "")
	check("an object without a UID is a named one", uids(o.admit(now, obj("", ""), true)), "")
}

// TestOwnershipIsBounded: deleted objects are forgotten, and the number of waiting changes is limited.
func TestOwnershipIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOwnership()
	o.admit(now, obj("web", ""), true)
	for i := range ownerWaiting + 10 {
		o.admit(now, obj(fmt.Sprint("x", i), fmt.Sprint("y", i)), false)
		if i%100 == 0 {
			o.admit(now, obj(fmt.Sprint("p", i), "web"), false)
		}
	}
	if len(o.waiting) != ownerWaiting {
		t.Errorf("%d wait, more than %d", len(o.waiting), ownerWaiting)
	}
	for i := range ownerWaiting + 10 {
		o.admit(now, deleted(fmt.Sprint("x", i), fmt.Sprint("y", i)), false)
		o.admit(now, deleted(fmt.Sprint("p", i), "web"), false)
	}
	o.admit(now, deleted("web", ""), true)
	o.expire(now.Add(ownerPatience))
	if n := len(o.owner) + len(o.ours) + len(o.orphans) + len(o.waiting); n != 0 {
		t.Errorf("%d are remembered after they are gone: %+v", n, o)
	}
}

func obj(uid, owner string) pendingChange {
	c := pendingChange{Change: change.Change{Meta: change.Meta{Op: event.Updated, UID: uid}}}
	if owner != "" {
		c.Owner = &event.Owner{UID: owner}
	}
	return c
}

func deleted(uid, owner string) pendingChange {
	c := obj(uid, owner)
	c.Op = event.Deleted
	return c
}
