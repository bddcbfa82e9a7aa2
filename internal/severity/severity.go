// Package severity classifies changes: failure, warning, recovery or normal.
//
// It depends on the object before and after a change only, so the same change always has the same severity. A condition
// that the object already had is not news: a pod waiting in CrashLoopBackOff is a failure once, not with each write of its
// status. For the same reason a recovery is only what the two objects show: a container that runs again has recovered,
// even if it crashes a minute later.
package severity

import (
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/health"
)

// Of returns the severity of a change of a kind, such as Pod or Deployment.apps. A new object is judged by its state. Top-level
// fields but metadata may be missing from both objects if they are equal (jsonmap.DecodeChanged).
func Of(op event.Op, kind string, before, after map[string]any) event.Severity {
	switch op {
	case event.Gap:
		return event.Warning
	case event.Deleted, event.Left, event.Converted:
		return event.Normal
	}
	if after == nil || op == event.Updated && before == nil {
		return event.Normal
	}
	was, is := health.Read(kind, before), health.Read(kind, after)
	news := event.Normal
	for i := range is.Signs {
		s := &is.Signs[i]
		if old := was.Sign(s.Key); old != nil && (old.Severity == s.Severity || old.Severity == event.Failure) {
			continue
		}
		if news = s.Severity; news == event.Failure {
			break
		}
	}
	if news == event.Normal && recovered(kind, before, after, &was, &is) {
		return event.Recovery
	}
	return news
}

// recovered reports whether a change ended everything that was wrong.
func recovered(kind string, before, after map[string]any, was, is *health.Health) bool {
	if health.Terminating(after) {
		return false
	}
	if kind == "Pod" {
		return health.PodRecovered(before, after)
	}
	ended := false
	for i := range was.Signs {
		if was.Signs[i].Past {
			continue
		}
		if is.Sign(was.Signs[i].Key) != nil {
			return false
		}
		ended = true
	}
	return ended
}
