package reconstruct

import (
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// containers adds the ends and restarts of a pod's containers that its status still has: the present state and the one
// before.
func (v *view) containers() {
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		for _, c := range maps(v.obj, "status", list) {
			v.container(list, c)
		}
	}
}

func (v *view) container(list string, c map[string]any) {
	base := event.Reconstruction{Container: jsonmap.Text(c, "name"), Restarts: number(c, "restartCount")}
	path := "status." + list + "[name=" + base.Container + "]."
	for _, state := range []string{"lastState", "state"} {
		end := jsonmap.Object(c, state, "terminated")
		if end == nil {
			continue
		}
		d, code := base, number(end, "exitCode")
		d.Fact, d.Reason, d.ExitCode, d.Evidence = event.FactTerminated, jsonmap.Text(end, "reason"), &code, path+state+".terminated.finishedAt"
		if began := moment(end, "startedAt"); !began.IsZero() {
			d.Began = &began
		}
		switch {
		case d.Reason == "OOMKilled":
			d.Severity = event.Failure
		case code != 0:
			d.Severity = event.Warning
		}
		v.add(moment(end, "finishedAt"), Entry{Data: d})
	}
	if base.Restarts > 0 && jsonmap.Object(c, "state", "running") != nil {
		d := base
		d.Fact, d.Evidence = event.FactRestarted, path+"state.running.startedAt"
		v.add(moment(c, "state", "running", "startedAt"), Entry{Data: d})
	}
}

// job adds the completion of a Job, in place of the conditions of the same second that repeat it.
func (v *view) job() {
	done := moment(v.obj, "status", "completionTime")
	d := event.Reconstruction{Fact: event.FactFinished, Evidence: "status.completionTime"}
	if began := moment(v.obj, "status", "startTime"); !began.IsZero() {
		d.Began = &began
	}
	v.add(done, Entry{Data: d})
}

// event adds a report of Kubernetes, at the time of its last occurrence. The two API groups have different fields.
func (v *view) event() {
	o := v.obj
	d := event.Reconstruction{
		Fact: event.FactEvent, Status: jsonmap.Text(o, "type"), Reason: jsonmap.Text(o, "reason"),
		Message: strings.TrimSpace(jsonmap.Text(o, "message") + jsonmap.Text(o, "note")),
		Count:   max(number(o, "series", "count"), number(o, "count"), number(o, "deprecatedCount"), 1),
		Manager: jsonmap.Text(o, "reportingComponent") + jsonmap.Text(o, "reportingController"),
	}
	if d.Manager == "" {
		d.Manager = jsonmap.Text(o, "source", "component") + jsonmap.Text(o, "deprecatedSource", "component")
	}
	about := jsonmap.Object(o, "involvedObject")
	if about == nil {
		about = jsonmap.Object(o, "regarding")
	}
	d.About = strings.ToLower(jsonmap.Text(about, "kind")) + "/" + jsonmap.Text(about, "name")
	if d.Status == "Warning" {
		d.Severity = event.Warning
	}
	last := time.Time{}
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}} {
		if t := moment(o, path...); t.After(last) {
			last, d.Evidence = t, strings.Join(path, ".")
		}
	}
	for _, field := range []string{"firstTimestamp", "deprecatedFirstTimestamp", "eventTime"} {
		if t := moment(o, field); !t.IsZero() && d.Count > 1 && (d.Began == nil || t.Before(*d.Began)) {
			d.Began = &t
		}
	}
	v.add(last, Entry{Data: d})
}

// aboutUID returns the UID of the object that an Event is about.
func aboutUID(obj map[string]any) string {
	if uid := jsonmap.Text(obj, "involvedObject", "uid"); uid != "" {
		return uid
	}
	return jsonmap.Text(obj, "regarding", "uid")
}

// unix reads a time in seconds since 1970; the zero time for any other text.
func unix(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
