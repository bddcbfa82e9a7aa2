package story

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Input is what stories need of a change.
type Input struct {
	Op     event.Op
	Object Object
	Owner  *event.Owner
	// Seq is the change's number; the caller sets it where it is known only later.
	Seq int64
	// From and At are when the change happened: they differ if only an interval is known.
	From, At time.Time
	// Dated says that the object records the time; else At is when the change was seen.
	Dated   bool
	Manager string
	// Was and Is are the object's health before and after.
	Was, Is health.Health
	// Created is when the object was created; zero if it does not say.
	Created time.Time
	// Started is when a Job started; zero if it does not say.
	Started time.Time
	// Asked is when the deletion of the object was asked for; zero if it was not. Asks says that the change did that.
	Asked time.Time
	Asks  bool
	// Finalizers are what its deletion waits for.
	Finalizers []string
	// Generation counts the changes of the object's spec; 0 if the server does not count them.
	Generation int64
	// Template identifies the workload's pod template, TemplateWas the one before; both are empty for other kinds.
	Template, TemplateWas string
	Images                []Image
	// Cordons and Uncordons say that a node takes no more pods, or takes some again.
	Cordons, Uncordons bool
	// About is what a Kubernetes Event that warns is about, First and Last are when it happened, and Count is how often.
	About       *event.Owner
	First, Last time.Time
	Count       int
	// Node is the node of a pod; Evicted says that its eviction was asked for.
	Node    string
	Evicted bool
	// State says that the change changed the object's state, and Field is the first field that did. Routine: it changed nothing
	// else, or a controller created or deleted a member of a workload; then a story covers it.
	State, Routine bool
	Field          *Field
}

// workloads are the kinds with a pod template and a number of pods.
var workloads = map[string]bool{
	"Deployment.apps": true, "StatefulSet.apps": true, "DaemonSet.apps": true, "ReplicaSet.apps": true, "ReplicationController": true,
}

// isMember reports whether an object is created and deleted in the course of stories: a controller's pod, ReplicaSet, Job or ControllerRevision.
func (in *Input) isMember() bool {
	kind := in.Object.GroupKind()
	return in.Owner != nil && (workloads[kind] || kind == "Pod" || kind == "Job.batch" || kind == "ControllerRevision.apps")
}

// Read returns what stories need of a change, which has its whole objects.
func Read(c *change.Change) Input {
	kind := c.Kind.GroupKind()
	in := Input{
		Op: c.Op, Seq: c.Seq, Owner: c.Owner, Manager: c.Manager,
		Object: Object{Kind: c.Kind, Names: c.Names, Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		Was:    health.Read(kind, c.Before), Is: health.Read(kind, c.After),
	}
	if kind == "Secret" || kind == "ConfigMap" { // each change of a Helm release has its own line
		in.Was, in.Is = health.Health{}, health.Health{}
	}
	in.From, in.At = c.Span()
	in.Dated = c.Dated()
	obj := c.After
	if obj == nil {
		obj = c.Before
	}
	in.Created = change.Timestamp(obj, "creationTimestamp")
	in.Generation, _ = jsonmap.Integer(obj, "metadata", "generation")
	in.Asked = health.Asked(obj)
	if !in.Asked.IsZero() {
		for _, f := range jsonmap.List(obj, "metadata", "finalizers") {
			if name, ok := f.(string); ok {
				in.Finalizers = append(in.Finalizers, name)
			}
		}
	}
	in.Asks = health.Terminating(c.After) && !health.Terminating(c.Before)
	switch {
	case kind == "Pod":
		in.Node = jsonmap.Text(obj, "spec", "nodeName")
		in.Evicted = health.ConditionOf(obj, "DisruptionTarget").Status == "True"
	case kind == "Node":
		was, is := jsonmap.Get(c.Before, "spec", "unschedulable") == true, jsonmap.Get(c.After, "spec", "unschedulable") == true
		in.Cordons, in.Uncordons = is && !was, was && !is
	case kind == "Event", kind == "Event.events.k8s.io":
		in.report(c.After)
	case kind == "Job.batch":
		in.Started = jsonmap.Time(obj, "status", "startTime")
	case workloads[kind]:
		in.template(c)
	}
	in.changes(c)
	return in
}

// changes tells changes of the object's state from others.
func (in *Input) changes(c *change.Change) {
	others := false
	var first *change.FieldChange
	for i := range c.Fields {
		switch f := &c.Fields[i]; {
		case f.Quiet:
		case !IsState(c, f):
			others = true
		case first == nil || field(first.Path, 0) == "metadata":
			first = f
		}
	}
	if in.State = first != nil; in.State {
		in.Field = fieldOf(&first.Change)
	}
	switch {
	case in.Object.UID == "":
	case in.Op == event.Updated && in.About == nil:
		in.Routine = in.State && !others && !c.Quiet
	case in.Op == event.Created || in.Op == event.Updated:
		in.Routine = in.About != nil || in.isMember()
	case in.Op == event.Deleted:
		in.Routine = in.isMember()
	}
}

// fieldOf describes a changed field.
func fieldOf(c *diff.Change) *Field {
	f := &Field{Path: c.Path.String()}
	text := diff.Text([]diff.Change{*c}, diff.TextOptions{})[0].Text
	if from, to := diff.Scalar(c.From), diff.Scalar(c.To); text == f.Path+": "+from+" → "+to && len(from)+len(to) <= longestChange {
		f.From, f.To = from, to
		return f
	}
	f.Text = cut(strings.TrimPrefix(text, f.Path+": "), longestChange)
	return f
}

// report reads a Kubernetes Event that warns. The two groups, and their reporters, have different fields.
func (in *Input) report(obj map[string]any) {
	if len(in.Is.Signs) == 0 {
		return
	}
	about := jsonmap.Object(obj, "involvedObject")
	if about == nil {
		about = jsonmap.Object(obj, "regarding")
	}
	if uid := jsonmap.Text(about, "uid"); uid != "" {
		in.About = &event.Owner{Kind: jsonmap.Text(about, "kind"), Name: jsonmap.Text(about, "name"), UID: uid}
	}
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}} {
		if at := jsonmap.Time(obj, path...); at.After(in.Last) {
			in.Last = at
		}
	}
	for _, path := range [][]string{{"firstTimestamp"}, {"deprecatedFirstTimestamp"}, {"eventTime"}} {
		if at := jsonmap.Time(obj, path...); !at.IsZero() && (in.First.IsZero() || at.Before(in.First)) {
			in.First = at
		}
	}
	for _, path := range [][]string{{"series", "count"}, {"count"}, {"deprecatedCount"}} {
		n, _ := jsonmap.Integer(obj, path...)
		in.Count = max(in.Count, int(n), 1)
	}
}

// template compares the pod templates.
func (in *Input) template(c *change.Change) {
	was, is := jsonmap.Get(c.Before, "spec", "template"), jsonmap.Get(c.After, "spec", "template")
	in.Template = sum(is)
	if c.Before == nil {
		return
	}
	if in.TemplateWas = sum(was); in.Template == in.TemplateWas {
		return
	}
	before, after := images(c.Before), images(c.After)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			in.Images = append(in.Images, Image{name, before[name], after[name]})
		}
	}
}

// images returns the images of a workload's containers by their names.
func images(obj map[string]any) map[string]string {
	all := map[string]string{}
	for _, key := range []string{"initContainers", "containers"} {
		for _, e := range jsonmap.List(obj, "spec", "template", "spec", key) {
			if c, ok := e.(map[string]any); ok {
				all[jsonmap.Text(c, "name")] = jsonmap.Text(c, "image")
			}
		}
	}
	return all
}

// sum identifies a value, by its JSON with sorted keys; empty for nil.
func sum(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return strconv.FormatUint(h.Sum64(), 36)
}
