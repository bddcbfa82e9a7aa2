package torture

import (
	"slices"
	"strings"
)

// historyChanged is the reason of a gap behind which there is another history.
const historyChanged = "history-changed"

// forks tells whether a gap's reason is that: or that nobody can tell.
func forks(reason string) bool {
	return strings.Contains(reason, historyChanged) || strings.Contains(reason, "unverified")
}

// fork goes on with another past of a kind: what was recorded so far ought to be in the former one, and is
// what the next changes begin with.
func (j *judge) fork(kind string) {
	for id, t := range j.past.objects {
		if id.kind != kind || !slices.Contains(j.within, t.namespace) {
			continue
		}
		c := j.courses[id]
		if c == nil {
			c = &course{t: t}
		}
		j.skipped(c, len(t.sights), j.last, nil)
		delete(j.past.objects, id)
	}
	for id, t := range j.next.objects {
		if id.kind == kind {
			j.past.objects[id] = t
		}
	}
	for id, c := range j.courses {
		if id.kind != kind {
			continue
		}
		if j.past.objects[id] == nil { // it never was
			j.past.objects[id] = &timeline{kind: c.t.kind, namespace: c.t.namespace, name: c.t.name, uid: c.t.uid}
			if c.live {
				j.past.objects[id].sights = []sighting{{version: c.at, what: deleted, vague: true}}
			}
		}
		c.t, c.next = j.past.objects[id], 0
	}
	j.past.blind[kind], j.past.start[kind] = j.next.blind[kind], j.next.start[kind]
	for s := range j.recorded {
		if s.kind == kind { // versions of the other history do not compare with it
			delete(j.recorded, s)
		}
	}
	j.forked[kind] = true
}
