package informer

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Errors to test for with errors.Is.
var (
	// ErrClosed is returned by a Subscription or feed once it, its Source or its Cluster is closed, and by a closed
	// Cluster or Source for new requests.
	ErrClosed = errors.New("informer: closed")
	// ErrNotSynced is returned by reads that find nothing while the first list is incomplete: see Informer.Wait.
	ErrNotSynced = errors.New("informer: not synced")
	// ErrNotFound is returned by Informer.Get and Cluster.Get for an object that does not exist. Their errors also satisfy
	// apierrors.IsNotFound.
	ErrNotFound = errors.New("informer: no such object")
	// ErrIndexBuilding is returned by Index.Err until the index covers the objects that were cached when it was added.
	ErrIndexBuilding = errors.New("informer: index is being built")
	// ErrMissed is the AuditInfo.Err of an audit that found changes that the watch did not deliver.
	ErrMissed = reflector.ErrMissed
)

// Key names an object within a resource.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or the name if there is no namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Op is the kind of a change.
type Op uint8

// The operations of a change.
const (
	Added Op = iota + 1
	Updated
	Deleted
	// Gapped is not a change of an object: in mode Every, it marks where changes are missing.
	Gapped
)

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

var opNames = [...]string{"none", "added", "updated", "deleted", "gapped"}

// Stream identifies one list and watch of a Source.
type Stream struct {
	// Resource is the resource that the Source was opened with.
	Resource  schema.GroupVersionResource
	Namespace string // empty: the whole cluster
}

// The reasons of a Gap.
const (
	// ReasonExpired: the server no longer had the versions after the last one seen.
	ReasonExpired = reflector.ReasonExpired
	// ReasonHistoryChanged: the server's history was replaced, as by a restored backup.
	ReasonHistoryChanged = reflector.ReasonReplaced
	// ReasonUnreadable: the server sent an object that could not be read.
	ReasonUnreadable = reflector.ReasonGarbled
	// ReasonUnverified: a checkpoint's state could not be shown to belong to the server's history.
	ReasonUnverified = reflector.ReasonUnverified
	// ReasonUnwatched: the server kept ending the watch with an error, so the stream was relisted.
	ReasonUnwatched = reflector.ReasonUnwatched
	// ReasonMissed: an audit found changes that the watch did not deliver.
	ReasonMissed = reflector.ReasonMissed
	// ReasonTransform: the source's Transform failed.
	ReasonTransform = "transform"
	// ReasonGone: the kind was not served, at least for a while; changes of its objects were not seen.
	ReasonGone = "not served"
	// ReasonSlowConsumer: the subscriber exceeded its budget.
	ReasonSlowConsumer = store.ReasonSlow
)

// Gap is an interval for which versions of a stream were not seen, or not delivered. Changes are net from From
// until the subscriber's state is complete again.
type Gap struct {
	// From is the last version before the gap. To is the stream's version when the gap was reported; it may be
	// empty.
	From, To string
	// Since and Until bound the time of the missed changes. Since is zero if nothing is known: an audit that follows a
	// restart may find a change that an earlier run missed.
	Since, Until time.Time
	// Reason is one of the Reason constants, or several separated by ", ".
	Reason string
}

// State is a stream's state.
type State uint8

// The states of a stream. Waiting is between attempts. Parked means that the kind is no longer served; the stream
// checks every few minutes whether it is served again.
const (
	Starting State = iota
	Listing
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
	// Loaded is true once there is a state to read: from the checkpoint, or because the stream is Synced.
	// Synced is true once the cache has been as current as the server: after the first list, or when the
	// changes since the checkpoint have arrived.
	Loaded, Synced bool
	// Err is why the stream is Waiting or Parked; an apierrors.APIStatus if the server answered.
	Err error
	// Since is when the state began. Attempts counts failures in a row.
	Since    time.Time
	Attempts int
	// LastCurrent is when the stream was last known to be current: two seconds before the last arrival, since changes may
	// have been on their way then, or the begin of the first list. An audit that finds a missed change sets it back to
	// the last comparison of all objects, until the stream is relisted.
	LastCurrent time.Time
	Objects     int
	Version     string
	// Epoch numbers the server's histories, from 1; see feed.Batch.
	Epoch int64
	// Lists and Watches count requests that began; a completed streaming list counts as one of each.
	Lists, Watches uint64
	// Audits counts audits that ended, failed ones included.
	Audits  uint64
	Dropped Dropped
	// DecodeErrors counts failed decodings by views, LossyDecodes those of protobuf with fields that the Go
	// type does not have.
	DecodeErrors, LossyDecodes uint64
	// Mutations counts shared objects that were found modified: see Hooks.Mutation.
	Mutations uint64
	// Checkpoint is why the stream has no checkpoint at the moment; nil if it has one or needs none.
	Checkpoint error
}

// Dropped counts versions that a stream received and did not deliver.
type Dropped struct {
	// Past and Repeated are versions older than, or equal to, the cached one.
	Past, Repeated uint64
	// Unreadable and Transform are versions that could not be read or transformed.
	Unreadable, Transform uint64
	// LastErr is the error of the last such version.
	LastErr error
}
