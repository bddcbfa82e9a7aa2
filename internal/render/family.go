package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tattler-dev/tattler/internal/change"
)

// family records which object belongs to which workload.
type family struct {
	workloads map[string]*object          // tracked workloads by UID
	members   map[string]map[*object]bool // tracked objects by the UID of their owner
	// owners maps the UID of a ReplicaSet or Job to its owner's, and owned is the reverse. Entries that have not changed
	// for long are forgotten.
	owners, older map[string]string
	owned         map[string]map[string]bool
}

// maxOwners bounds the known owners before the older ones are forgotten.
const maxOwners = 10_000

func newFamily() family {
	return family{
		workloads: map[string]*object{}, members: map[string]map[*object]bool{}, owners: map[string]string{}, owned: map[string]map[string]bool{},
	}
}

// see records the owner of an object that changed.
func (f *family) see(c change.Change) {
	if c.Owner == nil || c.UID == "" || workloads[c.Kind.GroupKind()] == 0 || f.owners[c.UID] == c.Owner.UID {
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

// join adds an object to its workload.
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

// of returns the tracked members of a workload: the objects that it owns, and the objects that those own.
func (f *family) of(w *object) []*object {
	all := slices.Collect(maps.Keys(f.members[w.key.uid]))
	for uid := range f.owned[w.key.uid] {
		all = slices.AppendSeq(all, maps.Keys(f.members[uid]))
	}
	slices.SortFunc(all, func(a, b *object) int { return cmp.Compare(b.seq, a.seq) }) // the end of a pod explains the end of its Job
	return all
}
