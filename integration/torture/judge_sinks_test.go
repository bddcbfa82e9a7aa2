package torture

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/tattler-dev/tattler/event"
)

// receipt is one message received by a sink, in order.
type receipt struct{ body []byte }

// sink judges the messages that a sink received against those that it wants.
func (j *judge) sink(name string, wants func(*row) bool, got []receipt) {
	rows := map[string]*row{}
	for i := range j.listed {
		rows[j.listed[i].id] = &j.listed[i]
	}
	first := map[string][32]byte{} // by id: the hash of the bytes
	newest := map[string]*row{}    // by object
	for _, g := range got {
		var e event.Event
		if err := json.Unmarshal(g.body, &e); err != nil {
			j.find(torn, "%s received %.300q: %v", name, g.body, err)
			continue
		}
		r := rows[e.ID]
		switch {
		case r == nil:
			j.find(invented, "%s received %s, which is not in the journal, or quiet: %.300s", name, e.ID, g.body)
			continue
		case !wants(r):
			j.find(invented, "%s received %v, which it does not want", name, r)
		case e.Data.Op != r.op || e.Data.Resource.UID != r.uid || e.Data.Resource.ResourceVersion != r.version:
			j.find(falsified, "%s received %v as %.300s", name, r, g.body)
		}
		sum := sha256.Sum256(g.body)
		old, again := first[e.ID]
		if again && old != sum {
			j.find(torn, "%s received %v with different bytes: %s", name, r, g.body)
		}
		if again {
			continue
		}
		first[e.ID] = sum
		object := r.kind + " " + r.namespace + " " + r.uid
		if n := newest[object]; n != nil && n.seq > r.seq {
			j.find(disorder, "%s received %v first after %v", name, r, n)
		}
		newest[object] = r
	}
	for i := range j.listed {
		r := &j.listed[i]
		if _, ok := first[r.id]; !ok && wants(r) {
			j.find(missed, "%s did not receive %v", name, r)
		}
	}
}
