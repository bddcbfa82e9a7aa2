package reconstruct

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/managers"
)

// The annotations by which a Deployment's controller numbers its ReplicaSets. The history has the numbers that the
// ReplicaSet had before, the oldest first.
//
// Source: k8s.io/kubernetes/pkg/controller/deployment/util.SetNewReplicaSetAnnotations.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
)

// Revisions collects the templates that a cluster keeps: the ReplicaSets of Deployments, and the ControllerRevisions of
// StatefulSets and DaemonSets. It holds packed templates of those that may matter only.
type Revisions struct {
	since  time.Time
	owners map[string][]revision // by UID
}

// revision is a template and the numbers that it had.
type revision struct {
	name     string
	number   int64 // now; the largest is the newest
	first    int64 // at its creation; 0: not known
	history  []int64
	created  time.Time
	numbered time.Time // no later than which it got its present number; zero: not known
	template []byte    // JSON
}

// NewRevisions returns an empty collection, for rollouts from since on.
func NewRevisions(since time.Time) *Revisions {
	return &Revisions{since: since.Truncate(time.Second), owners: map[string][]revision{}}
}

// Keeps reports whether the objects of a kind are revisions.
func Keeps(r change.Resource) bool {
	return r.Group == "apps" && (r.Resource == "replicasets" || r.Resource == "controllerrevisions")
}

// Add adds a ReplicaSet or ControllerRevision that has a controller; others have no effect.
func (rs *Revisions) Add(r change.Resource, obj map[string]any) {
	owner := change.Controller(obj)
	if !Keeps(r) || owner == nil || owner.UID == "" {
		return
	}
	v := revision{
		name: jsonmap.Text(obj, "metadata", "name"), created: moment(obj, "metadata", "creationTimestamp"),
	}
	var template map[string]any
	if r.Resource == "replicasets" {
		template = v.replicaSet(obj)
	} else {
		template = v.controllerRevision(obj)
	}
	if template == nil || v.number <= 0 {
		return
	}
	var err error
	if v.template, err = jsonmap.Encode(template); err != nil {
		return
	}
	rs.owners[owner.UID] = rs.prune(append(rs.owners[owner.UID], v))
}

// replicaSet reads a ReplicaSet of a Deployment.
func (v *revision) replicaSet(obj map[string]any) map[string]any {
	annotations := jsonmap.Object(obj, "metadata", "annotations")
	v.number, _ = strconv.ParseInt(jsonmap.Text(annotations, revisionAnnotation), 10, 64)
	for _, text := range strings.Split(jsonmap.Text(annotations, historyAnnotation), ",") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v.history = append(v.history, n)
		}
	}
	if v.first = v.number; len(v.history) > 0 {
		v.first = v.history[0]
		v.numbered = lastWrite(obj, diff.Path{{Name: "metadata"}, {Name: "annotations"}, {Name: revisionAnnotation}}, jsonmap.Text(annotations, revisionAnnotation))
	}
	return clean(jsonmap.Object(obj, "spec", "template"), "pod-template-hash")
}

// controllerRevision reads a ControllerRevision. A rollback gives it a new number and records no history.
func (v *revision) controllerRevision(obj map[string]any) map[string]any {
	v.number = number(obj, "revision")
	if v.numbered = lastWrite(obj, diff.Path{{Name: "revision"}}, v.number); v.numbered.Equal(v.created) {
		v.first, v.numbered = v.number, time.Time{} // never written again
	}
	return clean(jsonmap.Object(obj, "data", "spec", "template"), "")
}

// lastWrite returns the time of the last write by the manager that owns a field; the zero time if it is not known.
func lastWrite(obj map[string]any, p diff.Path, value any) time.Time {
	entries := managers.Parse(obj)
	owner, sub := entries.Owner(p, value)
	var last time.Time
	for _, m := range entries.List() {
		if m.Manager == owner && m.Subresource == sub {
			if timeOf(m).IsZero() {
				return time.Time{}
			}
			last = timeOf(m)
		}
	}
	return last
}

// clean returns a template without what differs by itself.
func clean(template map[string]any, label string) map[string]any {
	if template == nil {
		return nil
	}
	out := map[string]any{}
	for k, v := range template {
		if k != "$patch" {
			out[k] = v
		}
	}
	meta := map[string]any{}
	for k, v := range jsonmap.Object(template, "metadata") {
		if k != "creationTimestamp" {
			meta[k] = v
		}
	}
	labels := map[string]any{}
	for k, v := range jsonmap.Object(template, "metadata", "labels") {
		if k != label {
			labels[k] = v
		}
	}
	meta["labels"] = labels
	out["metadata"] = meta
	return out
}

// prune drops what no rollout since then can refer to. Of the old revisions with one number only, the newest suffices:
// a rollout leads from the number before its own.
func (rs *Revisions) prune(all []revision) []revision {
	old := func(v revision) bool {
		return v.first == v.number && v.created.Before(rs.since)
	}
	newest := int64(0)
	for _, v := range all {
		if old(v) {
			newest = max(newest, v.number)
		}
	}
	return slices.DeleteFunc(all, func(v revision) bool { return old(v) && v.number < newest })
}

// Rollouts returns the rollouts of a workload, which must be the controller of the revisions added. The workload's first
// template is not a rollout.
func (rs *Revisions) Rollouts(r change.Resource, workload event.Resource) (out []Entry) {
	all := rs.owners[workload.UID]
	slices.SortFunc(all, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	for i := range all {
		v := &all[i]
		if v.first > 1 && !v.created.Before(rs.since) {
			out = append(out, rollout(all, v, v.first, time.Time{}, v.created))
		}
		if v.first == v.number || v.number == 1 {
			continue
		}
		// It got its present number after its creation, and after that of the revision before.
		from, to := v.created, v.numbered
		for _, w := range all {
			switch {
			case w.first == v.number-1 && w.created.After(from):
				from = w.created
			case w.first == v.number+1 && (to.IsZero() || w.created.Before(to)):
				to = w.created
			}
		}
		if !to.IsZero() && !to.Before(rs.since) && !to.Before(from) {
			out = append(out, rollout(all, v, v.number, from, to))
		}
	}
	for i := range out {
		out[i].Kind, out[i].Data.Resource = r, workload
	}
	return out
}

// rollout is the entry of the moment at which a revision got a number.
func rollout(all []revision, v *revision, number int64, from, to time.Time) Entry {
	e := Entry{Time: to, Data: event.Reconstruction{
		Fact: event.FactRollout, Revision: strconv.FormatInt(number, 10), Severity: event.Normal, Manager: managers.Unknown,
	}}
	if e.Data.Evidence = v.name + ": metadata.creationTimestamp"; !from.IsZero() {
		e.Since, e.Data.Evidence = from, v.name+": its last write, and the creation of the revisions beside it"
	}
	for i := range all {
		if w := &all[i]; w != v && (w.number == number-1 || slices.Contains(w.history, number-1)) {
			e.Data.Previous = strconv.FormatInt(number-1, 10)
			e.Fields = templateDiff(w.template, v.template)
			if more := len(e.Fields) - maxFields; more > 0 {
				e.Fields, e.Data.More = e.Fields[:maxFields], int64(more)
			}
			break
		}
	}
	return e
}

var marker = regexp.MustCompile(regexp.QuoteMeta(diff.HiddenPrefix) + `[0-9a-f]{16}`)

// templateDiff compares two templates. A hidden value has another marker in each object, so it cannot be compared.
func templateDiff(before, after []byte) []diff.Change {
	wrap := func(text []byte) map[string]any {
		template, err := jsonmap.Decode(marker.ReplaceAll(text, []byte("hidden")))
		if err != nil {
			return nil
		}
		return map[string]any{"spec": map[string]any{"template": template}}
	}
	return diff.Objects(wrap(before), wrap(after), nil)
}
