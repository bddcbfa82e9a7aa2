package informer

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// The errors that callers tell apart.
var (
	// ErrClosed is returned by a Subscription or feed that was closed or whose Source or Cluster was, and by a
	// closed Cluster or Source that is asked for something new.
	ErrClosed = errors.New("informer: closed")
	// ErrNotSynced is what reads return for what they do not find before every object has arrived: see
	// Informer.Wait.
	ErrNotSynced = errors.New("informer: not synced")
	// ErrNotFound is what Get returns for an object that does not exist.
	ErrNotFound = errors.New("informer: no such object")
	// ErrIndexBuilding is what Index.Err returns until an index that was added to objects that were
	// there already knows all of them.
	ErrIndexBuilding = errors.New("informer: index is being built")
	// ErrMissed is the AuditInfo.Err of an audit that found changes that the watch had not shown.
	ErrMissed = reflector.ErrMissed
)

// Key names an object within a resource.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or the name where there is no namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Op says what a change does.
type Op uint8

// The operations of a change.
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

// Stream identifies one list-and-watch of a Source.
type Stream struct {
	// Resource is the one that the Source was opened for.
	Resource  schema.GroupVersionResource
	Namespace string // empty: the whole cluster
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
	// ReasonSlowConsumer: the consumer exceeded its budget.
	ReasonSlowConsumer = store.ReasonSlow
)

// Gap says that versions of a stream were not seen, or not handed on. Changes are net from From to
// the moment at which the consumer's state is complete again.
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
// more: the stream looks now and then, within some minutes, whether it is again.
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
	// Mutations counts the shared objects that were found written to: see Hooks.Mutation.
	Mutations uint64
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
