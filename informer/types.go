package informer

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// ErrClosed is returned by a Feed whose Source, Cluster or self was closed, and by a closed Cluster or
// Source that is asked for something new.
var ErrClosed = errors.New("informer: closed")

// ErrBehind is returned by a Strict Feed whose consumer took too little.
var ErrBehind = errors.New("informer: the feed exceeded its budget")

// Key names an object within a resource.
type Key struct{ Namespace, Name string }

// Op tells what a Delta does.
type Op uint8

// The operations of a Delta.
const (
	Added Op = iota + 1
	Updated
	Deleted
	// Gapped is no change of an object: it says, in mode Every, that changes are missing here.
	Gapped
)

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

var opNames = [...]string{"none", "added", "updated", "deleted", "gapped"}

// Phase tells whether a stream's state is complete.
type Phase uint8

const (
	// Listing says that the state is being listed, or a consumer that fell behind is catching up; deltas that
	// belong together are still to come.
	Listing Phase = iota + 1
	// Live says that the state was complete at the batch's version.
	Live
	// Resuming says that a state from an earlier run was complete at the batch's version, but has not caught up
	// with the server yet.
	Resuming
)

// Stream identifies one list-and-watch of a Source.
type Stream struct {
	// Resource is the one that the Source was opened for.
	Resource  schema.GroupVersionResource
	Namespace string // empty: the whole cluster
}

// Batch is an ordered group of deltas of one stream. A batch with Phase Live leaves the consumer
// with a state that the server had at Version; so does one with Phase Resuming, which may be an old one.
type Batch struct {
	Stream Stream
	// Epoch grows when the server's history was replaced. The batch that begins one carries a Gap;
	// until the next batch with Phase Live, the stream's versions may be from either history.
	Epoch int64
	Phase Phase
	// Version is the stream's resource version after the batch, from which it can be resumed. It is empty
	// while listing, and while an object is known to be out of date because a version of it could not be read.
	Version string
	// Served identifies the form in which the server served the kind when all contents were compared
	// last; 0: not known. A consumer that keeps the state keeps it, too: see Restored.
	Served uint64
	// Gap, if set, says that versions before these deltas are missing.
	Gap    *Gap
	Deltas []Delta
}

// Delta is one change of one object.
type Delta struct {
	Op  Op
	Key Key
	UID types.UID
	// Old is empty for Added; for Deleted it is the last known object. New is empty for Deleted,
	// where the server's last word (the object as it was when it went) is in Final if it sent one.
	Old, New, Final Version
	// Initial is true for the objects of a stream's first list.
	Initial bool
	// Relisted is true for a difference found by comparing a list with what was known, and for the first
	// of an object after a list that compared contents and could not read it.
	Relisted bool
	// At is when this process saw it. After is, for a relisted delta, the last moment at which the
	// old state was known to be current.
	At, After time.Time
}

// The reasons of a Gap; several are separated by ", ".
const (
	// ReasonExpired: the server no longer had the versions after the last one seen.
	ReasonExpired = reflector.ReasonExpired
	// ReasonHistoryChanged: the server's history was replaced, as by a restored backup.
	ReasonHistoryChanged = reflector.ReasonRewritten
	// ReasonUnreadable: the server sent something that is no object.
	ReasonUnreadable = reflector.ReasonGarbled
	// ReasonUnverified: the state of a checkpoint could not be shown to be of the server's history.
	ReasonUnverified = reflector.ReasonUnverified
	// ReasonUnwatched: the server kept ending the watch with an error, so that it was listed anew.
	ReasonUnwatched = reflector.ReasonUnwatched
	// ReasonMissed: an audit found changes that the watch had not shown.
	ReasonMissed = reflector.ReasonMissed
	// ReasonTransform: the source's Transform failed.
	ReasonTransform = "transform"
	// ReasonGone: the kind was not served, at least for a while; what happened to its objects was
	// not told.
	ReasonGone = "not served"
	// ReasonSlowConsumer: the feed exceeded its budget.
	ReasonSlowConsumer = store.ReasonSlow
)

// Gap says that versions of a stream were not seen, or not handed on. Changes are net from From to
// the next batch with Phase Live.
type Gap struct {
	// From is the last version before the gap. To is where the stream stood when the gap was told;
	// it may be empty.
	From, To string
	// Since and Until bound the time in which the missed changes happened.
	Since, Until time.Time
	// Reason is made of the Reason constants.
	Reason string
}

// State is where a stream stands.
type State uint8

// The states of a stream. Waiting is between attempts; Parked means that the kind is not served any
// more: now and then, within some minutes, it is looked whether it is again. Source.Retry looks at once.
const (
	Starting State = iota
	ListingState
	Watching
	Waiting
	Parked
	Stopped
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"starting", "listing", "watching", "waiting", "parked", "stopped"}

// Status describes one stream.
type Status struct {
	Stream Stream
	State  State
	// Loaded is true once there is a state to read: from the checkpoint, or because it is Synced.
	// Synced is true once the cache was as current as the server: after the first list, or when what
	// happened since the checkpoint has arrived.
	Loaded, Synced bool
	// Err is why the stream is Waiting or Parked; an apierrors.APIStatus where the server said so.
	Err error
	// Since is when the state began. Attempts counts failures in a row.
	Since    time.Time
	Attempts int
	// LastCurrent is the last moment at which the stream was known to be current.
	LastCurrent time.Time
	Objects     int
	Version     string
	Epoch       int64
	// Lists and Watches count those that were begun; a streaming list is one of each once it was listed.
	Lists, Watches uint64
	// Audits counts those that ended, also in failure.
	Audits  uint64
	Dropped Dropped
	// DecodeErrors and LossyDecodes count decodings by views that failed, and those of protobuf
	// with fields that the Go type does not have.
	DecodeErrors, LossyDecodes uint64
	// Checkpoint is why the stream has no checkpoint at the moment; nil if it has one or wants none.
	Checkpoint error
}

// Dropped counts what a stream received and did not hand on.
type Dropped struct {
	// Past and Repeated are versions older than, or the same as, the one that was known.
	Past, Repeated uint64
	// Unreadable and Transform are versions lost because they could not be read or transformed.
	Unreadable, Transform uint64
	// LastErr is why the last one was lost.
	LastErr error
}
