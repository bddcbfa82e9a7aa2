package torture

import (
	"slices"
	"strings"
)

// historyChanged is the reason of a gap that is followed by another history.
const historyChanged = "history-changed"

// forks reports whether a gap's reason is a changed history, or one that may have changed.
func forks(reason string) bool {
	return strings.Contains(reason, historyChanged) || strings.Contains(reason, "unverified")
}

// fork switches a kind to the other history. The rows so far should be of the former one, and the next changes
// begin with their states.
func (j *judge) fork(kind string) {
	for id, t := range j.past.objects {
		if id.kind != kind || !slices.Contains(j.within, t.namespace) {
			continue
		}
		c := j.progresses[id]
		if c == nil {
			c = &progress{t: t}
		}
		j.skipped(c, len(t.sights), j.last, nil)
		delete(j.past.objects, id)
	}
	for id, t := range j.next.objects {
		if id.kind == kind {
			j.past.objects[id] = t
		}
	}
	for id, c := range j.progresses {
		if id.kind != kind {
			continue
		}
		if j.past.objects[id] == nil { // it never existed
			j.past.objects[id] = &timeline{kind: c.t.kind, namespace: c.t.namespace, name: c.t.name, uid: c.t.uid}
			if c.live {
				j.past.objects[id].sights = []sighting{{version: c.at, what: deleted, vague: true}}
			}
		}
		c.t, c.next = j.past.objects[id], 0
	}
	j.past.blind[kind], j.past.start[kind] = j.next.blind[kind], j.next.start[kind]
	for s := range j.recorded {
		if s.kind == kind { // versions of the other history are not comparable with it
			delete(j.recorded, s)
		}
	}
	j.forked[kind] = true
}
