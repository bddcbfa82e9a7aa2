package notify

import (
	"cmp"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// stories holds the stories of objects that were still changing state when a message reported them: the next message
// continues them.
type stories map[string]sink.Story

// maxKnown bounds the number of stories.
const maxKnown = 256

// follow adds a change to the story of an object: to its story in this message, or else to the known one.
func (k stories) follow(m *sink.Message, uid string, current sink.Story) sink.Story {
	switch {
	case m.Story == nil:
		return nil
	case current != nil:
		return m.Story(current, false)
	}
	return m.Story(k[uid], true)
}

// keep updates the known stories after a message was sent.
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

// failure is a failure of an object or of one that it owns, until that recovers.
type failure struct {
	text   string
	uid    string // of the object that failed
	ofRoot bool
}

// judge records a failure, and forgets it when the object recovers or is deleted.
func (f *failure) judge(d *event.Data, uid string, isRoot bool, current sink.Story) {
	switch {
	case d.Severity == event.Failure && (isRoot || f.uid == "" || f.uid == uid):
	case d.Severity == event.Recovery && f.uid == uid, d.Op == event.Deleted && f.uid == uid:
		*f = failure{}
		return
	default:
		return
	}
	reason := reasonOf(d)
	if current != nil {
		reason = cmp.Or(current.Text(), reason)
	}
	reason = cmp.Or(reason, "failed")
	*f = failure{text: cut(clean(reason), maxPath), uid: uid, ofRoot: true}
	if !isRoot {
		*f = f.of(d.Resource)
	}
}

// of adds the name of the object that failed.
func (f *failure) of(r event.Resource) failure {
	return failure{text: cut(clean(r.Kind+" "+r.Name+": "+f.text), 2*maxPath), uid: f.uid}
}

// reasonOf returns the last reason in a change. By the order of paths, a container's reason comes after its pod's
// conditions, and the current state of a container after its last state.
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
