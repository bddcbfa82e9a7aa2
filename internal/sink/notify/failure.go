package notify

import (
	"cmp"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// stories are those of objects that were on their way to another state when a message reported them: the next
// message continues them.
type stories map[string]sink.Story

// maxKnown bounds how many are kept.
const maxKnown = 256

// follow adds a change to the story of an object: that of the message so far, or the known one.
func (k stories) follow(m *sink.Message, uid string, so sink.Story) sink.Story {
	switch {
	case m.Story == nil:
		return nil
	case so != nil:
		return m.Story(so, false)
	}
	return m.Story(k[uid], true)
}

// keep notes that a message was sent.
func (k stories) keep(s *summary) {
	for _, t := range s.stories {
		for _, m := range t.members {
			if m.story == nil || !m.story.Moving() {
				delete(k, m.uid)
				continue
			}
			if len(k) >= maxKnown {
				clear(k)
			}
			k[m.uid] = m.story
		}
	}
}

// failure is what failed of an object and of what it owns, until it recovers.
type failure struct {
	text   string
	uid    string // of the object that failed
	ofRoot bool
}

// judge notes what failed, and forgets it when that object recovers or goes.
func (f *failure) judge(d *event.Data, uid string, isRoot bool, so sink.Story) {
	switch {
	case d.Severity == event.Failure && (isRoot || f.uid == "" || f.uid == uid):
	case d.Severity == event.Recovery && f.uid == uid, d.Op == event.Deleted && f.uid == uid:
		*f = failure{}
		return
	default:
		return
	}
	reason := reasonOf(d)
	if so != nil {
		reason = cmp.Or(so.Text(), reason)
	}
	reason = cmp.Or(reason, "failed")
	*f = failure{text: cut(clean(reason), maxPath), uid: uid, ofRoot: true}
	if !isRoot {
		*f = f.of(d.Resource)
	}
}

// of names the object that failed.
func (f *failure) of(r event.Resource) failure {
	return failure{text: cut(clean(r.Kind+" "+r.Name+": "+f.text), 2*maxPath), uid: f.uid}
}

// reasonOf is the last reason that a change brought: in the order of their paths, a container's comes after its
// pod's conditions, and the state of a container after its last one.
func reasonOf(d *event.Data) string {
	reason := ""
	for _, c := range d.Changes {
		switch to := c.To.(type) {
		case string:
			if strings.HasSuffix(c.Path, ".reason") {
				reason = to
			}
		case map[string]any:
			for _, state := range []map[string]any{to, inner(to, "terminated"), inner(to, "waiting")} {
				if s, _ := state["reason"].(string); s != "" {
					reason = s
				}
			}
		}
	}
	return reason
}

func inner(m map[string]any, key string) map[string]any {
	n, _ := m[key].(map[string]any)
	return n
}
