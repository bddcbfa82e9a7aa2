package render

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/severity"
)

// report is an event of the cluster about an object.
type report struct {
	reason, message, repeated string
	severity                  event.Severity
	at                        time.Time // when it was seen
}

// maxReports bounds the reports that are kept for objects without a pending line.
const maxReports = 1000

// join adds an event to the pending line of its object. It returns false if the object has no pending line: then the event has its own
// line, and is remembered for a moment, because it often comes before its object's change.
func (t *Text) join(c change.Change) bool {
	r := reportOf(c)
	object := about(c.After)
	uid := jsonmap.Text(object, "uid")
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
	f.changes.add(c.Seq)
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
		maps.DeleteFunc(t.reports, func(_ string, old report) bool { return r.at.Sub(old.at) > maxDelay })
		if len(t.reports) >= maxReports {
			clear(t.reports)
		}
	}
	t.reports[uid] = r
}

func reportOf(c change.Change) report {
	return report{
		reason: jsonmap.Text(c.After, "reason"), message: messageOf(c.After), repeated: repeated(c.After),
		severity: severity.Of(event.Created, c.Kind.GroupKind(), nil, c.After), at: c.At,
	}
}

// severityRank orders severities: the worst is the highest.
func severityRank(s event.Severity) int {
	return slices.Index([]event.Severity{event.Normal, event.Recovery, event.Warning, event.Failure}, s)
}

// worse returns the report with the higher severity, and the newer one of equals. BackOff yields to another failure,
// because it only repeats it.
func worse(a, b report) report {
	switch ra, rb := severityRank(a.severity), severityRank(b.severity); {
	case ra > rb, ra == rb && a.severity == event.Failure && a.reason != "BackOff" && b.reason == "BackOff":
		return a
	}
	return b
}

// resourceOf guesses the resource and group of a reference to a kind. The rule fits nearly all kinds.
func resourceOf(reference map[string]any) string {
	resource := strings.ToLower(jsonmap.Text(reference, "kind"))
	switch {
	case strings.HasSuffix(resource, "s"):
		resource += "es"
	case strings.HasSuffix(resource, "y"):
		resource = strings.TrimSuffix(resource, "y") + "ies"
	default:
		resource += "s"
	}
	group, _, found := strings.Cut(jsonmap.Text(reference, "apiVersion"), "/")
	if !found {
		group = ""
	}
	return resource + "." + group
}

// reported adds an event to its object's line, if the object fails or is still in transition. The problem comes first.
func (t *Text) reported(o *object, summary string, s event.Severity) (string, event.Severity) {
	f := o.fold
	r := f.report
	if f.reports > 0 && f.reports == f.count && !f.created && !isPod(o.kind) { // the object itself has not changed
		summary = stateOf(o.kind, f.to)
	}
	f.report, f.reports = report{}, 0
	if old, ok := t.reports[o.key.uid]; ok && !f.first.After(old.at.Add(maxDelay)) {
		r = worse(old, r)
	}
	delete(t.reports, o.key.uid)
	failing := health.Failing(o.kind.GroupKind(), f.to)
	switch {
	case r.severity == "" || r.severity == event.Normal:
		return summary, s
	case failing == event.Normal && s != event.Warning && s != event.Failure && !moving(o.kind, f.from, f.to):
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
		if more, ok := strings.CutPrefix(summary, stateOf(o.kind, f.to)); ok { // such as its age
			return summary[:len(summary)-len(more)] + "; " + said + more, s
		}
		return joined(summary, "; ", said), s
	}
	return joined(said, "; ", summary), s
}
