package journal

import (
	"time"

	"github.com/tattler-dev/tattler/event"
)

// Kind is a resource type as it was watched.
type Kind struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
}

// GroupResource is the kind's name in the journal, whatever its version: deployments.apps, or pods for
// the core group.
func (k Kind) GroupResource() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// AbsenceKind is the Kind of an absence.
var AbsenceKind = Kind{
	Group: event.AbsenceResource.Group, Version: event.AbsenceResource.Version,
	Resource: event.AbsenceResource.Resource, Kind: event.AbsenceResource.Kind,
}

// Meta is what the journal knows of a change without reading objects.
type Meta struct {
	// Op is what happened.
	Op event.Op
	// Kind is the object's, or that of the collection in which there is a gap.
	Kind Kind
	// Namespace is the object's, or that of the stream that has a gap.
	Namespace string
	// Name and UID name the object; without a UID (client-go's fakes) its name is its identity.
	Name, UID string
	// ResourceVersion is the object's after the change.
	ResourceVersion string
	// Time is when it happened, At when it was seen.
	Time, At time.Time
	// Since is zero, or it happened between Since and At. Net says that a list derived it: what happened between the
	// two came to this.
	Since time.Time
	Net   bool
	// Manager is who wrote; empty if that is unknown.
	Manager string
	// Owner is the object's controller; nil if it has none.
	Owner *event.Owner
	// Quiet is an update of quiet fields only.
	Quiet bool
	// Gap says what was missed where Op is Gap; else nil.
	Gap *event.GapInfo
	// Absence says what became of an absence, between Since and At, where Op is Absent; else nil. Kind is then
	// AbsenceKind.
	Absence *event.Absence
	// Epoch is the history of the server in which that is its version; 0 is the first, as 1 is.
	Epoch int64
	// Form distinguishes the conversions of one version: see event.Data. Other changes have 0.
	Form uint64
}

// Row is a change to be written.
type Row struct {
	Meta
	// Before and After are the object's JSON after redaction. Before may be absent; After is there
	// unless the object was deleted or left, or the row is a gap.
	Before, After []byte
	// Sum is of the content of which After was made; 0: not known. See Journal.Sums.
	Sum uint64
	// Rewritten is no change: other redaction rules made other bytes of the version that the journal
	// has, and After becomes the object's last state. Op, Before and times say nothing.
	Rewritten bool
}

// Stream names a list-and-watch across restarts.
type Stream struct {
	// GroupResource is such as deployments.apps, Namespace empty for the whole cluster.
	GroupResource, Namespace string
	// Selection is the rest of what selects: labels, fields, names, in any form that is always the same.
	Selection string
}

// Head is where a stream stands.
type Head struct {
	// Version is the resource version up to which the journal has everything. It is empty where Live is false, and
	// while an object is out of date because a version of it could not be read: the stream must be listed again.
	Version string
	// Epoch counts the histories of the server.
	Epoch int64
	// Live is false while a list is being written: the stream must be listed again.
	Live bool
	// EverLive tells a first list that was interrupted, whose objects are snapshots, from a relist.
	EverLive bool
	// Pipeline is the fingerprint of format, redaction rules and key with which objects were made:
	// with another one, equal versions can have other bytes. It ends with that of the rules, see
	// Journal.Rules, unless a list is under way that compares with what other rules made.
	Pipeline string
	// Identity is the cluster's UID; empty if it is unknown.
	Identity string
	// Served is a number for the form in which the server served the kind when all contents were compared last;
	// 0: not known.
	Served uint64
	// At is when the stream stood there.
	At time.Time
}

// Batch is what happened in one stream, and where the stream stands with it. An absence comes in one without a
// stream.
type Batch struct {
	Stream Stream
	Head   Head
	Rows   []Row
	// ShortNames are those that the server has for the stream's kind.
	ShortNames []string
	// Schemas are the merge-key schemas of kinds that were seen first or have another one now.
	Schemas map[Kind][]byte
}

// Appended is what Append did.
type Appended struct {
	// Rows were written, Quiet of them quiet ones; Duplicates were not, because their ids are in the journal.
	Rows, Quiet, Duplicates int
	// Last is the newest sequence number of the journal.
	Last int64
}

// Object is the last state of a live object.
type Object struct {
	Namespace, Name, UID, ResourceVersion string
	// Sum is that of the row that wrote it.
	Sum uint64
	// JSON may be read until the next object is asked for.
	JSON []byte
}

// StreamHead is a stream and where it stands.
type StreamHead struct {
	Stream Stream
	Head   Head
}

// DeadLetter is a change that a sink did not take.
type DeadLetter struct {
	Sink string
	// Seq and ID are the change's.
	Seq int64
	ID  string
	// Reason is the last error, for people.
	Reason   string
	Attempts int
	At       time.Time
	// Body is what was to be sent, if the caller wants it kept beyond the change's retention.
	Body []byte
}

// Sink is what the journal keeps of a sink.
type Sink struct {
	Name string
	// Cursor is the sequence number up to which everything is done; HasCursor tells it from none.
	Cursor    int64
	HasCursor bool
	Paused    bool
	// Dead is the number of dead letters.
	Dead int
	// Lost is how many changes it will never get, since it is known: those that retention removed before, not
	// counting quiet ones and snapshots that it does not ask for; and dead letters that others pushed out.
	Lost int64
}
