// Package event holds the public form of a change: what `-o json`, files and webhooks carry.
//
// An event is a CloudEvents 1.0 JSON object; schema.json describes it. Its id is a hash of what
// happened, so that a consumer that remembers ids sees each change once, however often it is
// delivered. Times are written in UTC, as RFC 3339 with milliseconds; finer parts are cut off. Fields
// may be added: a consumer ignores what it does not know.
package event

import "time"

// Op is the kind of a change.
type Op string

// The operations. Snapshot is an object seen by the first list. Entered and Left: an existing object began
// or ceased to match a selector. Gap: versions were missed. Converted: the API server now serves the same
// version of the object in another form, such as with a new default; nobody wrote it. Absent: Tattler did not
// watch for a while, and has caught up.
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

// HasObject reports whether the operation is a change of an object, rather than a remark on the record: a gap
// or an absence.
func (o Op) HasObject() bool { return o != Gap && o != Absent }

// Severity is how bad a change is.
type Severity string

// The severities. Failure: something ceased to work, or cannot begin to: CrashLoopBackOff, an image that cannot be
// pulled, OOMKilled, a pod that cannot be scheduled, was evicted or failed, a rollout beyond its deadline, a failed
// Job, a node that is not ready. Warning: something is worse than before and may pass, such as a pod that ceased to be
// ready or a container that ended with an error, a node under pressure, or a gap. Recovery: what was wrong is over.
// Normal, written as change: all else, deletions included.
const (
	Failure  Severity = "failure"
	Warning  Severity = "warning"
	Recovery Severity = "recovery"
	Normal   Severity = "change"
)

// Differs reports whether the operation has a difference between two forms of one object: an update or a
// conversion.
func (o Op) Differs() bool { return o == Updated || o == Converted }

// Event is a CloudEvents 1.0 envelope around Data; New fills it. The attributes are those of the
// CloudEvents specification, version 1.0.2, and its partitioning extension.
type Event struct {
	// SpecVersion is the version of CloudEvents.
	SpecVersion string `json:"specversion" enum:"1.0"`
	// Type is dev.tattler.change.OP.v1.
	Type string `json:"type"`
	// Source is /clusters/NAME, the name escaped as a path segment.
	Source string `json:"source"`
	// ID is 26 characters of a to z and 2 to 7: equal for the same change, however often delivered.
	ID string `json:"id"`
	// Subject is the object's path on the API server; for a gap, that of the collection.
	Subject string `json:"subject"`
	// Time is when it happened, where the object says so; else when it was seen.
	Time time.Time `json:"time"`
	// PartitionKey is the object's UID: events with the same key are in order. Absent for a gap.
	PartitionKey string `json:"partitionkey,omitempty"`
	// DataContentType is the media type of data.
	DataContentType string `json:"datacontenttype" enum:"application/json"`
	// Data is what changed.
	Data Data `json:"data"`
}

// Data is what changed.
type Data struct {
	// Op tells what happened.
	Op Op `json:"op"`
	// Resource names the object.
	Resource Resource `json:"resource"`
	// Changes are the differences of an update or a conversion, in path order.
	Changes []Change `json:"changes,omitempty"`
	// Patch is the same difference as an RFC 6902 JSON Patch of the object before, for who asked for it.
	Patch []Operation `json:"patch,omitempty"`
	// Managers are the field managers that own something after the write; empty for deletions.
	Managers []Manager `json:"managers,omitempty"`
	// Before is the last known object of one that was deleted or left; of an update, where asked for.
	Before map[string]any `json:"before,omitempty"`
	// After is the object of a snapshot and of one that was created or entered; of an update, where
	// asked for.
	After map[string]any `json:"after,omitempty"`
	// Severity says how bad the change is: failure, warning, recovery or change. It judges what is new in the change,
	// by the object before and after it.
	Severity Severity `json:"severity"`
	// Observed is when Tattler saw it.
	Observed Observed `json:"observed"`
	// Gap says what was missed where Op is Gap.
	Gap *GapInfo `json:"gap,omitempty"`
	// Absence says what became of an absence where Op is Absent; it lasted from observed.after to observed.at.
	Absence *Absence `json:"absence,omitempty"`
	// Epoch counts the histories of the server: it grows where the one before was replaced, as by a
	// restored backup, after which the same versions come again. Absent in the first.
	Epoch int64 `json:"epoch,omitempty"`
	// Quiet is true where every changed field is quiet, and for every conversion.
	Quiet bool `json:"quiet,omitempty"`
	// Form distinguishes the conversions of one version: a number made of a keyed sum of the object's content
	// and the time. It is part of the id alone, and never written.
	Form uint64 `json:"-"`
	// Truncated is true where parts were left out (objects, the patch, managers, or changes), as the whole
	// event would be longer than the receiver's limit, or as what was before was purged from the journal.
	Truncated bool `json:"truncated,omitempty"`
	// FilterError says why the sink's filter (where) failed on this change: it is delivered although it may
	// not match. Absent where the filter worked.
	FilterError string `json:"filterError,omitempty"`
}

// Resource names the object that changed. For a gap, name and namespace may be empty. For an absence it is
// AbsenceResource.
type Resource struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group"`
	// Version is the API version, such as v1.
	Version string `json:"version"`
	// Resource is the plural, such as deployments.
	Resource string `json:"resource"`
	// Kind is the kind, such as Deployment.
	Kind string `json:"kind"`
	// Namespace is the object's namespace; absent for one of the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	Name string `json:"name,omitempty"`
	// UID is the object's UID; another object under the same name has another.
	UID string `json:"uid,omitempty"`
	// ResourceVersion is the object's version after the change; the last known one of a deletion
	// that was missed.
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

// Change is one changed field. In JSON a replace always has both from and to, even where one is null;
// an add has no from, a remove no to.
type Change struct {
	// Path is in the grammar of docs/paths.md. Empty, it is the object itself: see Whole.
	Path string `json:"path"`
	// Op is add, remove or replace.
	Op string `json:"op" enum:"add,remove,replace"`
	// From is the value before; absent for an add.
	From any `json:"from,omitempty"`
	// To is the value after; absent for a remove.
	To any `json:"to,omitempty"`
	// Manager owns the field after the write; "?" where the server does not say, and for every field of a
	// conversion.
	Manager string `json:"manager"`
	// Subresource is the one through which the manager wrote, such as status or scale.
	Subresource string `json:"subresource,omitempty"`
	// Quiet is true for a field that a quiet rule names.
	Quiet bool `json:"quiet,omitempty"`
	// Whole is true for a value that has more changes within than are listed, or deeper ones: From and To
	// hold all of them.
	Whole bool `json:"whole,omitempty"`
}

// Operation is one operation of a JSON Patch (RFC 6902). In JSON an add and a replace always have a value,
// even where it is null; a remove has none.
type Operation struct {
	// Op is add, remove or replace.
	Op string `json:"op" enum:"add,remove,replace"`
	// Path is a JSON Pointer (RFC 6901).
	Path string `json:"path"`
	// Value is the value after; absent for a remove.
	Value any `json:"value,omitempty"`
}

// Manager is one entry of the object's managedFields, without its fields.
type Manager struct {
	// Manager is the name that the writer gave itself; it is not a person.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation string `json:"operation"`
	// Subresource is the one written through; empty for the object itself.
	Subresource string `json:"subresource"`
	// Time is when the entry last changed, in RFC 3339; empty where the server keeps none.
	Time string `json:"time,omitempty"`
}

// Observed is the moment at which a change was seen, or the interval in which it happened: where a list
// derived it, and where the server sent it late, such as after a restart of Tattler or an outage.
type Observed struct {
	// After is the last moment at which the old state was known to be current; nil for a change
	// that the server sent as it happened.
	After *time.Time `json:"after,omitempty"`
	// At is when Tattler saw it.
	At time.Time `json:"at"`
	// Net is true where a list derived the change: more may have happened in the interval, which came to this.
	Net bool `json:"net,omitempty"`
}

// GapInfo says which versions of a stream were not seen, and why.
type GapInfo struct {
	// From is the last resource version before the gap; empty where none was known.
	From string `json:"from"`
	// To is the first resource version after the gap; empty where the server did not say. Between
	// the two only net changes are known.
	To string `json:"to"`
	// Reason says why, for people: expired (the server no longer had the versions), history-changed (the
	// server's history was replaced), missed (an audit found changes that the watch had not shown), or others;
	// several are separated by commas.
	Reason string `json:"reason"`
}

// Absence says why Tattler did not watch for a while, and what it caught up with afterwards.
type Absence struct {
	// Reason says why: stopped (Tattler did not run), unwritten (it could not write its journal, such as on a
	// full disk), or unreachable (the API server did not answer for 5 seconds or more, from the last sign of life to
	// its return).
	Reason string `json:"reason"`
	// Changes is the number of changes that Tattler has caught up with: they happened, or may have happened,
	// meanwhile.
	Changes int64 `json:"changes"`
	// Incomplete is the number of collections, such as the pods of a namespace or of the cluster, of which not every
	// change was caught up with: a gap event says what is missing, or they could not be watched yet. With 0,
	// nothing was lost.
	Incomplete int64 `json:"incomplete"`
}

// The reasons of absences.
const (
	AbsenceStopped     = "stopped"
	AbsenceUnwritten   = "unwritten"
	AbsenceUnreachable = "unreachable"
)

// AbsenceResource stands where other events name their object, so that what is made of an event's resource, such as
// the subject of a message, has its parts. No API server serves it.
var AbsenceResource = Resource{Group: "tattler.dev", Version: "v1", Resource: "absences", Kind: "Absence"}
