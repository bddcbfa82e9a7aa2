package render

import (
	"time"

	"github.com/tattler-dev/tattler/internal/story"
)

// Story prints the line of a story, unless it needs none at this time.
func (t *Text) Story(s *story.Tree, now time.Time) error {
	told := Tell(s, now)
	if told.Silent {
		return t.write()
	}
	o := &s.Object
	r := row{
		at: told.At, until: told.Until, sign: signFolded, cluster: o.ClusterOr(t.o.Cluster), namespace: o.Namespace, owned: s.Owner != nil,
		name: t.typeName(o.Kind, o.Names) + "/" + o.Name, info: told.Text, severity: told.Severity,
		object: Object{o.Group, o.Resource, o.Kind.Kind, o.Namespace, o.Name, o.Cluster},
	}
	if s.Kind == story.Report {
		r.owned, r.name = false, s.Facts.About
	}
	r.count = "(" + plural(told.Changes, "change") + ")"
	if told.Changes > 1 {
		r.hint = "--flat"
	}
	t.begin(r)
	return t.write()
}
