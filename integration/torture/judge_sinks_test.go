package torture

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/tattler-dev/tattler/event"
)

// receipt is what a sink got, in its order.
type receipt struct{ body []byte }

// sink judges what a sink got of what it wants.
func (j *judge) sink(name string, wants func(*row) bool, got []receipt) {
	rows := map[string]*row{}
	for i := range j.loud {
		rows[j.loud[i].id] = &j.loud[i]
	}
	first := map[string][32]byte{} // by id: the bytes
	newest := map[string]*row{}    // by object
	for _, g := range got {
		var e event.Event
		if err := json.Unmarshal(g.body, &e); err != nil {
			j.find(torn, "%s got %.300q: %v", name, g.body, err)
			continue
		}
		r := rows[e.ID]
		switch {
		case r == nil:
			j.find(invented, "%s got %s, which the journal does not have (or as quiet): %.300s", name, e.ID, g.body)
			continue
		case !wants(r):
			j.find(invented, "%s got %v, which it does not want", name, r)
		case e.Data.Op != r.op || e.Data.Resource.UID != r.uid || e.Data.Resource.ResourceVersion != r.version:
			j.find(falsified, "%s got %v as %.300s", name, r, g.body)
		}
		sum := sha256.Sum256(g.body)
		old, again := first[e.ID]
		if again && old != sum {
			j.find(torn, "%s got %v with other bytes: %s", name, r, g.body)
		}
		if again {
			continue
		}
		first[e.ID] = sum
		object := r.kind + " " + r.namespace + " " + r.uid
		if n := newest[object]; n != nil && n.seq > r.seq {
			j.find(disorder, "%s got %v first after %v", name, r, n)
		}
		newest[object] = r
	}
	for i := range j.loud {
		r := &j.loud[i]
		if _, ok := first[r.id]; !ok && wants(r) {
			j.find(missed, "%s did not get %v", name, r)
		}
	}
}
