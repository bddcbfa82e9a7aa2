package web

import (
	"cmp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// entry is a line of the timeline: a change, or a story.
type entry struct {
	render.Line
	// ID is the change's id; empty for a story.
	ID string
	// Key is the id of the entry's element. It stays the same while a story continues.
	Key string
	// Order is higher for newer entries.
	Order int64
	// Type and Object are the parts of the line's name.
	Type, Object string
	// Day is set for the first entry of a day.
	Day string
	// Unfold, Around, Page (of the object), OnlyObject, OnlyNamespace, OnlyCluster and OnlyManager are URLs.
	Unfold, Around, Page, OnlyObject, OnlyNamespace, OnlyCluster, OnlyManager string
	// Marked says that the reader asked what changed around it.
	Marked bool
}

// Tone is the entry's colour.
func (e *entry) Tone() string {
	switch e.Severity {
	case event.Failure, event.Warning, event.Recovery:
		return string(e.Severity)
	}
	return "plain"
}

// SignClass is the entry's operation, as a CSS class.
func (e *entry) SignClass() string { return signClasses[e.Sign] }

var signClasses = map[string]string{"+": "created", "-": "deleted", "~": "updated", ">": "entered", "<": "left", "·": "folded", "=": "snapshot", "!": "notice"}

// list is a page of the timeline, the newest entry first.
type list struct {
	Entries []entry
	// Older is the URL of the older entries; empty at the end.
	Older string
	// Last is the number up to which the journal was read.
	Last int64
	// Note says what else is known about the list, such as how far a search looked.
	Note string
}

// days marks the first entry of each day.
func days(entries []entry) {
	day := ""
	for i := range entries {
		if d := entries[i].At.UTC().Format("Monday, 2 January 2006"); d != day {
			entries[i].Day, day = d, d
		}
	}
}

// entry makes an entry of a line.
func (p *Page) entry(f *filter, line render.Line) entry {
	e := entry{Line: line}
	if kind, name, ok := strings.Cut(line.Name, "/"); ok && line.Sign != "!" {
		e.Type, e.Object = kind, name
	}
	e.Around = around(line.At, cmp.Or(line.Until, line.At))
	if at, err := time.Parse(time.RFC3339Nano, f.values.Get("at")); err == nil {
		e.Marked = at.Sub(line.At).Abs() < time.Second
	}
	if e.Type != "" {
		e.OnlyObject = f.with("/", "type", e.Type, "name", e.Object, "namespace", line.Namespace, "cluster", cmp.Or(line.Cluster, f.values.Get("cluster")))
	}
	if line.Cluster != "" {
		e.OnlyCluster = f.with("/", "cluster", line.Cluster)
	}
	if o := line.Object; o.Name != "" {
		e.Page = object{resource: journal.Kind{Group: o.Group, Resource: o.Resource}.GroupResource(), namespace: o.Namespace, name: o.Name, cluster: clusterOf(f, o)}.url()
	}
	if line.Namespace != "" {
		e.OnlyNamespace = f.with("/", "namespace", line.Namespace)
	}
	if line.Manager != "" && line.Manager != change.Unknown {
		e.OnlyManager = f.with("/", "manager", strings.Split(line.Manager, ", ")[0])
	}
	return e
}

// clusterOf returns the cluster of an object for its URL; empty if the filter has none to distinguish.
func clusterOf(f *filter, o render.Object) string {
	if len(f.clusters) == 0 && f.values.Get("cluster") == "" {
		return ""
	}
	return cmp.Or(o.Cluster, f.own)
}

// aroundTime is how much the answer to "what changed around here?" shows on each side.
const aroundTime = 5 * time.Minute

// around returns the URL of everything that changed around a moment, or an interval.
func around(from, to time.Time) string {
	f := &filter{}
	return f.with("/", "at", machine(from), "since", machine(nameable(from.Add(-aroundTime))), "until", machine(nameable(to.Add(aroundTime))))
}
