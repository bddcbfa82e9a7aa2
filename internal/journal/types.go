package journal

import (
	"time"

	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/story"
)

// Meta is what the journal knows of a change without reading objects.
type Meta = meta.Meta

// Kind is a resource type as it was watched.
type Kind = meta.Kind

// AbsenceKind is the Kind of an absence.
var AbsenceKind = meta.AbsenceKind

// Row is a change to be written.
type Row struct {
	Meta
	// Seq is the sequence number that Append gave the row; 0 if it wrote no change. Append sets the Form, too, unless the
	// row is a conversion.
	Seq int64
	// Before and After are the object's JSON after redaction. Before may be absent. After is required unless the
	// object was deleted or left, or the row is a gap.
	Before, After []byte
	// Sum is the checksum of the content that After was made from; 0: unknown. See Journal.Sums.
	Sum uint64
	// Rewritten marks a row that is not a change: redaction rules that changed made other bytes of the version that
	// the journal has. After replaces the object's last state; Op, Before and the times are ignored.
	Rewritten bool
	// Story is what stories need of the change; nil: nothing. Append sets its Seq.
	Story *story.Input
}

// Stream names a list-and-watch across restarts.
type Stream struct {
	// GroupResource is e.g. deployments.apps; Namespace is empty for the whole cluster.
	GroupResource, Namespace string
	// Selection is the rest of the selection: labels, fields, names, in any stable form.
	Selection string
	// Cluster is as in Kind: empty for the cluster that the journal is named after.
	Cluster string
}

// Head is the position of a stream.
type Head struct {
	// Version is the resource version up to which the journal is complete. It is empty where Live is false, and
	// while the state of an object is stale because a version of it could not be read: the stream must be relisted.
	Version string
	// Epoch counts the server's histories.
	Epoch int64
	// Live is false while a list is being written: the stream must be relisted.
	Live bool
	// EverLive distinguishes a relist from an interrupted first list, whose objects are snapshots.
	EverLive bool
	// Pipeline is the fingerprint of the format, the redaction rules and their key with which the objects were
	// made: under another one, equal versions can have other bytes. It ends with the rules' fingerprint (see
	// Journal.Rules), unless a list is comparing contents that other rules made.
	Pipeline string
	// Identity is the cluster's UID; empty if it is unknown.
	Identity string
	// Served identifies the form in which the server served the kind when all contents were last compared;
	// 0: unknown.
	Served uint64
	// At is when the state was last known to be the server's. It stands still while the stream catches up or lists.
	At time.Time
}

// Batch holds changes of one stream and the stream's new position. An absence comes in a batch without a stream.
type Batch struct {
	Stream Stream
	Head   Head
	Rows   []Row
	// Ended says that the server no longer serves the stream's kind, and that all its objects are gone: the stream is
	// removed. The rest is empty then.
	Ended bool
	// ShortNames are the server's short names for the stream's kind.
	ShortNames []string
	// Schemas are the merge-key schemas of kinds that are new or whose schema changed.
	Schemas map[Kind][]byte
}

// Appended is the result of Append.
type Appended struct {
	// Rows were written, Quiet of them quiet. Duplicates were not written: the journal has their ids.
	Rows, Quiet, Duplicates int
	// Last is the newest sequence number of the journal.
	Last int64
}

// Object is the last state of a live object.
type Object struct {
	Namespace, Name, UID, ResourceVersion string
	// Sum is the Sum of the row that wrote this state.
	Sum uint64
	// JSON is valid until the next object is read.
	JSON []byte
}

// StreamHead is a stream and its position.
type StreamHead struct {
	Stream Stream
	Head   Head
}

// DeadLetter is a change that a sink did not take and that was set aside.
type DeadLetter struct {
	Sink string
	// Seq and ID identify the change.
	Seq int64
	ID  string
	// Reason is the last error, as text.
	Reason   string
	Attempts int
	At       time.Time
	// Body is the rendered message, kept if it must outlive the change's retention.
	Body []byte
}

// Sink is the journal's record of a sink.
type Sink struct {
	Name string
	// Cursor is the sequence number up to which the sink is done; it is valid if HasCursor.
	Cursor    int64
	HasCursor bool
	Paused    bool
	// Dead is the number of dead letters.
	Dead int
	// Lost counts changes that the sink will never get: those that retention removed first, except quiet ones and
	// snapshots that it does not ask for, and dead letters that newer ones displaced.
	Lost int64
}
