package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tattler-dev/tattler/internal/change"
)

// family knows which object belongs to which workload.
type family struct {
	workloads map[string]*object          // that have changes to tell, by UID
	members   map[string]map[*object]bool // that have, by the UID of their owner
	// owners are the UIDs of what owns a ReplicaSet or a Job, by its UID, and owned is the reverse. Of those that have
	// not changed for long nothing is known.
	owners, older map[string]string
	owned         map[string]map[string]bool
}

// maxOwners is how many owners are known before the older ones are forgotten.
const maxOwners = 10_000

func newFamily() family {
	return family{
		workloads: map[string]*object{}, members: map[string]map[*object]bool{}, owners: map[string]string{}, owned: map[string]map[string]bool{},
	}
}

// see takes note of an object that changed.
func (f *family) see(c change.Change) {
	if c.Owner == nil || c.UID == "" || workloads[kindOf(c.Resource)] == 0 || f.owners[c.UID] == c.Owner.UID {
		return
	}
	if len(f.owners) >= maxOwners {
		f.owners, f.older = map[string]string{}, f.owners
		clear(f.owned)
		for uid, owner := range f.older {
			f.own(owner, uid)
		}
	}
	f.owners[c.UID] = c.Owner.UID
	f.own(c.Owner.UID, c.UID)
}

func (f *family) own(owner, uid string) {
	if f.owned[owner] == nil {
		f.owned[owner] = map[string]bool{}
	}
	f.owned[owner][uid] = true
}

// join makes an object a member of its workload.
func (f *family) join(o *object) {
	if rankOf(o) > 0 && o.key.uid != "" {
		f.workloads[o.key.uid] = o
	}
	if o.owner == nil {
		return
	}
	if f.members[o.owner.UID] == nil {
		f.members[o.owner.UID] = map[*object]bool{}
	}
	f.members[o.owner.UID][o] = true
}

func (f *family) forget(o *object) {
	if f.workloads[o.key.uid] == o {
		delete(f.workloads, o.key.uid)
	}
	if o.owner == nil {
		return
	}
	if delete(f.members[o.owner.UID], o); len(f.members[o.owner.UID]) == 0 {
		delete(f.members, o.owner.UID)
	}
}

// of returns the members of a workload that have changes to tell: what it owns, and what that owns.
func (f *family) of(w *object) []*object {
	all := slices.Collect(maps.Keys(f.members[w.key.uid]))
	for uid := range f.owned[w.key.uid] {
		all = slices.AppendSeq(all, maps.Keys(f.members[uid]))
	}
	slices.SortFunc(all, func(a, b *object) int { return cmp.Compare(b.seq, a.seq) }) // how a pod ended explains its Job
	return all
}
