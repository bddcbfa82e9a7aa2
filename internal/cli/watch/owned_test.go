package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

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
