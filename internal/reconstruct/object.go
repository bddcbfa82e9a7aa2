package reconstruct

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// ancient is the entry into which an API server merges the oldest entries if there are more than ten. It is no manager.
//
// Source: k8s.io/apimachinery/pkg/util/managedfields/internal.
const ancient = "ancient-changes"

// beforeApply is the entry of what existed before the first server-side apply. Its time is that of the apply: it proves no
// write.
//
// Source: as above.
const beforeApply = "before-first-apply"

// Of returns what one object records about the time from since on, in no particular order. The object is decoded as by
// jsonmap.DecodeObject, redacted, and not modified. With rules, an entry about quiet fields alone is marked as Quiet.
// Rollouts need other objects: see Revisions.
func Of(r change.Resource, obj map[string]any, since time.Time, rules *quiet.Set) []Entry {
	v := &view{kind: r, obj: obj, since: since.Truncate(time.Second), rules: rules, resource: resourceOf(r, obj)}
	switch {
	case isEvent(r):
		v.event()
		return v.out
	case v.release():
	default:
		v.writes()
	}
	v.deletion()
	v.conditions()
	switch kindOf(r) {
	case "Pod":
		v.containers()
	case "Job.batch":
		v.job()
	}
	return v.withoutStatus()
}

// view is one object while it is examined.
type view struct {
	kind     change.Resource
	obj      map[string]any
	since    time.Time
	rules    *quiet.Set
	resource event.Resource
	out      []Entry
}

// kindOf is Pod or Deployment.apps.
func kindOf(r change.Resource) string {
	if r.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + r.Group
}

// add adds an entry unless it is too old.
func (v *view) add(at time.Time, e Entry) {
	if at.IsZero() || at.Before(v.since) {
		return
	}
	e.Time, e.Kind, e.Data.Resource = at, v.kind, v.resource
	if e.Data.Severity == "" {
		e.Data.Severity = event.Normal
	}
	v.out = append(v.out, e)
}

// writes adds the creation, and the last write of each manager.
func (v *view) writes() {
	entries := managers.Parse(v.obj)
	list := entries.List()
	created := moment(v.obj, "metadata", "creationTimestamp")
	creator := v.creator(list)
	v.add(created, v.creation(event.Reconstruction{Fact: event.FactCreated}))
	for i, m := range list {
		written := timeOf(m)
		if i == creator || m.Manager == beforeApply || written.IsZero() || written.Before(v.since) {
			continue
		}
		e := Entry{Data: event.Reconstruction{
			Fact: event.FactWritten, Manager: nameOf(m), Operation: m.Operation, Subresource: m.Subresource,
			Evidence: fmt.Sprintf("metadata.managedFields[%d].time", i),
		}}
		e.owns(entries, i)
		e.AtCreation = !written.After(created)
		e.Quiet = v.quiet(&e)
		v.add(written, e)
	}
}

// owns adds what an entry of managedFields owns.
func (e *Entry) owns(entries managers.Entries, i int) {
	fields, more := entries.Owned(i, maxFields)
	boundValues(fields)
	e.Fields, e.Data.More = fields, int64(more)
}

// creation completes the entry of a creation.
func (v *view) creation(d event.Reconstruction) Entry {
	d.Manager, d.Evidence = managers.Unknown, "metadata.creationTimestamp"
	entries := managers.Parse(v.obj)
	list := entries.List()
	i := v.creator(list)
	if i < 0 {
		return Entry{Data: d}
	}
	d.Manager, d.Operation = nameOf(list[i]), list[i].Operation
	d.Evidence += ", and the only managedFields entry, which is not newer"
	e := Entry{Data: d}
	if d.Fact == event.FactCreated {
		e.owns(entries, i)
	}
	return e
}

// creator returns the index of the creator's entry, if nothing else can have been written since then: it is the only entry
// that is not about the status, and as old as the object. (The server may take its time just before that of the object, in
// the second before.) Otherwise it returns -1.
func (v *view) creator(list []event.Manager) int {
	sole := -1
	for i, m := range list {
		if m.Subresource == "status" {
			continue
		}
		if sole >= 0 {
			return -1
		}
		sole = i
	}
	if sole >= 0 && (timeOf(list[sole]).IsZero() || timeOf(list[sole]).After(moment(v.obj, "metadata", "creationTimestamp"))) {
		return -1
	}
	return sole
}

func nameOf(m event.Manager) string {
	if m.Manager == "" || m.Manager == ancient || m.Manager == beforeApply {
		return managers.Unknown
	}
	return m.Manager
}

func timeOf(m event.Manager) time.Time {
	t, err := time.Parse(time.RFC3339, m.Time)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// quiet reports whether the manager owns quiet fields only.
func (v *view) quiet(e *Entry) bool {
	if v.rules == nil || len(e.Fields) == 0 || e.Data.More > 0 {
		return false
	}
	for _, f := range e.Fields {
		if !v.rules.Quiet(v.kind.Group, v.kind.Resource, f.Path) {
			return false
		}
	}
	return true
}

// deletion adds the request to delete the object. The server sets deletionTimestamp to the time of the request plus the
// grace period, and moves both together if a later request shortens the period.
//
// Source: k8s.io/apiserver/pkg/registry/rest.BeforeDelete.
func (v *view) deletion() {
	due := moment(v.obj, "metadata", "deletionTimestamp")
	if due.IsZero() {
		return
	}
	e := Entry{Data: event.Reconstruction{Fact: event.FactDeleting, Manager: managers.Unknown, Evidence: "metadata.deletionTimestamp"}}
	meta := change.Metadata(v.obj)
	if _, known := meta["deletionGracePeriodSeconds"]; !known { // then only the bounds are known
		e.Since = moment(v.obj, "metadata", "creationTimestamp")
		v.add(due, e)
		return
	}
	e.Data.Evidence += " less deletionGracePeriodSeconds"
	v.add(due.Add(-time.Duration(number(meta, "deletionGracePeriodSeconds"))*time.Second), e)
}

// conditions adds the changes of conditions, one entry for those of one second.
func (v *view) conditions() {
	index := map[time.Time]int{}
	for _, c := range maps(v.obj, "status", "conditions") {
		changed, name := moment(c, "lastTransitionTime"), jsonmap.Text(c, "type")
		if name == "" || changed.IsZero() || changed.Before(v.since) {
			continue
		}
		fact := event.ConditionFact{Type: name, Status: jsonmap.Text(c, "status"), Reason: jsonmap.Text(c, "reason")}
		i, ok := index[changed]
		if !ok {
			i = len(v.out)
			index[changed] = i
			v.add(changed, Entry{Data: event.Reconstruction{Fact: event.FactCondition, Evidence: "status.conditions[*].lastTransitionTime"}})
		}
		d := &v.out[i].Data
		d.Conditions = append(d.Conditions, fact)
		d.Severity = worse(d.Severity, conditionSeverity(kindOf(v.kind), fact))
	}
}

// conditionSeverity judges a condition of a built-in kind. The meaning of others is not known.
func conditionSeverity(kind string, c event.ConditionFact) event.Severity {
	switch kind + " " + c.Type + " " + c.Status {
	case "Job.batch Failed True", "Pod PodScheduled False", "Node Ready False", "Node Ready Unknown", "Deployment.apps Progressing False":
		return event.Failure
	case "Deployment.apps Available False", "Node MemoryPressure True", "Node DiskPressure True", "Node PIDPressure True":
		return event.Warning
	case "Pod Ready False":
		if c.Reason != "PodCompleted" {
			return event.Warning
		}
	}
	return event.Normal
}

// worse returns the more severe of two.
func worse(a, b event.Severity) event.Severity {
	rank := map[event.Severity]int{event.Failure: 3, event.Warning: 2, event.Recovery: 1}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// withoutStatus drops the writes of the status for which a fact of the same second says more.
func (v *view) withoutStatus() []Entry {
	said := map[time.Time]bool{}
	for _, e := range v.out {
		switch e.Data.Fact {
		case event.FactCondition, event.FactTerminated, event.FactRestarted, event.FactFinished:
			said[e.Time] = true
		}
	}
	kept := v.out[:0]
	for _, e := range v.out {
		if e.Data.Fact == event.FactWritten && e.Data.Subresource == "status" && said[e.Time] {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// isEvent reports whether a kind is Kubernetes' Events.
func isEvent(r change.Resource) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// helmPrefix begins the names of Helm's release objects.
const helmPrefix = "sh.helm.release.v1."

// release adds what the labels of a Helm release record, in place of the writes to the Secret. It returns false for any
// other object.
//
// Source: pkg/storage/driver of helm.sh/helm/v3 v3.19.0, which sets createdAt or modifiedAt with each write.
func (v *view) release() bool {
	labels := jsonmap.Object(v.obj, "metadata", "labels")
	secret := kindOf(v.kind) == "Secret" && jsonmap.Text(v.obj, "type") == "helm.sh/release.v1"
	other := kindOf(v.kind) == "ConfigMap" && strings.HasPrefix(v.resource.Name, helmPrefix)
	name, revision, status := jsonmap.Text(labels, "name"), jsonmap.Text(labels, "version"), jsonmap.Text(labels, "status")
	if !secret && !other || jsonmap.Text(labels, "owner") != "helm" || name == "" || revision == "" {
		return false
	}
	base := event.Reconstruction{Fact: event.FactRelease, Release: name, Revision: revision, Manager: managers.Unknown}
	created, written := moment(v.obj, "metadata", "creationTimestamp"), unix(jsonmap.Text(labels, "modifiedAt"))
	first := base
	if written.IsZero() { // the status was set at the creation
		first.Status = status
	}
	v.add(created, v.creation(first))
	base.Evidence, base.Status = "metadata.labels.modifiedAt, metadata.labels.status", status
	if status == "failed" {
		base.Severity = event.Failure
	}
	v.add(written, Entry{Data: base})
	return true
}
