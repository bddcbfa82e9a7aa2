// Package event defines the public form of a change, which `-o json`, files and webhooks carry.
//
// An event is a CloudEvents 1.0 JSON object; schema.json describes it. Its id is a hash of what happened, so that a consumer
// that remembers ids sees each change once, however often it is delivered. Times are in UTC, as RFC 3339 with milliseconds;
// smaller units are truncated. The time of a manager is in whole seconds. Fields may be added: a consumer ignores fields that it does not know.
package event

import "time"

// Op is the kind of a change.
type Op string

// The operations. Some names need an explanation. Snapshot: the object was in the first list of its kind. Entered
// and Left: an existing object began or ceased to match the selection. Gap: versions were missed. Converted: the API
// server now serves the same version of the object in another form, such as with a new default; there was no write.
// Absent: Tattler did not watch for a while, and has caught up as far as it could.
const (
	Snapshot  Op = "snapshot"
	Created   Op = "created"
	Updated   Op = "updated"
	Deleted   Op = "deleted"
	Entered   Op = "entered"
	Left      Op = "left"
	Gap       Op = "gap"
	Converted Op = "converted"
	Absent    Op = "absent"
)

// HasObject reports whether the operation is a change of an object, as opposed to a gap or an absence.
func (o Op) HasObject() bool { return o != Gap && o != Absent }

// Severity is how bad a change is.
type Severity string

// The severities. Failure: something ceased to work or cannot start, such as CrashLoopBackOff, an image that cannot be
// pulled, OOMKilled, a pod that cannot be scheduled, was evicted or failed, a rollout beyond its deadline, a failed
// Job, or a node that is not ready. Warning: something is worse than before and may recover, such as a pod that is no
// longer ready, a container that ended with an error, a node under pressure, a gap, or an absence after which something is
// incomplete. Recovery: a failure or a warning is over. Normal, written as "change": everything else, including deletions.
const (
	Failure  Severity = "failure"
	Warning  Severity = "warning"
	Recovery Severity = "recovery"
	Normal   Severity = "change"
)

// Differs reports whether the operation has differences between two forms of one object: an update or a conversion.
func (o Op) Differs() bool { return o == Updated || o == Converted }

// Event is a CloudEvents 1.0 envelope around Data. Its attributes are those of the CloudEvents specification, version
// 1.0.2, and of its partitioning extension. The function New makes an Event.
type Event struct {
	// SpecVersion is the version of CloudEvents.
	SpecVersion string `json:"specversion" enum:"1.0"`
	// Type is dev.tattler.change.OP.v1.
	Type string `json:"type"`
	// Source is /clusters/NAME, with the name escaped as a path segment.
	Source string `json:"source"`
	// ID has 26 characters, each from a to z or from 2 to 7. It is the same however often the change is delivered, and
	// whoever recorded it: each version of an object has one id, and so has its deletion.
	ID string `json:"id"`
	// Subject is the object's path on the API server; for a gap or an absence, the path of the collection.
	Subject string `json:"subject"`
	// Time is when the change happened, if the object shows that; otherwise when Tattler saw the change. A deletion that
	// was missed happened between data.observed.after and time: not after the creation of the next object of that name, if that
	// arrived together with the deletion.
	Time time.Time `json:"time"`
	// PartitionKey is the object's UID. Events with the same key are in order. A gap or an absence has no key.
	PartitionKey string `json:"partitionkey,omitempty"`
	// DataContentType is the media type of data.
	DataContentType string `json:"datacontenttype" enum:"application/json"`
	// Data describes the change.
	Data Data `json:"data"`
}

// Data describes a change.
type Data struct {
	// Op is the operation.
	Op Op `json:"op"`
	// Resource names the object.
	Resource Resource `json:"resource"`
	// Changes are the differences of an update or a conversion, in path order.
	Changes []Change `json:"changes,omitempty"`
	// Patch is an RFC 6902 JSON Patch, if requested. It turns the object as the last change that is not quiet left it, or the
	// object of the event that introduced it, into the object after this change. It begins with a test of the resource
	// version, which fails if the consumer has another version of the object.
	Patch []Operation `json:"patch,omitempty"`
	// Managers are the field managers that own any field after the change; absent for deletions.
	Managers []Manager `json:"managers,omitempty"`
	// Before is the object before the change. It is set if the object was deleted or has left the selection, and for an
	// update if requested.
	Before map[string]any `json:"before,omitempty"`
	// After is the object after the change. It is set for a snapshot, if the object was created or has entered the
	// selection, and for an update if requested.
	After map[string]any `json:"after,omitempty"`
	// Severity is failure, warning, recovery or change. It rates what is new in the change, by comparing the object
	// before and after.
	Severity Severity `json:"severity"`
	// Observed is when Tattler saw the change.
	Observed Observed `json:"observed"`
	// Gap describes what was missed, in an event with the operation gap.
	Gap *GapInfo `json:"gap,omitempty"`
	// Absence describes an absence, in an event with the operation absent. The absence lasted from observed.after to
	// observed.at.
	Absence *Absence `json:"absence,omitempty"`
	// Epoch numbers the histories of the server. It grows when it was proven that a history was replaced, for example by
	// a restored backup; the same versions then occur again. An uncertainty, after which Tattler lists and compares
	// everything, leaves it as it is. Absent in the first history.
	Epoch int64 `json:"epoch,omitempty"`
	// Quiet is true if every changed field is quiet, and for every conversion.
	Quiet bool `json:"quiet,omitempty"`
	// Form distinguishes changes that would otherwise have the same id: conversions of one version (a number derived from
	// a keyed sum of the object's content and the time), and the repetitions of a state or of a deletion where an
	// object that was gone is back in a version that was seen before. It is only part of the id, and never written.
	Form uint64 `json:"-"`
	// Unkeyed is true if lists were compared without the kind's merge keys, because the API server did not publish or serve
	// them. Elements are then named by their name, or else by their position.
	Unkeyed bool `json:"unkeyed,omitempty"`
	// Truncated is true if parts were left out (objects, the patch, managers, or changes), because the whole event
	// would exceed the receiver's limit, or because the state before the change was purged from the journal.
	Truncated bool `json:"truncated,omitempty"`
	// FilterError is why the sink's filter (where) failed on this change. The change is then delivered, although it may
	// not match. Absent if the filter worked.
	FilterError string `json:"filterError,omitempty"`
}

// Resource names the object that changed. A gap has no name, and has a namespace only if it is limited to
// that namespace. For an absence, the resource is always absences.tattler.dev, which no API server serves.
type Resource struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group"`
	// Version is the API version, such as v1.
	Version string `json:"version"`
	// Resource is the plural, such as deployments.
	Resource string `json:"resource"`
	// Kind is the kind, such as Deployment.
	Kind string `json:"kind"`
	// Namespace is the object's namespace; absent for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	Name string `json:"name,omitempty"`
	// UID is the object's UID; another object under the same name has a different UID.
	UID string `json:"uid,omitempty"`
	// ResourceVersion is the object's version after the change; for a deletion that was missed, the last known version.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Owner is the object's controller, if it has one.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the controlling owner of an object.
type Owner struct {
	// Kind is the owner's kind.
	Kind string `json:"kind"`
	// Name is the owner's name.
	Name string `json:"name"`
	// UID is the owner's UID.
	UID string `json:"uid"`
}

// Change is one changed field. In JSON a replace always has both from and to, even if one is null; an add has no from, a remove
// no to. A reorder says that elements of a list with merge keys moved, such as the variables of env; from and to then name
// those elements that both versions have, from the first to the last that changed places, each as an object of its merge keys:
// [{"name": "HOST"}, {"name": "URL"}].
type Change struct {
	// Path is in the grammar of docs/paths.md; empty if the object itself was added, removed or replaced.
	Path string `json:"path"`
	// Op is add, remove, replace or reorder.
	Op string `json:"op" enum:"add,remove,replace,reorder"`
	// From is the value before; absent for an add.
	From any `json:"from,omitempty"`
	// To is the value after; absent for a remove.
	To any `json:"to,omitempty"`
	// Manager is the field manager that owns the field after the change; "?" if the server does not record it, as for a
	// removed field or a new order, and for every field of a conversion.
	Manager string `json:"manager"`
	// Subresource is the subresource that the manager wrote through, such as status or scale.
	Subresource string `json:"subresource,omitempty"`
	// Quiet is true for a field that a quiet rule matches.
	Quiet bool `json:"quiet,omitempty"`
	// Whole is true if the changes within the value are too many, or too deep, to list each: from and to are then the
	// whole value before and after.
	Whole bool `json:"whole,omitempty"`
}

// Operation is one operation of a JSON Patch (RFC 6902). In JSON an add, a replace and a test always have a value, even null; a
// remove has none.
type Operation struct {
	// Op is add, remove, replace or test.
	Op string `json:"op" enum:"add,remove,replace,test"`
	// Path is a JSON Pointer (RFC 6901).
	Path string `json:"path"`
	// Value is the value after, or the one that a test expects; absent for a remove.
	Value any `json:"value,omitempty"`
}

// Manager is one entry of the object's managedFields, without its fields.
type Manager struct {
	// Manager is the name that the writing program chose; it does not name a person.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation string `json:"operation"`
	// Subresource is the subresource written through; empty for the object itself.
	Subresource string `json:"subresource"`
	// Time is when the entry last changed, in RFC 3339; absent if the server recorded no time.
	Time string `json:"time,omitempty"`
}

// Observed is the moment at which Tattler saw a change. If the change was derived from a list, or the server sent it
// late (for example after a restart of Tattler or an outage), it is the interval in which the change happened.
type Observed struct {
	// After is the last moment at which the old state was known to be current; absent for a change that the server sent as
	// it happened, and for a gap of which it is not known when it began.
	After *time.Time `json:"after,omitempty"`
	// At is when Tattler saw the change.
	At time.Time `json:"at"`
	// Net is true if the change was derived from a list: it is then the sum of everything that happened to the object in
	// the interval. Another recorder may know the changes of which it is the sum. A snapshot, which is no change, has no
	// mark.
	Net bool `json:"net,omitempty"`
}

// GapInfo says which versions of a stream were not seen, and why.
type GapInfo struct {
	// From is the last resource version before the gap; empty if unknown.
	From string `json:"from"`
	// To is the first resource version after the gap; empty if unknown. Between from and to, only net changes are
	// known.
	To string `json:"to"`
	// Reason is why versions were missed: expired (the server no longer had them), history-changed (the server's
	// history was replaced), missed (an audit found changes that the watch had not shown), or another text. Several
	// reasons are separated by commas.
	Reason string `json:"reason"`
}

// Absence describes why Tattler did not watch for a while, and what it caught up with afterwards.
type Absence struct {
	// Reason is stopped (Tattler did not run, or its process stood still), unwritten (it could not write its journal, for example on a full disk),
	// or unreachable (the API server did not answer for 5 seconds or more; the absence begins with its last sign of
	// life and ends when it answers again).
	Reason string `json:"reason"`
	// Changes counts the changes that happened, or may have happened, in the absence and that Tattler has recorded since.
	Changes int64 `json:"changes"`
	// Incomplete counts the collections, such as the pods of a namespace or of the cluster, that Tattler did not fully
	// catch up with: either a gap event says what is missing, or the collection could not be watched yet. If it is 0,
	// nothing was lost.
	Incomplete int64 `json:"incomplete"`
}

// The reasons of absences.
const (
	AbsenceStopped     = "stopped"
	AbsenceUnwritten   = "unwritten"
	AbsenceUnreachable = "unreachable"
)

// AbsenceResource is the resource of absences, so that what is derived from an event's resource, such as a message's subject,
// works for them. No API server serves it.
var AbsenceResource = Resource{Group: "tattler.dev", Version: "v1", Resource: "absences", Kind: "Absence"}
