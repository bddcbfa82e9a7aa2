package log

import (
	"context"
	"strings"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/relations"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/usage"
)

// together reports flags that exclude each other.
func (o *Options) together() error {
	related := o.Related || o.Tree
	switch {
	case related && len(o.Types) == 0:
		return usage.Errorf("--related and --tree need an object: tattler log TYPE/NAME --related")
	case related && o.Follow:
		return usage.Errorf("--related and -f exclude each other: what is related is decided once")
	case o.Tree && o.Output != text:
		return usage.Errorf("--tree is for text; with -o %s, use --related", o.Output)
	case o.HTML != "" && (o.Follow || o.Output != text):
		return usage.Errorf("--html writes a page of the text lines: leave out -f and -o")
	case o.HTML != "" && o.Tree:
		return usage.Errorf("--html and --tree exclude each other: use --related")
	case o.Story != "" && (related || o.Follow || o.Stat || o.HTML != "" || len(o.Types) > 0):
		return usage.Errorf("--story shows the changes of one story: leave out objects, -f, --related, --tree, --stat and --html")
	case o.Stat && (o.Follow || o.Tree || o.HTML != ""):
		return usage.Errorf("--stat excludes -f, --tree and --html")
	case o.Stat && o.Output != text && o.Output != render.JSON:
		return usage.Errorf("--stat prints text or json")
	}
	return nil
}

// relate makes the selection consist of the named objects and everything related to them.
func (s *selected) relate(ctx context.Context, o *Options, j *past.Journal) (err error) {
	if !o.Related && !o.Tree {
		return nil
	}
	if s.related, err = history.Relate(ctx, j, s.Selection, o.Now()); err != nil {
		return err
	}
	kinds, err := j.Kinds(ctx)
	if err != nil {
		return err
	}
	s.names = map[[2]string]string{}
	for _, k := range kinds {
		n := change.Names{Singular: strings.ToLower(k.Kind)}
		if short := j.ShortNames(ctx, k); len(short) > 0 {
			n.Short = short[0]
		}
		s.names[[2]string{k.Group, k.Kind}] = render.TypeName(k, n)
	}
	return nil
}

// name is an object's name as lines print it: deploy/web.
func (s *selected) name(r relations.Ref) string {
	if short := s.names[[2]string{r.Group, r.Kind}]; short != "" {
		return short + "/" + r.Name
	}
	return r.String()
}

// via says how an object is related: through which other one. It is empty for the named objects.
func (s *selected) via(o render.Object) string {
	if s.related == nil {
		return ""
	}
	f := s.related.Of(o.Group, o.Kind, o.Namespace, o.Name)
	if f == nil || f.Via == nil {
		return ""
	}
	return "via " + s.name(f.Via.Ref)
}

// link is a kind of relation, and whether the related object is its holder.
type link struct {
	relation relations.Relation
	back     bool
}

// relationWords describe a related object, from the other object's point of view.
var relationWords = map[link]string{
	{relation: relations.OwnedBy}:             "its owner",
	{relation: relations.OwnedBy, back: true}: "owned by it",
	{relation: relations.Names}:               "named by it",
	{relation: relations.Names, back: true}:   "names it",
	{relation: relations.Binds}:               "bound to it",
	{relation: relations.Binds, back: true}:   "bound to it",
	{relation: relations.Selects}:             "selected by it",
	{relation: relations.Selects, back: true}: "selects its pods",
	{relation: relations.Scales}:              "scaled by it",
	{relation: relations.Scales, back: true}:  "scales it",
	{relation: relations.Routes}:              "receives its requests",
	{relation: relations.Routes, back: true}:  "routes to it",
	{relation: relations.RunsOn}:              "its node",
	{relation: relations.RunsOn, back: true}:  "runs on it",
	{relation: relations.About}:               "the event is about it",
	{relation: relations.About, back: true}:   "an event about it",
}
