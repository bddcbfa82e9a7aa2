package render

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/severity"
)

// report is what an event of the cluster says about an object.
type report struct {
	reason, message, repeated string
	severity                  event.Severity
	at                        time.Time // when it was seen
}

// maxReports bounds the reports that are kept of objects without a line to come.
const maxReports = 1000

// join adds an event to the line to come of the object that it is about. It returns false where there is none: the
// event has its own line then, and is remembered for a moment, since it often comes before its object's change.
func (t *Text) join(c change.Change) bool {
	r := reportOf(c)
	object := about(c.After)
	uid := text(object, "uid")
	if uid == "" || t.o.Flat {
		return false
	}
	o := t.objects[objectKey{resource: resourceOf(object), uid: uid}]
	if o == nil || o.fold == nil || o.hot != nil {
		t.remember(uid, r)
		return false
	}
	f := o.fold
	if f.count == 0 {
		f.first = c.At
	}
	t.counts.Pending++
	f.count++
	f.reports++
	f.last = c.At
	f.report = worse(f.report, r)
	t.schedule(o)
	return true
}

func (t *Text) remember(uid string, r report) {
	if r.severity == event.Normal {
		return
	}
	if len(t.reports) >= maxReports {
		maps.DeleteFunc(t.reports, func(_ string, old report) bool { return r.at.Sub(old.at) > hold })
		if len(t.reports) >= maxReports {
			clear(t.reports)
		}
	}
	t.reports[uid] = r
}

func reportOf(c change.Change) report {
	return report{
		reason: text(c.After, "reason"), message: messageOf(c.After), repeated: repeated(c.After),
		severity: severity.Of(event.Created, kindOf(c.Resource), nil, c.After), at: c.At,
	}
}

// badness orders severities: the worst is the highest.
func badness(s event.Severity) int {
	return slices.Index([]event.Severity{event.Normal, event.Recovery, event.Warning, event.Failure}, s)
}

// worse is the report that says more: the worse of two, and of equals the newer one, but that BackOff only says that
// another one stands.
func worse(a, b report) report {
	switch ra, rb := badness(a.severity), badness(b.severity); {
	case ra > rb, ra == rb && a.severity == event.Failure && a.reason != "BackOff" && b.reason == "BackOff":
		return a
	}
	return b
}

// resourceOf is the resource and group of an object that an event refers to by its kind, in the way in which nearly
// all kinds have theirs.
func resourceOf(reference map[string]any) string {
	resource := strings.ToLower(text(reference, "kind"))
	switch {
	case strings.HasSuffix(resource, "s"):
		resource += "es"
	case strings.HasSuffix(resource, "y"):
		resource = strings.TrimSuffix(resource, "y") + "ies"
	default:
		resource += "s"
	}
	group, _, found := strings.Cut(text(reference, "apiVersion"), "/")
	if !found {
		group = ""
	}
	return resource + "." + group
}

// reported adds to an object's line what an event said about it, if the object is not well or still on its way. What
// is wrong comes first.
func (t *Text) reported(o *object, summary string, s event.Severity) (string, event.Severity) {
	f := o.fold
	r := f.report
	if f.reports > 0 && f.reports == f.count && !f.born && !isPod(o.resource) { // the object itself has not changed
		summary = stateOf(o.resource, f.to)
	}
	f.report, f.reports = report{}, 0
	if old, ok := t.reports[o.key.uid]; ok && !f.first.After(old.at.Add(hold)) {
		r = worse(old, r)
	}
	delete(t.reports, o.key.uid)
	failing := severity.Failing(kindOf(o.resource), f.to)
	switch {
	case r.severity == "" || r.severity == event.Normal:
		return summary, s
	case failing == event.Normal && s != event.Warning && s != event.Failure && !moving(o.resource, f.from, f.to):
		return summary, s // it is over
	}
	said := joined(joined(r.reason, ": ", r.message), " ", r.repeated)
	if s != event.Failure {
		s = r.severity
	}
	switch {
	case r.message != "" && strings.Contains(summary, r.message):
		return summary, s
	case failing == event.Failure:
		if more, ok := strings.CutPrefix(summary, stateOf(o.resource, f.to)); ok { // such as since when it is new
			return summary[:len(summary)-len(more)] + "; " + said + more, s
		}
		return joined(summary, "; ", said), s
	}
	return joined(said, "; ", summary), s
}
